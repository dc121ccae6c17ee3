// SPDX-License-Identifier: Apache-2.0
//
// The command line, parsed by hand: a dozen options do not need a library.

#include "options.h"

#include <charconv>
#include <string_view>

#include "requests.h"

namespace counter {
namespace {

using pv2::Status;

Status bad_option(std::string message) {
  return {pv2::StatusCode::kInvalidArgument, std::move(message)};
}

Status set_number(std::uint64_t& number, std::string_view option, std::string_view value,
                  std::uint64_t lowest, std::uint64_t highest) {
  const auto parsed = parse_number(value);
  if (!parsed || *parsed < lowest || *parsed > highest) {
    return bad_option(std::string(option) + " takes a number from " + std::to_string(lowest) +
                      " to " + std::to_string(highest) + ", not '" + std::string(value) + "'");
  }
  number = *parsed;
  return {};
}

/// Per cent, as a rate.
Status set_rate(double& rate, std::string_view option, std::string_view value) {
  std::uint64_t percent = 0;
  if (Status wrong = set_number(percent, option, value, 0, 90); !wrong.ok()) return wrong;
  rate = static_cast<double>(percent) / 100;
  return {};
}

Status set_way(Way& way, std::string_view value) {
  for (const Way known : kWays) {
    if (value == to_string(known)) {
      way = known;
      return {};
    }
  }
  return bad_option("--way takes nonce, session or engine, not '" + std::string(value) + "'");
}

Status set_dedup(Dedup& dedup, std::string_view value) {
  if (value != "on" && value != "off") return bad_option("--dedup takes on or off");
  dedup = value == "on" ? Dedup::kOn : Dedup::kOff;
  return {};
}

Status set_of_server(ServeOptions& options, std::string_view option, std::string_view value) {
  if (option == "--dedup") return set_dedup(options.dedup, value);
  std::string* text = nullptr;
  if (option == "--store") text = &options.store;
  if (option == "--listen") text = &options.listen;
  if (text == nullptr) return bad_option("serve has no option " + std::string(option));
  if (value.empty()) return bad_option(std::string(option) + " needs a value");
  *text = value;
  return {};
}

Status set_of_campaign(CampaignOptions& options, std::string_view option, std::string_view value) {
  if (option == "--way") return set_way(options.way, value);
  if (option == "--dedup") return set_dedup(options.dedup, value);
  if (option == "--lose-calls") return set_rate(options.rates.calls_lost, option, value);
  if (option == "--lose-replies") return set_rate(options.rates.replies_lost, option, value);
  if (option == "--repeat") return set_rate(options.rates.repeated, option, value);
  if (option == "--increments")
    return set_number(options.increments, option, value, 100, 1'000'000'000);
  if (option == "--clients") return set_number(options.clients, option, value, 1, 500);
  if (option == "--in-flight") return set_number(options.in_flight, option, value, 1, 1000);
  if (option == "--kills") return set_number(options.kills, option, value, 0, 10'000);
  if (option == "--seed") return set_number(options.seed, option, value, 1, UINT64_MAX);
  if (option == "--data") {
    options.directory = value;
    return {};
  }
  return bad_option("there is no option " + std::string(option));
}

Status check(const Options& options) {
  if (options.command == Options::Command::kServe && options.serve.store.empty()) {
    return bad_option("serve needs --store DIR");
  }
  const CampaignOptions& campaign = options.campaign;
  if (campaign.kills > campaign.increments / 10) {
    return bad_option("--kills: at most one for ten increments");
  }
  return {};
}

}  // namespace

pv2::Result<Options> parse_options(std::span<char* const> arguments) {
  Options options;
  if (arguments.empty()) return bad_option("name one of demo, run, serve");
  const std::string_view command = arguments[0];
  if (command == "--help" || command == "-h" || command == "help") return options;
  if (command == "demo") options.command = Options::Command::kDemo;
  if (command == "run") options.command = Options::Command::kRun;
  if (command == "serve") options.command = Options::Command::kServe;
  if (options.command == Options::Command::kHelp) {
    return bad_option("there is no command '" + std::string(command) +
                      "'; name one of demo, run, serve");
  }
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view option = arguments[i];
    if (option == "--help" || option == "-h") return Options{};
    if (i + 1 == arguments.size()) return bad_option(std::string(option) + " needs a value");
    const std::string_view value = arguments[++i];
    Status wrong = options.command == Options::Command::kServe
                       ? set_of_server(options.serve, option, value)
                       : set_of_campaign(options.campaign, option, value);
    if (!wrong.ok()) return wrong;
  }
  if (Status wrong = check(options); !wrong.ok()) return wrong;
  return options;
}

std::string help() {
  return R"(usage: counter_service demo|run [options]
       counter_service serve --store DIR [--listen 127.0.0.1:0] [--dedup on|off]

demo: a short campaign in each way, and then the control, in which the server runs each copy of a
      call: that has to be found.
run:  one campaign: clients add to counters and append to a text through a network that loses and
      repeats calls, while the server is killed; then each answer is compared with what there is.
serve: the service alone, until its stdin ends.

  --way nonce|session|engine
                       how an operation is done once (nonce)
  --dedup on|off       off: the control (on)
  --increments N       adds; there is an append for each 16 of them (4000)
  --clients N          (16)
  --in-flight N        operations of one client at a time (64)
  --kills N            how often the server is killed (5)
  --lose-calls P       per cent of the calls (20)
  --lose-replies P     per cent of the replies (20)
  --repeat P           per cent of both that come twice (5)
  --seed N             of what the clients do and the network loses (1)
  --data DIR           where the server keeps its store; empty or new. Without it: a temporary
                       directory, removed when all is well

Exit code: 0 all is well, 1 something is wrong, 2 a bad option.)";
}

}  // namespace counter

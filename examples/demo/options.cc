// SPDX-License-Identifier: Apache-2.0
//
// The command line of the demo, parsed by hand: eight options do not need a library.

#include "options.h"

#include <charconv>

namespace demo {
namespace {

pv2::Status bad(std::string message) {
  return {pv2::StatusCode::kInvalidArgument, std::move(message)};
}

pv2::Result<std::uint64_t> parse_number(std::string_view option, std::string_view text,
                                        std::uint64_t lowest, std::uint64_t highest) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < lowest ||
      number > highest) {
    return bad(std::string(option) + " takes a number from " + std::to_string(lowest) + " to " +
               std::to_string(highest) + ", not '" + std::string(text) + "'");
  }
  return number;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

// The cluster checks names itself; this refuses only what would make the story unreadable.
bool is_word(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n,") == std::string_view::npos;
}

pv2::Status set(Options& options, std::string_view option, std::string_view value) {
  const auto number = [&](std::uint64_t& into, std::uint64_t low,
                          std::uint64_t high) -> pv2::Status {
    auto parsed = parse_number(option, value, low, high);
    if (parsed.ok()) into = *parsed;
    return parsed.status();
  };
  if (option == "--data") {
    if (value.empty()) return bad("--data takes a directory");
    options.data = value;
    return {};
  }
  if (option == "--kill-point") {
    auto point = parse_kill_point(value);
    if (!point.ok()) {
      return bad(std::string(point.status().message()) +
                 "; take none, random, a number, a time like 3500us, or a step: " + known_steps());
    }
    options.kill_point = *point;
    return {};
  }
  if (option == "--rounds") return number(options.rounds, 1, 1'000'000);
  if (option == "--seed") return number(options.seed, 1, UINT64_MAX);
  if (option == "--regions") return number(options.regions, 1, 1000);
  if (option == "--table") {
    if (!is_word(value)) return bad("--table takes one name without blanks and commas");
    options.table = value;
    return {};
  }
  if (option == "--families") {
    options.families = split(value);
    for (const std::string& family : options.families) {
      if (!is_word(family)) return bad("--families takes names separated by commas, like f1,f2");
    }
    return {};
  }
  return bad("there is no option " + std::string(option));
}

}  // namespace

pv2::Result<Options> parse_options(std::span<char* const> arguments) {
  Options options;
  bool kill_point_given = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view option = arguments[i];
    if (option == "--help" || option == "-h") {
      options.help = true;
      return options;
    }
    if (!option.starts_with("--")) return bad("'" + std::string(option) + "' is not an option");
    std::string_view value;
    if (const std::size_t equals = option.find('='); equals != std::string_view::npos) {
      value = option.substr(equals + 1);
      option = option.substr(0, equals);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      // If the option is unknown, that is the better message.
      if (pv2::Status unknown = set(options, option, "1");
          !unknown.ok() && unknown.message().starts_with("there is no option")) {
        return unknown;
      }
      return bad(std::string(option) + " needs a value");
    }
    if (pv2::Status wrong = set(options, option, value); !wrong.ok()) return wrong;
    kill_point_given = kill_point_given || option == "--kill-point";
  }
  if (options.rounds > 1 && !kill_point_given)
    options.kill_point = KillPoint{KillPoint::Kind::kRandom, {}, 0};
  return options;
}

std::string usage() {
  return "usage: pv2_demo [--data DIR] [--kill-point STEP|NUMBER|TIMEus|random|none] [--rounds N] "
         "[--seed N] [--table NAME] [--families A,B] [--regions N] [--help]";
}

std::string help() {
  return usage() + R"(

Creates a table on a small cluster of real processes, kills the master in the middle, starts
another one, and checks that everything happened, and happened once. Then kills a region server
while a client writes, and the master again while it recovers the server.

  --data DIR          where everything is kept; must be empty or new. Without it: a temporary
                      directory, removed when all is well
  --kill-point POINT  when the master is killed: in the middle of a step, at the NUMBER-th call of a
                      procedure, so many microseconds after the act begins (3500us), random, none.
                      Without it: WRITE_FS_LAYOUT and SPLIT_LOGS, or random with several rounds
  --rounds N          so many rounds, each at another random moment, one line each
  --seed N            repeats the random choices of an earlier run
  --table NAME        the table (t)
  --families A,B      its column families (f1)
  --regions N         its regions (3)

Steps: )" +
         known_steps() + "\nExit code: 0 all passed, 1 something failed, 2 a bad option.";
}

}  // namespace demo

// SPDX-License-Identifier: Apache-2.0
//
// The story of one campaign, from the first start of the server to the comparison.

#include "campaign.h"

#include <fmt/format.h>
#include <pv2/base/random.h>
#include <pv2/rpc/fault_proxy.h>
#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/tcp_transport.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "fleet.h"
#include "requests.h"
#include "server_process.h"

namespace counter {
namespace {

using pv2::Result;
using pv2::Status;
using pv2::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kIncrementsPerAppend = 16;
// One add in eight is for the purse and has 5 on average; it takes half of them.
constexpr std::uint64_t purse_limit(std::uint64_t increments) { return increments * 5 / 8 / 2; }
/// Without any answer for so long, nothing will come any more.
constexpr pv2::Duration kPatience = std::chrono::minutes(3);
// Procedures of one counter follow one another, each after the record of the one before it; those
// of different counters share the writes to the disk.
constexpr std::uint32_t kManyCounters = 24;
constexpr std::uint64_t kNever = UINT64_MAX;

std::string with_commas(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t at = 0; at < digits.size(); ++at) {
    if (at > 0 && (digits.size() - at) % 3 == 0) text += ',';
    text += digits[at];
  }
  return text;
}

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options),
        random_(options.seed),
        operations_(options.increments + options.increments / kIncrementsPerAppend),
        server_(options.directory + "/store", options.dedup) {}

  Result<CampaignReport> run();

 private:
  Status open();
  Status play();
  Status restart();
  Status read_and_compare();
  Result<std::string> read(const std::string& method, const ReadRequest& request);
  Result<std::string> read_text(const std::string& name);
  void plan_next_kill();
  void on_answer(std::uint64_t answers);
  void count();

  const CampaignOptions options_;
  pv2::Random random_;
  const std::uint64_t operations_;
  CampaignReport report_;
  // The campaign kills the server when the clients have had this number of answers. It chooses the
  // next number after each restart.
  std::atomic<std::uint64_t> next_kill_ = kNever;
  std::uint64_t kills_planned_ = 0;
  std::uint64_t told_answers_ = 0;

  ServerProcess server_;
  std::string server_address_;
  // The clients and the network have a thread each.
  std::shared_ptr<pv2::Transport> client_loop_;
  std::shared_ptr<pv2::Transport> network_loop_;
  std::shared_ptr<CountedFaults> faults_;
  std::unique_ptr<pv2::FaultProxy> network_;
  std::unique_ptr<Fleet> fleet_;
};

Result<CampaignReport> Campaign::run() {
  const auto begin = std::chrono::steady_clock::now();
  if (Status status = open(); !status.ok()) return status;
  fleet_->start();
  if (Status status = play(); !status.ok()) return status;
  if (Status status = read_and_compare(); !status.ok()) return status;
  count();
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report_;
}

Status Campaign::open() {
  for (auto* loop : {&client_loop_, &network_loop_}) {
    auto opened = pv2::tcp_transport();
    if (!opened.ok()) return opened.status();
    *loop = *std::move(opened);
  }
  auto address = server_.start();
  if (!address.ok()) return address.status();
  server_address_ = *std::move(address);

  auto faults = CountedFaults::create(options_.rates, options_.seed);
  if (!faults.ok()) return faults.status();
  faults_ = *std::move(faults);
  auto network = pv2::FaultProxy::open(
      {.transport = network_loop_.get(), .target = server_address_, .plan = faults_});
  if (!network.ok()) return network.status();
  network_ = *std::move(network);

  plan_next_kill();
  auto fleet = Fleet::open({.transport = client_loop_,
                            .address = network_->address(),
                            .way = options_.way,
                            .dedup = options_.dedup,
                            .clients = options_.clients,
                            .work = {.increments = options_.increments,
                                     .appends = operations_ - options_.increments,
                                     .in_flight = options_.in_flight,
                                     .counters = options_.way == Way::kEngine ? kManyCounters : 3,
                                     .purse_limit = purse_limit(options_.increments)},
                            .seed = options_.seed,
                            .on_answer = [this](std::uint64_t answers) { on_answer(answers); }});
  if (!fleet.ok()) return fleet.status();
  fleet_ = *std::move(fleet);
  return {};
}

// The kills are spread over the answers, each at a random place of its part.
void Campaign::plan_next_kill() {
  if (kills_planned_ == options_.kills) return;
  const std::uint64_t part = std::max(operations_ * 9 / 10 / options_.kills, std::uint64_t{1});
  next_kill_ = part * kills_planned_ + 1 + random_.below(part);
  ++kills_planned_;
}

void Campaign::on_answer(std::uint64_t answers) {
  if (answers < next_kill_.load()) return;
  next_kill_ = kNever;
  server_.kill_now();
}

Status Campaign::play() {
  std::uint64_t heard = 0;
  auto heard_at = std::chrono::steady_clock::now();
  // The last answers may have been on their way when the server was killed.
  while (!fleet_->has_finished() || server_.is_dying()) {
    switch (server_.hear(milliseconds(100))) {
      case ServerProcess::State::kRuns:
        break;
      case ServerProcess::State::kKilled:
        if (Status status = restart(); !status.ok()) return status;
        break;
      case ServerProcess::State::kEndedByItself:
        return {StatusCode::kInternal, "the server has ended by itself"};
    }
    const std::uint64_t answers = fleet_->answers();
    const auto now = std::chrono::steady_clock::now();
    if (answers != std::exchange(heard, answers)) heard_at = now;
    if (now - heard_at > kPatience) {
      return {StatusCode::kDeadlineExceeded,
              fmt::format("the clients have no more answers after {} of {}", answers, operations_)};
    }
    if (options_.progress && answers * 10 / operations_ > told_answers_ * 10 / operations_) {
      options_.progress(
          fmt::format("{} of {} operations have their answer; the server was killed "
                      "{} times",
                      with_commas(answers), with_commas(operations_), server_.kills()));
      told_answers_ = answers;
    }
  }
  return {};
}

// The port of the dead server may be anybody's by now, so nobody is connected to it.
Status Campaign::restart() {
  network_->set_new_connections(pv2::FaultProxy::NewConnections::kRefused);
  auto address = server_.start();
  if (!address.ok()) return address.status();
  server_address_ = *std::move(address);
  if (Status status = network_->set_target(server_address_); !status.ok()) return status;
  network_->set_new_connections(pv2::FaultProxy::NewConnections::kAccepted);
  plan_next_kill();
  return {};
}

// --- what there is in the end

Status Campaign::read_and_compare() {
  AnswerLedger& ledger = fleet_->ledger();
  report_.wrong = ledger.first_contradiction();
  const auto note = [this](const std::optional<std::string>& wrong) {
    if (wrong && report_.wrong.empty()) report_.wrong = *wrong;
  };
  for (const std::string& name : ledger.counters()) {
    const auto value = read("counter.get", {.name = name});
    if (!value.ok()) return value.status();
    const auto number = parse_number(*value);
    if (!number) return {StatusCode::kInternal, fmt::format("{} is '{}'", name, *value)};
    note(ledger.check_counter(name, *number));
    const AnswerLedger::Told told = ledger.told(name);
    report_.increments += told.done;
    report_.refused += told.failed;
    report_.counted += *number;
    report_.told += told.sum;
  }
  for (const std::string& name : ledger.texts()) {
    const auto text = read_text(name);
    if (!text.ok()) return text.status();
    note(ledger.check_text(name, *text));
    const AnswerLedger::Told told = ledger.told(name);
    report_.appends += told.done;
    report_.text_bytes += text->size();
    report_.told_bytes += told.sum;
  }
  return {};
}

/// Past the network that loses things.
Result<std::string> Campaign::read(const std::string& method, const ReadRequest& request) {
  auto client = pv2::RpcClient::open({.transport = client_loop_, .addresses = {server_address_}});
  if (!client.ok()) return client.status();
  const std::string prefix = options_.way == Way::kEngine ? "engine." : "";
  pv2::CallOutcome outcome = (*client)->call(prefix + method, to_body(request),
                                             {.read_only = true, .timeout = seconds(30)});
  if (!outcome.ok()) return outcome.status;
  return std::move(outcome.body);
}

Result<std::string> Campaign::read_text(const std::string& name) {
  std::string text;
  while (true) {
    auto more = read("text.get", {.name = name, .from = text.size()});
    if (!more.ok()) return more.status();
    if (more->empty()) return text;
    text += *more;
  }
}

void Campaign::count() {
  const Fleet::Counts fleet = fleet_->counts();
  report_.calls_sent = faults_->calls().sent;
  report_.calls_lost = faults_->calls().lost;
  report_.calls_repeated = faults_->calls().repeated;
  report_.replies_sent = faults_->replies().sent;
  report_.replies_lost = faults_->replies().lost;
  report_.replies_repeated = faults_->replies().repeated;
  report_.asked_again = fleet.asked_again;
  report_.connections = fleet.connections;
  report_.kills = server_.kills();
  report_.kills_planned = options_.kills;
  (void)server_.hear(milliseconds(200));  // its last counts
  report_.calls_handled = server_.counts().calls;
  report_.runs = server_.counts().runs;
}

}  // namespace

Result<CampaignReport> run_campaign(const CampaignOptions& options) {
  return Campaign(options).run();
}

std::string to_text(const CampaignReport& it) {
  const auto n = [](std::uint64_t number) { return with_commas(number); };
  std::string text = fmt::format(
      "   done: {} adds and {} appends; {} adds failed for good, because the purse is full\n",
      n(it.increments), n(it.appends), n(it.refused));
  text += fmt::format("   the network: {} calls were sent, {} were lost, {} came twice;\n",
                      n(it.calls_sent), n(it.calls_lost), n(it.calls_repeated));
  text += fmt::format("      of {} replies {} were lost, {} came twice\n", n(it.replies_sent),
                      n(it.replies_lost), n(it.replies_repeated));
  text += fmt::format("   the server: it was killed {} times of {}; about {} calls reached it\n",
                      n(it.kills), n(it.kills_planned), n(it.calls_handled));
  if (it.runs != 0) {
    text += fmt::format("      it ran {} operations, and gave {} copies the saved answer\n",
                        n(it.runs), n(it.calls_handled - std::min(it.calls_handled, it.runs)));
  }
  text += fmt::format("   the clients: they connected {} times, and asked again {} times after a\n",
                      n(it.connections), n(it.asked_again));
  text += "      call that ended as unknown\n";
  text += fmt::format("   in the end: the counters add up to {}, and clients were told {};\n",
                      n(it.counted), n(it.told));
  text += fmt::format("      the diary has {} bytes, and clients were told {}\n", n(it.text_bytes),
                      n(it.told_bytes));
  const auto operations = static_cast<double>(it.increments + it.refused + it.appends);
  text += fmt::format("   {:.1f} s, {} operations a second\n", it.seconds,
                      n(static_cast<std::uint64_t>(operations / it.seconds)));
  if (it.wrong.empty()) {
    return text + "   OK: each effect is there exactly once, and each answer was right\n";
  }
  return text + "   WRONG: " + it.wrong + '\n';
}

}  // namespace counter

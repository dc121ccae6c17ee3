// SPDX-License-Identifier: Apache-2.0
//
// The story of one campaign. The processes belong to the thread that started them, so this thread
// is also the one that kills them.

#include "campaign.h"

#include <fmt/format.h>
#include <pv2/base/random.h>
#include <pv2/cluster/cluster_processes.h>
#include <pv2/cluster/inspect_cluster.h>
#include <pv2/procedures/create_table.h>
#include <pv2/rpc/fault_routes.h>
#include <pv2/rpc/tcp_transport.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "operator.h"
#include "writers.h"

namespace campaign {
namespace {

using pv2::Result;
using pv2::Status;
using pv2::cluster::ChildProcess;
using pv2::cluster::ClusterClient;
using pv2::cluster::ClusterProcesses;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLease = seconds(2);
constexpr std::uint64_t kOperators = 3;
constexpr seconds kProgressEvery = seconds(10);

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options),
        random_(options.seed),
        processes_(
            {.root = options.directory, .lease = kLease, .heartbeat_every = milliseconds(200)}) {}

  Result<CampaignReport> run();

 private:
  Status begin();
  Status storm();
  Status end();
  Status compare();

  void disturb();
  void disturb_master();
  void kill_server(const std::string& host);
  void pause(ChildProcess* process, const std::string& name);
  /// What was stopped goes on, and what has died comes back, each at its time.
  Status revive(bool now);
  [[nodiscard]] std::string host(std::size_t number) const {
    return fmt::format("rs{}", number + 1);
  }
  [[nodiscard]] milliseconds some(std::uint64_t most) { return milliseconds(random_.below(most)); }
  void tell(bool now);
  [[nodiscard]] OrderCounts orders() const;

  const CampaignOptions options_;
  pv2::Random random_;
  CampaignReport report_;
  ClusterProcesses processes_;
  std::shared_ptr<pv2::Transport> loop_;
  std::shared_ptr<pv2::FaultRoutes> routes_;
  std::unique_ptr<ClusterClient> client_;  // past the network that loses things
  std::unique_ptr<Writers> writers_;
  std::vector<std::unique_ptr<Operator>> operators_;
  // By host; "" is the master.
  std::map<std::string, Clock::time_point> asleep_;
  std::map<std::string, Clock::time_point> dead_;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point told_ = begun_;
};

Result<CampaignReport> Campaign::run() {
  for (const auto step : {&Campaign::begin, &Campaign::storm, &Campaign::end, &Campaign::compare}) {
    if (Status bad = (this->*step)(); !bad.ok()) return bad;
  }
  const WriterCounts written = writers_->counts();
  const OrderCounts ordered = orders();
  const pv2::FaultCounts faults = routes_->counts();
  report_.increments = written.increments;
  report_.appends = written.appends;
  report_.puts = written.puts;
  report_.failed = written.failed;
  report_.unknown = written.unknown;
  report_.resumed = written.resumed;
  report_.orders = ordered.orders;
  report_.orders_done = ordered.done;
  report_.moves = ordered.moves;
  report_.frames_lost = faults.dropped;
  report_.frames_repeated = faults.duplicated;
  report_.cuts = faults.cut;
  report_.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  return report_;
}

Status Campaign::begin() {
  auto loop = pv2::tcp_transport();
  if (!loop.ok()) return loop.status();
  loop_ = *std::move(loop);
  if (Status bad = processes_.start(options_.servers); !bad.ok()) return bad;

  const auto find_master = pv2::cluster::master_of_root(options_.directory);
  const auto open = [&](std::shared_ptr<pv2::Transport> transport) {
    return ClusterClient::open(
        {.find_master = find_master, .transport = std::move(transport), .timeout = seconds(8)});
  };
  auto client = open(loop_);
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  const auto created = client_->executor().submit(
      pv2::CreateTable(pv2::ports_elsewhere(), {kTable, {"f"}}, pv2::even_split_keys(4)));
  if (!created.ok()) return created.status;
  if (const auto made = client_->executor().wait(created.id, minutes(1)); !made.ok()) {
    return made.status();
  }

  pv2::RandomFaultsOptions faults{
      .seed = options_.seed, .to_server = options_.rates, .to_client = options_.rates};
  routes_ = std::make_shared<pv2::FaultRoutes>(*loop_, "127.0.0.1:0", faults);
  const auto lossy = std::make_shared<pv2::FaultTransport>(loop_, routes_);
  writers_ = std::make_unique<Writers>(Writers::Options{.transport = lossy,
                                                        .find_master = find_master,
                                                        .writers = options_.clients,
                                                        .seed = options_.seed,
                                                        .forgets_nonces = options_.forgets_nonces});
  for (std::uint64_t i = 0; i < kOperators; ++i) {
    auto operating = open(lossy);
    if (!operating.ok()) return operating.status();
    operators_.push_back(
        std::make_unique<Operator>(*std::move(operating), i, options_.seed * 100 + i));
    operators_.back()->start();
  }
  return writers_->start();
}

Status Campaign::storm() {
  const auto end = Clock::now() + options_.time;
  auto next = Clock::now() + seconds(1);
  while (Clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(20));
    if (Status bad = revive(false); !bad.ok()) return bad;
    tell(false);
    if (Clock::now() < next) continue;
    next = Clock::now() + milliseconds(300) + some(3500);
    disturb();
  }
  return {};
}

void Campaign::disturb() {
  const std::uint64_t choice = random_.below(10);
  if (choice < 3) return disturb_master();
  std::string chosen = host(random_.below(options_.servers));
  // The host of the catalogue more often than others.
  if (random_.below(4) == 0) {
    if (const auto list = client_->servers(); list.ok() && !list->meta.server.empty()) {
      chosen = list->meta.server.host;
    }
  }
  if (choice < 7) {
    kill_server(chosen);
    // Two die together.
    if (random_.below(5) == 0) kill_server(host(random_.below(options_.servers)));
    return;
  }
  pause(processes_.server(chosen), chosen);
}

void Campaign::disturb_master() {
  if (processes_.master() == nullptr || !processes_.master_lives() || asleep_.contains("")) return;
  if (random_.below(3) == 0) return pause(processes_.master(), "");
  processes_.kill_master();
  ++report_.master_kills;
  dead_[""] = Clock::now() + some(1500);
}

void Campaign::kill_server(const std::string& host) {
  if (!processes_.kill_server(host).ok()) return;
  ++report_.server_kills;
  asleep_.erase(host);
  dead_[host] = Clock::now() + some(2500);
}

// Often for longer than a lease: it is taken for dead, and finds that out when it goes on.
void Campaign::pause(ChildProcess* process, const std::string& name) {
  if (process == nullptr || process->is_gone() || asleep_.contains(name)) return;
  process->pause();
  ++report_.pauses;
  asleep_[name] = Clock::now() + milliseconds(200) + some(3 * kLease.count());
}

Status Campaign::revive(bool now) {
  for (auto entry = asleep_.begin(); entry != asleep_.end();) {
    if (!now && Clock::now() < entry->second) {
      ++entry;
      continue;
    }
    ChildProcess* const process =
        entry->first.empty() ? processes_.master() : processes_.server(entry->first);
    if (process != nullptr) process->resume();
    entry = asleep_.erase(entry);
  }
  // Who has ended by itself, because it was taken for dead, comes back like the others.
  if (!processes_.master_lives() && !dead_.contains("")) {
    processes_.kill_master();
    dead_[""] = Clock::now();
  }
  for (std::size_t i = 0; i < options_.servers; ++i) {
    ChildProcess* const process = processes_.server(host(i));
    if (dead_.contains(host(i)) || (process != nullptr && !process->is_gone())) continue;
    (void)processes_.kill_server(host(i));
    dead_[host(i)] = Clock::now() + some(1000);
  }
  for (auto entry = dead_.begin(); entry != dead_.end();) {
    if (!now && Clock::now() < entry->second) {
      ++entry;
      continue;
    }
    const Status started = entry->first.empty() ? processes_.start_master()
                                                : processes_.start_server(entry->first).status();
    if (!started.ok()) return started.with_context("starting '" + entry->first + "'");
    entry = dead_.erase(entry);
  }
  return {};
}

OrderCounts Campaign::orders() const {
  OrderCounts all;
  for (const auto& one : operators_) {
    const OrderCounts counts = one->counts();
    all.orders += counts.orders;
    all.done += counts.done;
    all.moves = std::max(all.moves, counts.moves);
  }
  return all;
}

void Campaign::tell(bool now) {
  if (!options_.progress || (!now && Clock::now() < told_ + kProgressEvery)) return;
  told_ = Clock::now();
  const WriterCounts written = writers_->counts();
  const OrderCounts ordered = orders();
  const auto at = std::chrono::duration_cast<seconds>(Clock::now() - begun_);
  options_.progress(fmt::format(
      "{:5} s: {} writes done, {} answers unknown, {} resumed; killed {} servers and {} masters, "
      "{} pauses; {} of {} orders done, {} moves of regions",
      at.count(), written.increments + written.appends + written.puts, written.unknown,
      written.resumed, report_.server_kills, report_.master_kills, report_.pauses, ordered.done,
      ordered.orders, ordered.moves));
}

Status Campaign::end() {
  if (Status bad = revive(true); !bad.ok()) return bad;
  // What the network does goes on until the last write is known.
  for (const auto& one : operators_) one->stop();
  if (Status bad = revive(true); !bad.ok()) return bad;
  if (Status bad = operators_.front()->tidy_up(); !bad.ok()) return bad;
  if (Status bad = writers_->finish(minutes(3)); !bad.ok()) return bad;
  if (Status bad = operators_.front()->tidy_up(); !bad.ok()) return bad;
  tell(true);
  return {};
}

Status Campaign::compare() {
  auto wrong = writers_->compare(*client_);
  if (!wrong.ok()) return wrong.status();
  report_.wrong = *std::move(wrong);
  // A server that was taken for dead a moment ago may still be on its way out.
  const auto end = Clock::now() + minutes(1);
  std::string disorder;
  do {
    std::this_thread::sleep_for(milliseconds(500));
    if (Status bad = revive(true); !bad.ok()) return bad;
    const auto world = pv2::cluster::inspect_cluster(*client_, options_.directory);
    disorder = world.status().to_string();
    if (!world.ok()) continue;
    const std::vector<std::string> found = pv2::find_disorder(*world);
    if (found.empty()) return {};
    disorder = found.front();
  } while (Clock::now() < end);
  if (report_.wrong.empty()) report_.wrong = disorder;
  return {};
}

}  // namespace

Result<CampaignReport> run_campaign(const CampaignOptions& options) {
  return Campaign(options).run();
}

std::string to_text(const CampaignReport& it) {
  std::string text = fmt::format(
      "   {} increments, {} appends and {} puts were done; {} writes failed for good\n"
      "   the outcome of {} calls was unknown; {} writes were sent again until it was known\n"
      "   the network lost {} frames, repeated {} and was cut {} times\n"
      "   {} servers and {} masters were killed, {} processes were stopped for a while\n"
      "   {} of {} orders succeeded; a region was found on another server {} times\n"
      "   {:.1f} s\n",
      it.increments, it.appends, it.puts, it.failed, it.unknown, it.resumed, it.frames_lost,
      it.frames_repeated, it.cuts, it.server_kills, it.master_kills, it.pauses, it.orders_done,
      it.orders, it.moves, it.seconds);
  if (!it.wrong.empty()) return text + "   WRONG: " + it.wrong + "\n";
  return text +
         "   OK: each write that was acknowledged is there, once, and the cluster is in order\n";
}

}  // namespace campaign

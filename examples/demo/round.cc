// SPDX-License-Identifier: Apache-2.0
//
// The story of one round, told and checked.

#include "round.h"

#include <fmt/format.h>
#include <pv2/cluster/inspect_cluster.h>
#include <pv2/procedures/cluster_ports.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/server_crash.h>
#include <pv2/rpc/tcp_transport.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

namespace demo {
namespace {

using namespace std::chrono_literals;
using pv2::cluster::ClusterClient;

constexpr int kServers = 3;
// The nonce of the client's one table.
constexpr pv2::Nonce kNonce{1, 42};
// Longer than anything takes on a busy machine.
constexpr auto kPatience = 2min;
// A server's death is noticed soon: a person is watching.
constexpr pv2::Duration kLease = 1s;
constexpr pv2::Duration kHeartbeat = 100ms;

std::string in_words(const pv2::RegionRow& row) {
  return row.region.id.substr(0, 6) + " on " + row.server.host;
}

std::string pretty(const std::string& type) { return type.substr(type.find('.') + 1); }

}  // namespace

RoundPlan make_plan(const std::optional<KillPoint>& asked, pv2::Random& random) {
  RoundPlan plan;
  if (!asked) {
    plan.in_create = {KillPoint::Kind::kStep, "WRITE_FS_LAYOUT", 0};
    plan.in_crash = {KillPoint::Kind::kStep, "SPLIT_LOGS", 0};
    return plan;
  }
  if (asked->kind != KillPoint::Kind::kRandom) {
    (act_of(*asked) == Act::kCreateTable ? plan.in_create : plan.in_crash) = *asked;
    return plan;
  }
  plan.in_create = random_kill_point(Act::kCreateTable, random);
  if (random.below(4) == 0) plan.in_replay = random_kill_point(Act::kCreateTable, random);
  plan.server_dies_early = random.below(4) == 0;
  if (!plan.server_dies_early) plan.in_crash = random_kill_point(Act::kServerCrash, random);
  return plan;
}

std::string to_string(const RoundPlan& plan) {
  std::string text = "killed at " + to_string(plan.in_create);
  if (plan.in_replay.kind != KillPoint::Kind::kNone)
    text += ", " + to_string(plan.in_replay) + " of the replay";
  return text + (plan.server_dies_early ? ", a server dies meanwhile"
                                        : ", " + to_string(plan.in_crash) + " of the server crash");
}

Round::Round(std::string directory, const Options& options, RoundPlan plan, pv2::Random& random,
             Report& report)
    : root_(directory + "/cluster"),
      options_(options),
      plan_(std::move(plan)),
      random_(random),
      report_(report),
      processes_({.root = root_, .lease = kLease, .heartbeat_every = kHeartbeat}),
      keeper_(processes_, plan_,
              {.died = [this](const std::string& last_words) { tell_death(last_words); },
               .started = [this] { tell_started(); }}),
      table_{"default", options.table} {}

Round::~Round() = default;

void Round::play() {
  if (begin() && create_table()) lose_server();
  counter_.reset();  // while there is a cluster that answers
}

bool Round::begin() {
  pv2::Status started = keeper_.start();
  std::string names;
  for (int i = 1; started.ok() && i <= kServers; ++i) {
    const auto server = processes_.start_server("rs" + std::to_string(i));
    started = server.status();
    if (!server.ok()) break;
    names += fmt::format("{}{} (process {})", i == 1 ? "" : ", ", server->host,
                         processes_.server(server->host)->pid());
  }
  auto transport = pv2::tcp_transport();
  if (started.ok()) started = transport.status();
  if (started.ok()) {
    transport_ = *transport;
    auto client = ClusterClient::open({.find_master = pv2::cluster::master_of_root(root_),
                                       .transport = transport_,
                                       .timeout = kPatience});
    started = client.status();
    if (client.ok()) client_ = *std::move(client);
  }
  if (!started.ok()) {
    report_.check("the cluster starts", false, started.to_string());
    return false;
  }
  report_.tell("Three region servers register: " + names + ".");
  return true;
}

template <class T>
std::optional<T> Round::answer(const std::function<void(std::function<void(T)>)>& ask) {
  const auto promise = std::make_shared<std::promise<T>>();
  auto future = promise->get_future();
  ask([promise](T value) { promise->set_value(std::move(value)); });
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (future.wait_for(1ms) != std::future_status::ready) {
    if (const pv2::Status bad = keeper_.watch(); !bad.ok()) {
      report_.check("another master starts", false, bad.to_string());
      return std::nullopt;
    }
    if (std::chrono::steady_clock::now() > end) return std::nullopt;
  }
  return future.get();
}

pv2::SubmitOutcome Round::submit_create() {
  const auto outcome = answer<pv2::SubmitOutcome>([&](auto done) {
    client_->executor().submit(pv2::CreateTable(pv2::ports_elsewhere(), {table_, options_.families},
                                                pv2::even_split_keys(options_.regions)),
                               {.nonce = kNonce, .timeout = kPatience}, std::move(done));
  });
  return outcome.value_or(pv2::SubmitOutcome{});
}

std::optional<pv2::ProcedureResult> Round::result_of(pv2::ProcedureId id) {
  const auto result = answer<pv2::Result<pv2::ProcedureResult>>(
      [&](auto done) { client_->executor().wait(id, kPatience, std::move(done)); });
  if (!result || !result->ok()) return std::nullopt;
  return **result;
}

bool Round::create_table() {
  report_.tell(fmt::format("\nA client wants table '{}' with {} regions.", options_.table,
                           options_.regions));
  keeper_.begin(Act::kCreateTable);
  const pv2::SubmitOutcome accepted = submit_create();
  if (!accepted.ok()) {
    report_.check("CreateTable is accepted", false, accepted.status.to_string());
    return false;
  }
  report_.tell(
      fmt::format("   A master answers: procedure {}. That is a promise.", accepted.id.value));
  if (plan_.server_dies_early) {
    victim_ = processes_.servers().at(random_.below(kServers));
    kill_victim();
  }
  const auto result = result_of(accepted.id);
  keeper_.spare();
  report_.check("CreateTable ends with success", result && result->status.ok(),
                result ? result->status.to_string() : "it does not end");
  if (!result || !result->status.ok()) return false;
  const pv2::SubmitOutcome again = submit_create();
  report_.check(fmt::format("asked again under the same nonce, the master answers procedure {}",
                            accepted.id.value),
                again.ok() && again.id == accepted.id && again.replayed,
                fmt::format("it answers procedure {}", again.id.value));
  if (!plan_.server_dies_early) check_world("after CreateTable");
  return true;
}

void Round::kill_victim() {
  report_.tell(fmt::format("   Region server {} (process {}) is killed.", victim_.host,
                           processes_.server(victim_.host)->pid()));
  static_cast<void>(processes_.kill_server(victim_.host));
}

bool Round::lose_server() {
  counter_ = std::make_unique<CountingClient>(*client_, table_, options_.families.front());
  report_.tell("\nA client counts in the rows of the table, one addition after the other.");
  const pv2::ClusterSnapshot before = look();
  counter_->start();
  if (!plan_.server_dies_early) {
    // Chooses a server that has regions to lose.
    victim_ = before.regions.at(random_.below(before.regions.size())).server;
    while (counter_->acknowledged() < 100) std::this_thread::yield();
    keeper_.begin(Act::kServerCrash);
    kill_victim();
  }
  const auto found = answer<pv2::ProcedureId>([&](auto done) {
    // Nobody tells the client that a ServerCrash began: it asks until there is one.
    const auto ask = std::make_shared<std::function<void()>>();
    *ask = [this, ask, done = std::move(done)] {
      client_->executor().find(pv2::crash_nonce(victim_),
                               [ask, done](const pv2::Result<pv2::ProcedureId>& id) {
                                 if (id.ok()) {
                                   done(*id);
                                   *ask = nullptr;
                                 } else {
                                   (*ask)();
                                 }
                               });
    };
    (*ask)();
  });
  const auto result = found ? result_of(*found) : std::nullopt;
  keeper_.spare();
  report_.check("the master notices, and ServerCrash ends with success",
                result && result->status.ok(),
                result ? result->status.to_string() : "it does not end");
  if (!result) return false;
  counter_->stop();
  report_.tell(
      fmt::format("   Meanwhile {} additions were acknowledged.\n", counter_->acknowledged()));
  check_world("after ServerCrash");
  report_.check("each acknowledged addition is there, once", counter_->check());
  if (!plan_.server_dies_early) check_moves(before);
  return true;
}

void Round::check_moves(const pv2::ClusterSnapshot& before) {
  std::vector<std::string> wrong;
  std::string moves;
  for (const pv2::RegionRow& row : look().regions) {
    const auto old = std::ranges::find(before.regions, row.region, &pv2::RegionRow::region);
    const bool was_there = old != before.regions.end() && old->server == victim_;
    if (was_there) moves += "\n   " + in_words(row) + ", which was on " + victim_.host;
    if (!was_there && *old != row) {
      wrong.push_back("region " + in_words(row) + " moved without need");
    }
  }
  report_.check("the other servers kept their regions", wrong);
  report_.tell("\nWhere the regions of " + victim_.host + " are now:" + moves);
}

void Round::tell_started() {
  report_.tell(fmt::format("\nA master starts (process {}).", processes_.master()->pid()));
  if (!client_) return;
  // Not through answer(), which would come here again.
  pv2::ListFilter roots;
  const auto promise = std::make_shared<std::promise<pv2::Result<pv2::ProcedurePage>>>();
  auto future = promise->get_future();
  client_->executor().list(roots, {}, 100, [promise](pv2::Result<pv2::ProcedurePage> page) {
    promise->set_value(std::move(page));
  });
  if (future.wait_for(5s) != std::future_status::ready) return;
  const auto page = future.get();
  if (!page.ok()) return;
  for (const pv2::ProcedureInfo& info : page->procedures) {
    if (info.id != info.root) continue;
    report_.tell(fmt::format("   It has found procedure {}, {}, and goes on with it: {}.",
                             info.id.value, pretty(info.type),
                             info.step_name.empty() ? "at its end" : info.step_name));
  }
}

void Round::tell_death(const std::string& last_words) {
  report_.tell("   SIGKILL to the master" +
               (last_words.empty() ? "." : ", while " + last_words + "."));
}

void Round::check_world(const std::string& when) {
  const pv2::ClusterSnapshot world = look();
  report_.check(when + ", catalogue, directories and servers agree", pv2::find_disorder(world));
  report_.check(
      when + fmt::format(", there is one table of {} regions", options_.regions),
      world.tables.size() == 1 && world.regions.size() == options_.regions,
      fmt::format("there are {} tables and {} regions", world.tables.size(), world.regions.size()));
}

pv2::ClusterSnapshot Round::look() const {
  auto world = pv2::cluster::inspect_cluster(*client_, root_);
  if (world.ok()) return *std::move(world);
  report_.check("the cluster can be looked at", false, world.status().to_string());
  return {};
}

}  // namespace demo

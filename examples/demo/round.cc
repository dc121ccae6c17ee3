// SPDX-License-Identifier: Apache-2.0
//
// The story of one round, told and checked.

#include "round.h"

#include <fmt/format.h>
#include <pv2/procedures/local_cluster.h>
#include <pv2/procedures/region_server.h>

#include <algorithm>
#include <utility>

namespace demo {
namespace {

constexpr int kServers = 3;
// The nonce of a client's one operation. The group keeps it apart from other clients.
constexpr std::uint64_t kNonceGroup = 1;
constexpr std::uint64_t kNonce = 42;

std::string in_words(const pv2::RegionRow& row) {
  return row.region.id.substr(0, 6) + " on " + row.server.host;
}

std::string pretty(const std::string& type) { return type.substr(type.find('.') + 1); }

std::vector<std::string> findings(const pv2::ClusterSnapshot& world, bool about_effects) {
  std::vector<std::string> found = pv2::find_disorder(world);
  std::erase_if(found, [&](const std::string& finding) {
    return finding.starts_with("effect ") != about_effects;
  });
  return found;
}

}  // namespace

RoundPlan make_plan(const KillPoint& asked, pv2::Random& random) {
  RoundPlan plan;
  if (asked.kind != KillPoint::Kind::kRandom) {
    (act_of(asked) == Act::kCreateTable ? plan.in_create : plan.in_crash) = asked;
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
    : directory_(std::move(directory)),
      options_(options),
      plan_(std::move(plan)),
      random_(random),
      report_(report),
      servers_((static_cast<void>(pv2::make_cluster_directory(directory_ + "/cluster").ok()),
                directory_),
               kServers) {
  create_ = {"CreateTable", create_command(options_, kNonceGroup, kNonce), {}, {}};
}

void Round::play() {
  std::string names;
  for (const pv2::ServerName& name : servers_.names()) {
    names +=
        fmt::format("{}{} (process {})", names.empty() ? "" : ", ", name.host, servers_.pid(name));
  }
  report_.tell("A cluster of three region servers runs: " + names + ".");
  create_table();
  if (!broken_) crash_server();
  if (executor_) executor_->finish();
}

void Round::create_table() {
  std::vector<Request*> requests{&create_};
  if (plan_.server_dies_early) {
    victim_ = servers_.names()[random_.below(kServers)];
    crash_ = {"ServerCrash", crash_command(victim_), {}, {}};
    requests.push_back(&crash_);
  }
  drive(requests, {plan_.in_create, plan_.in_replay});
  check_ended(create_);
  if (broken_) return;
  check_replayed(create_);
  if (plan_.server_dies_early) return;  // checked together with the crash
  check_world("after CreateTable");
  const pv2::ClusterSnapshot world = look();
  std::vector<std::string> again;
  for (const pv2::RegionRow& row : world.regions) {
    if (row.open_sequence != 1)
      again.push_back("region " + in_words(row) + " was opened more than once");
  }
  report_.check("each region was opened once", again);
}

void Round::crash_server() {
  if (!plan_.server_dies_early) {
    choose_victim();
    crash_ = {"ServerCrash", crash_command(victim_), {}, {}};
    if (plan_.in_crash.kind != KillPoint::Kind::kNone) {
      executor_->finish();
      executor_.reset();
    }
    report_.tell(fmt::format("\nRegion server {} (process {}) is killed.", victim_.host,
                             servers_.pid(victim_)));
    servers_.kill(victim_);
    drive({&crash_}, {plan_.in_crash});
  }
  check_ended(crash_);
  if (broken_) return;
  check_replayed(crash_);
  check_world("after ServerCrash");
  if (plan_.server_dies_early) return;
  const pv2::ClusterSnapshot world = look();
  std::vector<std::string> wrong;
  std::string moves;
  for (const pv2::RegionRow& row : world.regions) {
    const auto old = std::ranges::find(before_crash_.regions, row.region, &pv2::RegionRow::region);
    const bool was_there = old != before_crash_.regions.end() && old->server == victim_;
    if (was_there) moves += "\n   " + in_words(row) + ", which was on " + victim_.host;
    if (!was_there && *old != row)
      wrong.push_back("region " + in_words(row) + " moved without need");
    if (was_there && row.open_sequence != old->open_sequence + 1) {
      wrong.push_back("region " + in_words(row) + " was not moved exactly once");
    }
  }
  report_.check("the regions of " + victim_.host + " moved once, the others stayed", wrong);
  report_.tell("\nWhere they are now:" + moves);
}

void Round::drive(const std::vector<Request*>& requests, std::vector<KillPoint> kills) {
  std::ranges::reverse(kills);
  bool server_died = false;
  while (!broken_) {
    if (!executor_ || executor_->dead()) {
      begin_life(kills.empty() ? KillPoint{} : kills.back());
      if (!kills.empty()) kills.pop_back();
    }
    bool alive = !executor_->dead();
    for (Request* request : requests) {
      // A crash cannot be reported before it happens.
      if (request == &crash_ && plan_.server_dies_early && !std::exchange(server_died, true)) {
        servers_.kill(victim_);
        report_.tell(fmt::format("   Region server {} is killed meanwhile.", victim_.host));
      }
      alive = alive && submit(*request);
    }
    for (Request* request : requests) {
      if (!alive || request->ended) continue;
      request->ended = executor_->wait(*request->id);
      alive = request->ended.has_value();
    }
    if (alive) return executor_->spare();
    if (!executor_->refusal().empty()) {
      report_.check("the executor takes the request", false, executor_->refusal());
      broken_ = true;
    }
    tell_death();
  }
}

bool Round::submit(Request& request) {
  const auto accepted = executor_->submit(request.command);
  if (!accepted) return false;
  if (!request.id) {
    report_.tell(fmt::format("   It is asked for {}, and answers: procedure {}. That is a promise.",
                             request.what, accepted->id));
  } else if (*request.id != accepted->id) {
    report_.check(
        "a promised procedure keeps its id", false,
        fmt::format("{} was procedure {} and is {} now", request.what, *request.id, accepted->id));
  }
  request.id = accepted->id;
  return true;
}

void Round::begin_life(const KillPoint& kill_point) {
  executor_.reset();
  executor_ = std::make_unique<ExecutorClient>(directory_, kill_point);
  report_.tell(fmt::format("\nAn executor starts on LevelDB (process {}).", executor_->pid()));
  for (const auto& found : executor_->found()) {
    report_.tell(fmt::format("   It finds procedure {}, {}, at step {}, and goes on from there.",
                             found.id, pretty(found.type), found.step));
  }
}

void Round::tell_death() {
  ++kills_;
  std::string how = executor_->last_words().empty() ? "" : " while " + executor_->last_words();
  report_.tell("   SIGKILL" + how + ".");
  const pv2::ClusterSnapshot world = look();
  const std::size_t folders = world.directories.empty() ? 0 : world.directories[0].regions.size();
  const auto open =
      std::ranges::count(world.regions, pv2::RegionState::kOpen, &pv2::RegionRow::state);
  report_.tell(fmt::format(
      "   It leaves a world half done: of {} regions {} have a directory, {} a row in the "
      "catalogue, {} are open.",
      options_.regions, folders, world.regions.size(), open));
}

void Round::check_ended(const Request& request) {
  if (!request.ended) {
    broken_ = true;
    return report_.check(request.what + " ends", false);
  }
  report_.tell(fmt::format("   Procedure {} has ended: {} {}\n", *request.id, request.ended->state,
                           request.ended->result));
  broken_ = request.ended->state != "SUCCESS";
  report_.check(request.what + " ends with success", !broken_,
                request.ended->state + " " + request.ended->result);
}

void Round::check_replayed(const Request& request) {
  const auto accepted = executor_->submit(request.command);
  if (!accepted) {
    broken_ = true;
    return report_.check("the executor lives", false, executor_->refusal());
  }
  report_.check(fmt::format("asked again under the same nonce, it answers procedure {}, replayed",
                            *request.id),
                accepted->id == *request.id && accepted->replayed,
                fmt::format("it answers procedure {}, {}", accepted->id,
                            accepted->replayed ? "replayed" : "new"));
}

void Round::check_world(const std::string& when) {
  const pv2::ClusterSnapshot world = look();
  report_.check(when + ", catalogue, directories and assignments agree", findings(world, false));
  report_.check(when + ", each effect has taken place exactly once", findings(world, true));
  const auto rows = static_cast<std::uint64_t>(world.regions.size());
  report_.check(when + fmt::format(", there is one table of {} regions", options_.regions),
                world.tables.size() == 1 && rows == options_.regions,
                fmt::format("there are {} tables and {} regions", world.tables.size(), rows));
}

pv2::ClusterSnapshot Round::look() const {
  auto world = pv2::inspect_cluster(directory_ + "/cluster");
  if (world.ok()) return *std::move(world);
  report_.check("the cluster can be looked at", false, world.status().to_string());
  return {};
}

void Round::choose_victim() {
  before_crash_ = look();
  // Chooses a server that has regions to lose.
  victim_ = before_crash_.regions.at(random_.below(before_crash_.regions.size())).server;
}

}  // namespace demo

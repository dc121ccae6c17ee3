// SPDX-License-Identifier: Apache-2.0
//
// The story in three parts: the storm, how it becomes quiet, and what there is in the end.

#include "cluster/simulation/random_story.h"

#include <pv2/engine/inspection.h>
#include <pv2/procedures/create_namespace.h>
#include <pv2/procedures/create_table.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "storage/peer_files.h"

namespace pv2::testing::cluster_simulation {

using namespace pv2::cluster;  // NOLINT: of the simulation
using cluster_world::ClusterWorld;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

constexpr std::size_t kServersMax = 5;
constexpr Duration kLease = seconds(4);

RandomFaultsOptions faults(std::uint64_t seed) {
  RandomFaultsOptions options{.seed = seed * 1000 + 1};
  options.delay_max = milliseconds(300);
  options.hold_back_max = milliseconds(300);
  return options;
}

FaultRates rates(std::uint64_t roughness) {
  switch (roughness) {
    case 0:
      return {};
    case 1:
      return {.drop = 0.01, .duplicate = 0.02, .delay = 0.05, .reorder = 0.02, .cut = 0.002};
    default:
      return {.drop = 0.05,
              .duplicate = 0.05,
              .delay = 0.2,
              .reorder = 0.05,
              .cut = 0.01,
              .half_open = 0.002};
  }
}

}  // namespace

StoryCounts& StoryCounts::operator+=(const StoryCounts& other) {
  writes += other.writes;
  done_writes += other.done_writes;
  unknown += other.unknown;
  orders += other.orders;
  done += other.done;
  server_deaths += other.server_deaths;
  master_deaths += other.master_deaths;
  stops += other.stops;
  power_cuts += other.power_cuts;
  deposed += other.deposed;
  moves += other.moves;
  turns += other.turns;
  return *this;
}

RandomStory::RandomStory(std::uint64_t seed)
    : random_(seed),
      world_(seed),
      route_(*world_.transport, "way:0", faults(seed)),
      inner_route_(*world_.transport, "inner:0", faults(seed + 1)),
      orders_(world_, history_, random_, [this](const std::string& line) { tell(line); }),
      clients_(
          world_, history_, random_,
          [this](const std::string& address) { return *route_.through(address); },
          [this](const std::string& line) { tell(line); }),
      watch_(world_) {
  world_.lease = kLease;
  // Little memory and short logs: a story meets flushes, compactions and logs that are archived.
  const std::size_t memory_max = 2048 << random_.below(4);
  const std::uint64_t log_bytes_max = 1024 << random_.below(4);
  const std::size_t logs_max = 2 + random_.below(3);
  world_.adjust_server = [=](RegionServerOptions& options) {
    options.heartbeat_every = milliseconds(500);
    options.report_pause_max = seconds(1);
    options.memory_max = memory_max;
    options.log_bytes_max = log_bytes_max;
    options.logs_max = logs_max;
  };
  if (one_in(2)) {
    world_.route = [this](const std::string& address) { return *inner_route_.through(address); };
  }
}

std::string RandomStory::run() {
  begin();
  if (!is_wrong()) storm();
  if (!is_wrong()) become_quiet();
  if (!is_wrong()) check_end();
  counts_.writes = history_.size();
  counts_.done_writes = history_.count(Write::State::kAcknowledged);
  counts_.orders = orders_.size();
  counts_.done = orders_.done();
  counts_.moves = watch_.moves();
  if (!is_wrong()) return {};
  const char* const show = std::getenv("PV2_STORY_LINES");
  const std::size_t lines_max = show != nullptr ? std::strtoull(show, nullptr, 10) : 400;
  std::string text = trouble_ + "\n";
  const std::size_t first = lines_.size() > lines_max ? lines_.size() - lines_max : 0;
  for (std::size_t i = first; i < lines_.size(); ++i) text += lines_[i] + "\n";
  return text + trouble_ + "\n";
}

void RandomStory::tell(const std::string& line) {
  const auto at =
      std::chrono::duration_cast<milliseconds>(world_.clock->steady_now().time_since_epoch());
  lines_.push_back(std::to_string(at.count()) + " ms: " + line);
  for (const char byte : lines_.back()) {
    hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  }
}

void RandomStory::wrong(const std::string& what) {
  if (trouble_.empty()) trouble_ = what;
}

bool RandomStory::is_wrong() {
  if (!history_.contradiction().empty()) {
    wrong("every acknowledged write is readable and exact: " + history_.contradiction());
  }
  if (!orders_.contradiction().empty()) {
    wrong("one nonce is one execution: " + orders_.contradiction());
  }
  if (!watch_.disorder().empty()) wrong(watch_.disorder());
  return !trouble_.empty();
}

// --- the beginning: nothing goes wrong yet

void RandomStory::begin() {
  world_.start_master();
  const std::size_t servers = 1 + random_.below(4);
  for (std::size_t i = 0; i < servers; ++i) start_some_server();
  world_.run_until_quiet();
  REQUIRE(world_.run(CreateNamespace(ports_elsewhere(), {"n"})).status.ok());
  for (const TableName& table : orders_.tables()) {
    const std::size_t regions = 1 + random_.below(4);
    REQUIRE(world_.run(CreateTable(ports_elsewhere(), {table, {"f"}}, even_split_keys(regions)))
                .status.ok());
  }
  mildness_ = random_.below(100);
  REQUIRE(route_.set_rates(rates(random_.below(3))).ok());
  REQUIRE(inner_route_.set_rates(rates(random_.below(3))).ok());
}

// --- the storm

void RandomStory::storm() {
  const std::uint64_t moves = 60 + random_.below(200);
  for (std::uint64_t i = 0; i < moves && !is_wrong(); ++i) {
    move();
    // Some moves follow at once, others find that all has been done.
    if (one_in(4)) continue;
    run_turns(random_.below(300));
    pass(milliseconds(1 + random_.below(80)));
    if (one_in(3)) run_turns(1000);
  }
}

void RandomStory::move() {
  const std::uint64_t choice = random_.below(100);
  const bool is_mild = choice >= 69 && choice < 94 && random_.below(100) < mildness_;
  if (choice < 50 || is_mild) {
    // Several at once meet each other.
    for (std::uint64_t i = random_.below(6); i > 0; --i) clients_.act(orders_.tables());
    return clients_.act(orders_.tables());
  }
  if (choice < 66) return orders_.act(clients_.any().executor());
  if (choice < 69) return orders_.abort_one(clients_.any().executor());
  if (choice < 72) return clients_.replace_one();
  if (choice < 74) return watch_.look_at_procedures();
  if (choice < 86) return disturb_servers(random_.below(13));
  if (choice < 93) return disturb_master(random_.below(10));
  if (choice < 94) {
    // At some operation on a file, or at once.
    cuts_power_ = true;
    world_.env.crash_before_operation(random_.below(40), one_in(2)   ? CrashEnv::TornTail::kRandom
                                                         : one_in(2) ? CrashEnv::TornTail::kNone
                                                                     : CrashEnv::TornTail::kBytes);
    return tell("the power will fail");
  }
  const Duration time = milliseconds(1 << random_.below(13));
  pass(time);
}

void RandomStory::disturb_servers(std::uint64_t choice) {
  const std::vector<ServerName> servers = world_.servers();
  if (servers.empty() || choice < 3) return start_some_server();
  const ServerName server = servers[random_.below(servers.size())];
  if (choice < 7) {
    kill_some_server();
    // Sometimes two die together.
    if (one_in(3)) kill_some_server();
    return;
  }
  if (choice < 9) {
    if (world_.is_stopped(server)) return;
    tell(to_string(server) + " stops");
    ++counts_.stops;
    return world_.stop_server(server);
  }
  if (choice < 11) {
    for (const ServerName& name : servers) {
      if (!world_.is_stopped(name)) continue;
      tell(to_string(name) + " goes on");
      world_.resume_server(name);
    }
    return;
  }
  if (choice == 12) {
    if (!world_.is_stopped(server)) haunt(server);
    return;
  }
  // Once for each server.
  if (world_.is_stopped(server) || !std::exchange(known_[server], false)) return;
  tell(to_string(server) + " is asked to end");
  world_.begin_end_of_server(server);
}

// A server stops while requests are on their way to it, is taken for dead, and goes on.
void RandomStory::haunt(const ServerName& server) {
  tell(to_string(server) + " stops, and will come back as a ghost");
  ++counts_.stops;
  world_.stop_server(server);
  clients_.insist_on(server);
  const SteadyTime end = world_.clock->steady_now() + kLease + seconds(random_.below(8));
  while (world_.clock->steady_now() < end && !is_wrong()) {
    pass(milliseconds(200));
    // The others go on, wherever the regions are by now.
    if (one_in(3)) clients_.act(orders_.tables());
    run_turns(100);
  }
  const auto is_gone = [&] {
    const std::vector<ServerName> servers = world_.servers();
    return std::ranges::find(servers, server) == servers.end();
  };
  if (is_gone()) return;
  for (int i = 0; i < 3; ++i) clients_.read_from(server);
  // The requests arrive before it goes on.
  run_turns(200);
  if (is_gone()) return;
  tell(to_string(server) + " goes on");
  world_.resume_server(server);
  run_turns(500);
}

void RandomStory::kill_some_server() {
  const std::vector<ServerName> servers = world_.servers();
  if (servers.empty()) return;
  ServerName server = servers[random_.below(servers.size())];
  // The host of the catalogue more often than others.
  if (world_.has_master() && one_in(3)) {
    const ServerName host = world_.master().servers().meta.server;
    if (std::ranges::find(servers, host) != servers.end()) server = host;
  }
  const bool is_silent = one_in(3);
  tell(to_string(server) + (is_silent ? " loses its power" : " is killed"));
  ++counts_.server_deaths;
  world_.kill_server(server,
                     is_silent ? ClusterWorld::Death::kSilent : ClusterWorld::Death::kHeard);
  if (!is_silent) return;
  for (const std::string& directory :
       {world_.layout.wals(server), world_.layout.splitting(server)}) {
    world_.env.lose_unsynced(directory, CrashEnv::TornTail::kRandom);
  }
}

void RandomStory::start_some_server() {
  if (world_.servers().size() >= kServersMax || world_.env.is_off()) return;
  // The first host without a process.
  for (std::size_t i = 1;; ++i) {
    const std::string host = "rs" + std::to_string(i);
    const std::vector<ServerName> running = world_.servers();
    if (std::ranges::find(running, host, &ServerName::host) != running.end()) continue;
    const ServerName name = world_.start_server(host);
    if (name.empty()) return;
    known_[name] = true;
    return tell(to_string(name) + " starts");
  }
}

void RandomStory::disturb_master(std::uint64_t choice) {
  if (!world_.has_master()) return start_master();
  FaultStore& store = world_.master_store();
  switch (choice) {
    case 0:
    case 1:
      return kill_master(ClusterWorld::Death::kHeard);
    case 2:
      return kill_master(ClusterWorld::Death::kSilent);
    case 3:
    case 4:
      tell("the master will die before a record");
      return store.crash_before(store.commits() + 1 + random_.below(10));
    case 5:
      tell("the master will die after a record");
      return store.crash_after(store.commits() + 1 + random_.below(10));
    case 6:
    case 7:
      tell("the master stops");
      ++counts_.stops;
      return world_.pause_master();
    default:
      break;
  }
  if (world_.masters_aside() == 0) return;
  tell("a master that was stopped goes on");
  world_.resume_masters();
}

void RandomStory::start_master() {
  if (world_.has_master() || world_.env.is_off()) return;
  if (world_.masters_aside() > 0) {
    if (one_in(2)) {
      tell("the master goes on");
      return world_.resume_masters();
    }
    ++counts_.deposed;
  }
  world_.start_master();
  if (!world_.has_master()) return;
  tell("master " + std::to_string(world_.master().epoch()) + " starts");
  watch_.compare_locks();
}

void RandomStory::kill_master(ClusterWorld::Death death) {
  tell("the master dies");
  ++counts_.master_deaths;
  watch_.remember_locks();
  world_.kill_master(death);
}

void RandomStory::cut_power() {
  tell("the power fails");
  ++counts_.power_cuts;
  cuts_power_ = false;
  watch_.remember_locks();
  world_.cut_power();
}

void RandomStory::run_turns(std::uint64_t turns) {
  for (std::uint64_t i = 0; i < turns && !is_wrong(); ++i) {
    ++counts_.turns;
    if (one_in(4)) {
      clients_.turn();
    } else {
      world_.turn(random_);
    }
    mourn();
    if (i % 8 == 0) watch_.look();
  }
}

// Who has died is taken away at once: it does nothing more.
void RandomStory::mourn() {
  if (world_.env.is_off()) cut_power();
  if (world_.has_master() && world_.master_store().crashed()) {
    kill_master(ClusterWorld::Death::kHeard);
  }
  if (world_.bury()) tell("a process has ended by itself");
  if (!world_.has_master() && one_in(100)) start_master();
  if (world_.servers().empty() && one_in(100)) start_some_server();
}

void RandomStory::pass(Duration time) { world_.transport->run_for(time); }

// --- how it becomes quiet

void RandomStory::become_quiet() {
  tell("the storm is over");
  is_calm_ = true;
  counts_.unknown = history_.count(Write::State::kUnknown);
  REQUIRE(route_.set_rates({}).ok());
  REQUIRE(inner_route_.set_rates({}).ok());
  route_.cut_all();
  inner_route_.cut_all();
  // A cut that was to come does not.
  world_.env.crash_before_operation(SIZE_MAX / 2);
  for (const ServerName& name : world_.servers()) world_.resume_server(name);
  world_.resume_masters();
  // One that nobody speaks to does not learn that it is deposed. And the master looks for servers
  // that it has never heard of once in so long.
  run_everything(7 * kLease);
  world_.kill_deposed_masters();
  if (!run_until([this] { return is_quiet(); }, minutes(15))) return;
  orders_.assign_closed(clients_.any().executor());
  for (const TableName& table : orders_.tables()) {
    orders_.enable(clients_.any().executor(), table);
  }
  if (!run_until([this] { return is_quiet(); }, minutes(10))) return;
  // A part of what is unknown stays so.
  for (Write* write : history_.writes_in(Write::State::kUnknown)) {
    if (!one_in(8)) clients_.resume(*write);
  }
  run_until([this] { return is_quiet(); }, minutes(10));
}

void RandomStory::keep_processes() {
  start_master();
  while (world_.servers().size() < 2) start_some_server();
}

void RandomStory::run_everything(Duration time) {
  const SteadyTime end = world_.clock->steady_now() + time;
  while (world_.clock->steady_now() < end && !is_wrong()) {
    pass(milliseconds(50));
    for (bool is_busy = true; is_busy;) {
      is_busy = clients_.settle();
      world_.settle();
      is_busy |= clients_.settle();
    }
    mourn();
    keep_processes();
    watch_.look();
  }
}

bool RandomStory::run_until(const std::function<bool()>& done, Duration most) {
  const SteadyTime end = world_.clock->steady_now() + most;
  while (world_.clock->steady_now() < end) {
    if (world_.has_master()) {
      orders_.unlock(clients_.any().executor());
      orders_.ask(clients_.any().executor());
    }
    // Longer than a lease: whoever has died is noticed meanwhile.
    run_everything(kLease + seconds(3));
    if (is_wrong()) return false;
    if (done()) return true;
  }
  wrong("every procedure finishes, or waits for something with a name: it is still not quiet\n" +
        explain());
  return false;
}

bool RandomStory::is_quiet() {
  return world_.has_master() && world_.master().is_online() && world_.masters_aside() == 0 &&
         world_.master().executor().inspect().live_procedures() == 0 && clients_.are_idle() &&
         orders_.are_known();
}

std::string RandomStory::explain() {
  if (!world_.has_master()) return "there is no master";
  if (!world_.master().is_online()) return "the catalogue is not online";
  std::string text;
  const Inspection look = world_.master().executor().inspect();
  for (const ProcedureInfo& one : look.list()) {
    text += "procedure " + std::to_string(one.id.value) + " " + one.type + " in " + one.step_name;
    const auto why = look.explain(one.id);
    text += why.ok() ? ": " + to_string(*why) + "\n" : "\n";
  }
  if (!clients_.are_idle()) text += "a client waits\n";
  if (!orders_.are_known()) text += "an order has no result\n";
  return text;
}

// --- what there is in the end

void RandomStory::check_end() {
  read_all();
  for (const std::string& line : world_.disorder()) {
    wrong("tables, regions, rows and directories agree: " + line);
  }
  check_files();
  check_answers();
}

void RandomStory::read_all() {
  for (const TableName& table : orders_.tables()) {
    const auto row = world_.master().rows().table(table);
    if (!row) {
      if (!history_.is_loose(table) && table == orders_.tables().front()) {
        wrong("a table that nobody has deleted is not there: " + to_string(table));
      }
      continue;
    }
    const auto reader = world_.connect(77);
    for (std::size_t i = 0; i < WriteHistory::kRows; ++i) {
      const std::string key = WriteHistory::row(i);
      const auto cells = world_.answer<Result<std::vector<Cell>>>(
          [&](auto done) { reader->get(table, key, {}, std::move(done)); });
      if (!cells.ok()) {
        wrong("row " + key + " of " + to_string(table) + ": " + cells.status().to_string());
        return;
      }
      history_.check_end(table, key, *cells);
    }
  }
}

// No directory of logs but those of servers that live, no draft, no lock, no view of a peer that
// differs.
void RandomStory::check_files() {
  const std::vector<ServerName> servers = world_.servers();
  const auto names = world_.files.list(world_.layout.wals());
  REQUIRE(names.ok());
  for (const std::string& name : *names) {
    const auto directory = ClusterLayout::parse_log_directory(name);
    const bool is_owned = directory && !directory->is_fenced &&
                          std::ranges::find(servers, directory->server) != servers.end();
    if (!is_owned) wrong("no log is left over: wals/" + name + " is nobody's");
  }
  const auto peers = PeerFiles(world_.files, world_.layout).list();
  REQUIRE(peers.ok());
  for (const ServerName& server : servers) {
    const ServerStatus status = world_.status_of(server);
    // It reads the peers before it opens its first region.
    if (status.regions.empty()) continue;
    const bool is_same = std::ranges::equal(peers->peers, status.peers, {}, {},
                                            [](const PeerStatus& peer) { return peer.peer; });
    if (!is_same) {
      wrong("all live servers' view of peers equals storage: not that of " + to_string(server));
    }
  }
  for (const LockInfo& lock : world_.master().executor().inspect().locks()) {
    if (!lock.holders.empty()) wrong("no lock is left over: " + to_string(lock.key));
  }
}

// Whoever asks again under an old nonce gets the old answer, wherever the region is now.
void RandomStory::check_answers() {
  std::vector<Write*> done = history_.writes_in(Write::State::kAcknowledged);
  std::erase_if(done, [&](const Write* write) { return history_.is_loose(write->table); });
  for (std::size_t i = 0; i < 12 && !done.empty(); ++i) {
    clients_.resume(*done[random_.below(done.size())]);
  }
  run_until([this] { return clients_.are_idle(); }, minutes(5));
  read_all();
}

}  // namespace pv2::testing::cluster_simulation

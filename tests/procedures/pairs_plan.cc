// SPDX-License-Identifier: Apache-2.0
//
// How a story of two procedures is planned from its seed: what they find, and who disturbs them.

#include <pv2/engine/async_executor.h>
#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/create_namespace.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/lock_procedure.h>
#include <pv2/procedures/server_crash.h>

#include <algorithm>
#include <utility>

#include "cluster_faults.h"
#include "deterministic_executor.h"
#include "pairs_story.h"

namespace pv2::testing {

bool PairsStory::has(std::initializer_list<Actor> actors) const {
  return std::ranges::any_of(
      actors, [this](Actor actor) { return pair_[0] == actor || pair_[1] == actor; });
}

void PairsStory::plan() {
  for (const char* host : {"rs1", "rs2", "rs3", "rs4"}) {
    servers_.push_back(cluster_.add_server(host));
  }
  // Two may die; the others take their regions.
  const std::size_t first = random_.below(4);
  doomed_ = {servers_[first], servers_[(first + 1 + random_.below(3)) % 4]};
  plan_stage();
  const std::uint64_t choice = random_.next();
  add(pair_[0], choice, true);
  // Often both choose the same thing.
  add(pair_[1], one_in(2) ? choice : random_.next(), true);
  plan_company();
  for (std::size_t i = operations_.size(); i > 1; --i) {
    std::swap(operations_[i - 1], operations_[random_.below(i)]);
  }
}

template <class Make>
void PairsStory::prepare(Make make) {
  preparations_.emplace_back([make]() -> std::optional<Send> {
    return [make](KeyedClient& client, ProcedureExecutor& executor) {
      client.submit(executor, make());
    };
  });
}

void PairsStory::prepare(Actor actor, std::uint64_t choice) {
  acting_.insert(actor);
  preparations_.emplace_back([=, this] { return choose_act(actor, cluster_, servers_, choice); });
}

// Each procedure mostly finds what it needs, and sometimes does not.
void PairsStory::plan_stage() {
  ClusterPorts& ports = cluster_.ports();
  if (one_in(has({Actor::kInitMeta}) ? 6 : 3))
    cluster_.host_catalogue_on(servers_[random_.below(4)]);
  const std::uint64_t limit = one_in(3) ? 2 : 0;
  prepare([=, &ports] { return CreateNamespace(ports, {"n", limit}); });
  if (!has({Actor::kCreateNamespace}) || one_in(4)) {
    prepare([&ports] { return CreateNamespace(ports, {"m"}); });
  }
  const std::size_t regions = (has({Actor::kMerge}) ? 2 : 1) + random_.below(3);
  prepare([=, &ports] {
    return CreateTable(ports, {stage_table(), {"f"}}, even_split_keys(regions));
  });
  const bool wants_peer =
      has({Actor::kRemovePeer, Actor::kEnablePeer, Actor::kDisablePeer, Actor::kUpdatePeerConfig});
  if (has({Actor::kAddPeer}) ? (wants_peer && one_in(2)) : !one_in(wants_peer ? 8 : 2)) {
    const bool enabled = !one_in(has({Actor::kEnablePeer}) ? 2 : 4);
    prepare([=, &ports] { return AddPeer(ports, PeerRow{"p", {"/other", {}}, enabled}); });
  }
  if (has({Actor::kAssign}) && !one_in(4)) prepare(Actor::kUnassign, random_.next());
  const bool wants_disabled =
      has({Actor::kEnableTable, Actor::kDeleteTable, Actor::kTruncateTable});
  if (wants_disabled ? !one_in(4) : one_in(12)) {
    prepare(Actor::kDisableTable, 0);
  } else if (wants_disabled && one_in(2)) {
    add(Actor::kDisableTable, 0, false);
  }
}

void PairsStory::plan_company() {
  for (int i = 0; i < 2; ++i) {
    operations_.push_back({"clients write rows", [this](ProcedureExecutor&) { write_rows(); }});
  }
  for (std::uint64_t faults = random_.below(4); faults > 0; --faults) add_fault();
  if (one_in(2)) add_death(false);
  if (one_in(10)) add_accusation(false);
  if (one_in(4)) {
    const std::span<const ActorKind> actors = all_actors();
    add(actors[random_.below(actors.size())].actor, random_.next(), false);
  }
  if (one_in(6)) add_abort();
  if (one_in(8)) {
    operations_.push_back(
        {"server rs5 starts", [this](ProcedureExecutor&) { cluster_.add_server("rs5"); }});
  }
  if (has({Actor::kLock}) && one_in(2)) add_unlocking();
}

void PairsStory::add(Actor actor, std::uint64_t choice, bool of_pair) {
  acting_.insert(actor);
  if (actor == Actor::kServerCrash) return one_in(4) ? add_accusation(of_pair) : add_death(of_pair);
  const std::string words(words_of(actor));
  operations_.push_back({words, [=, this](ProcedureExecutor& executor) {
                           std::optional<Send> act = choose_act(actor, cluster_, servers_, choice);
                           if (!act) return;
                           const Nonce nonce{kClients, 100 + sent_.size()};
                           send(words, nonce, *std::move(act), of_pair, executor);
                         }});
}

void PairsStory::add_death(bool of_pair) {
  const ServerName server = doomed_[deaths_++ % doomed_.size()];
  operations_.push_back({to_string(server) + " dies", [this, server](ProcedureExecutor&) {
                           killed_.insert(server);
                           cluster_.kill_server(server);
                         }});
  operations_.push_back(
      {"the death of " + to_string(server) + " is noticed", [=, this](ProcedureExecutor& executor) {
         if (killed_.contains(server)) report_death(server, of_pair, executor);
       }});
}

void PairsStory::add_accusation(bool of_pair) {
  const ServerName server = doomed_[deaths_++ % doomed_.size()];
  operations_.push_back(
      {to_string(server) + " is taken for dead",
       [=, this](ProcedureExecutor& executor) { report_death(server, of_pair, executor); }});
}

void PairsStory::add_unlocking() {
  operations_.push_back({"the holder of the lock lets go", [this](ProcedureExecutor& executor) {
                           for (const Sent& sent : sent_) {
                             if (sent.words != words_of(Actor::kLock) || !sent.client.id())
                               continue;
                             executor.async().signal(sent.client.id(),
                                                     std::string(LockProcedure::kUnlockSignal), "",
                                                     [](const Status&) {});
                           }
                         }});
}

void PairsStory::add_abort() {
  operations_.push_back({"an operator aborts one of the two",
                         [this, choice = random_.next()](ProcedureExecutor& executor) {
                           if (sent_.empty()) return;
                           const KeyedClient& client = sent_[choice % sent_.size()].client;
                           if (!client.id()) return;
                           executor.async().abort(client.id(),
                                                  {.reason = "changed his mind", .who = "op"}, {});
                         }});
}

void PairsStory::add_fault() {
  const std::vector<ClusterCall> calls = all_calls();
  const ClusterCall call = calls[random_.below(calls.size())];
  const std::vector<ClusterFault> faults = faults_of(call);
  if (faults.empty()) return;
  const ClusterFault fault = faults[random_.below(faults.size())];
  const auto times = static_cast<unsigned>(1 + random_.below(3));
  operations_.push_back(
      {"calls of " + std::string(to_string(call)) + " go wrong (" +
           std::to_string(static_cast<int>(fault)) + ", " + std::to_string(times) + " times)",
       [=, this](ProcedureExecutor&) { cluster_.fail_next(call, fault, times); }});
}

// The preparations run undisturbed: what is disturbed is what the two procedures do.
void PairsStory::furnish(const std::shared_ptr<MemoryDisk>& disk) {
  DeterministicExecutor executor(cluster_,
                                 [=] { return std::make_unique<MemoryProcedureStore>(disk); });
  executor.open();
  for (const auto& choose : preparations_) {
    const std::optional<Send> send = choose();
    REQUIRE(send.has_value());
    KeyedClient client(Nonce{});
    (*send)(client, *executor);
    executor.run();
    REQUIRE(client.result().has_value());
    REQUIRE(client.result()->status.to_string() == "OK");
  }
  write_rows();
}

}  // namespace pv2::testing

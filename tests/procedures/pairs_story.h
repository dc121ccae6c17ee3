// SPDX-License-Identifier: Apache-2.0
//
// PairsStory: two procedures meet in a cluster, run by a simulation. The seed chooses which two, in
// what state they find the cluster, and what else happens: servers die or are taken for dead, a
// third procedure comes, clients write rows, calls to the cluster go wrong, an operator aborts one
// of them. The simulation chooses when, and crashes the master. After every move, and at the end,
// the story checks what must hold for any cluster, whatever was done to it.

#pragma once

#include <pv2/base/random.h>
#include <pv2/procedures/memory_cluster.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster_watch.h"
#include "pairs_actor.h"
#include "pairs_tally.h"
#include "pv2/testing/keyed_client.h"
#include "pv2/testing/simulation.h"

namespace pv2::testing {

/// The group of the nonces that clients use.
inline constexpr std::uint64_t kClients = 9;

/// Owned by one thread.
class PairsStory final : public SimulationStory {
 public:
  /// The story of seed `seed` about one pair, which is counted in `tally`, if there is one.
  PairsStory(std::uint64_t seed, ActorPair pair, PairTally* tally);

  void add_types(ProcedureRegistry& types) override;
  void configure(ExecutorOptions& options) override;
  void furnish(const std::shared_ptr<MemoryDisk>& disk) override;
  [[nodiscard]] std::size_t operations() const override { return operations_.size(); }
  [[nodiscard]] std::string operation_words(std::size_t index) const override {
    return operations_[index].words;
  }
  void operate(std::size_t index, ProcedureExecutor& executor) override {
    operations_[index].run(executor);
  }
  void begin_life(ProcedureExecutor& executor) override;
  void stop_begins() override { executor_ = nullptr; }
  bool wind_up(ProcedureExecutor& executor) override;
  [[nodiscard]] std::size_t answers_due() const override;
  void answer(std::size_t which) override;
  void check(ProcedureExecutor& executor, Findings& findings) override;
  void check_end(SimulationEnd& end) override;

 private:
  struct Sent {
    std::string words;
    KeyedClient client;
    Send send;
    bool of_pair = false;
  };
  struct Operation {
    std::string words;
    std::function<void(ProcedureExecutor&)> run;
  };

  // Planning, in pairs_plan.cc.
  [[nodiscard]] bool has(std::initializer_list<Actor> actors) const;
  [[nodiscard]] bool one_in(std::uint64_t count) { return random_.below(count) == 0; }
  void plan();
  void plan_stage();
  void plan_company();
  /// Something that must succeed before anything else happens.
  template <class Make>
  void prepare(Make make);
  void prepare(Actor actor, std::uint64_t choice);
  void add(Actor actor, std::uint64_t choice, bool of_pair);
  void add_death(bool of_pair);
  void add_accusation(bool of_pair);
  void add_unlocking();
  void add_abort();
  void add_fault();

  void send(std::string words, Nonce nonce, Send send, bool of_pair, ProcedureExecutor& executor);
  void report_death(const ServerName& server, bool of_pair, ProcedureExecutor& executor);
  void write_rows();
  bool tidy_up(ProcedureExecutor& executor);
  void count_meeting(ProcedureExecutor& executor);
  [[nodiscard]] std::set<ServerName> unrecovered() const;
  [[nodiscard]] bool is_at_rest(ProcedureExecutor& executor) const;
  void check_results(SimulationEnd& end) const;
  void check_limits(Findings& findings) const;
  void check_rows(Findings& findings) const;
  [[nodiscard]] std::optional<TableState> state_of_table() const;

  const ActorPair pair_;
  PairTally* const tally_;
  Random random_;
  MemoryCluster cluster_;
  std::vector<ServerName> servers_;
  std::vector<ServerName> doomed_;  // those that may die; the others live
  std::vector<Operation> operations_;
  std::vector<std::function<std::optional<Send>()>> preparations_;
  std::multiset<Actor> acting_;  // the two, and whoever disturbs them or has prepared the cluster
  std::deque<Sent> sent_;
  std::size_t deaths_ = 0;  // that are planned
  std::set<ServerName> killed_;
  std::set<ServerName> reported_;
  // Each row that was acknowledged, and how many tables had been archived before.
  std::map<std::string, std::size_t> rows_;
  int row_ = 0;
  bool enabled_at_end_ = false;
  bool met_ = false;
  ClusterWatch watch_;
  ProcedureExecutor* executor_ = nullptr;  // of the present life, until it is stopped
};

}  // namespace pv2::testing

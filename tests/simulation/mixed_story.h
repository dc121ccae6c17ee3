// SPDX-License-Identifier: Apache-2.0
//
// MixedStory: this project's own workload for the simulation. Trees of tasks fail, retry, wait,
// lock and write rows. Clients submit them under nonces, some twice, some with a nonce that belongs
// to another task; they acknowledge or abort. Others send signals and set events; operators set
// limits and repair. The story knows what every client must be told and what must be left of every
// tree.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pv2/testing/keyed_client.h"
#include "pv2/testing/simulation.h"
#include "simulation/story_limits.h"
#include "simulation/story_orders.h"
#include "simulation/task.h"

namespace pv2::testing {

/// Owned by one thread.
class MixedStory final : public SimulationStory {
 public:
  explicit MixedStory(std::uint64_t seed);

  void add_types(ProcedureRegistry& types) override { add_task_types(types, world_); }
  void configure(ExecutorOptions& options) override;
  [[nodiscard]] std::size_t operations() const override { return operations_.size(); }
  [[nodiscard]] std::string operation_words(std::size_t index) const override;
  void operate(std::size_t index, ProcedureExecutor& executor) override;
  void interfere(std::uint64_t choices, ProcedureExecutor& executor) override;
  void begin_life(ProcedureExecutor& executor) override;
  void stop_begins() override { world_.stop_begins(); }
  bool wind_up(ProcedureExecutor& executor) override;
  [[nodiscard]] std::size_t answers_due() const override { return world_.asked(); }
  void answer(std::size_t which) override { world_.answer(which); }
  void check(ProcedureExecutor& executor, Findings& findings) override;
  void check_end(SimulationEnd& end) override;
  /// A parked tree stays, with its locks, and so do the procedures that wait for these.
  [[nodiscard]] bool may_stay(const ProcedureInfo& info) const override {
    return !try_again_later_ && (parked_.contains(info.root.value) || keeps_others_out_);
  }
  [[nodiscard]] bool may_be_repaired(const ProcedureInfo& info) const override {
    return orders_.may_be_repaired(info.root);
  }

 private:
  struct Operation {
    enum class Kind : std::uint8_t {
      kSubmit,
      kMisuse,
      kAcknowledge,
      kUnkeyed,
      kLimit,
      kKeyLimit,
      kAbort,
      kAskUnknown,
      kSignal,
      kNoise,
      kSetEvent,
      kResetEvent,
      kOrder,
    };
    Kind kind;
    std::size_t client = 0;  ///< Or an unkeyed root, the receiver of a signal, a key.
    std::uint64_t number = 0;
    RepairVerb verb = RepairVerb::kRetryNow;
  };
  struct Client {
    std::size_t root;  ///< The index of the root that the client submits.
    KeyedClient keyed;
    bool began = false;
    bool acknowledges = false;
  };
  /// What is known of the abort of a root, by the root's index.
  struct Abort {
    bool accepted = false;
  };

  void plan_orders(Random& random);
  void plan_key_limits(Random& random);
  /// What operators order for procedures that are parked at the end.
  [[nodiscard]] RepairVerb last_order() const;
  bool repair_the_rest(ProcedureExecutor& executor);
  void plan_events(Random& random);
  void plan_signals(Random& random);
  void submit(Client& client, ProcedureExecutor& executor);
  void abort(const Client& client, ProcedureExecutor& executor);
  /// The procedure of a task, as far as a client or operator can know it.
  [[nodiscard]] ProcedureId id_of(std::size_t task) const;
  bool bypass_what_is_undone(ProcedureExecutor& executor);
  [[nodiscard]] static std::optional<std::uint32_t> limit_of(const Operation& operation);
  [[nodiscard]] static ResourceKey key_of(const Operation& operation);
  void check_repaired(SimulationEnd& end);
  void check_client(const Client& client, SimulationEnd& end);
  void check_member(std::uint64_t id, const TaskMember& member, bool succeeded, SimulationEnd& end);
  [[nodiscard]] bool is_kept(const TaskMember& member) const;
  [[nodiscard]] bool may_be_undone_alone(std::size_t task) const;
  void check_tree(std::size_t root, bool succeeded, SimulationEnd& end);
  void check_rows(SimulationEnd& end);

  const std::uint64_t seed_;
  TaskWorld world_;
  StoryOrders orders_{world_};
  StoryLimits key_limits_;
  std::vector<Client> clients_;
  std::vector<Operation> operations_;
  std::map<std::size_t, Abort> aborts_;
  std::vector<std::string> found_;
  std::set<std::uint64_t> parked_;  // roots of trees with a parked member
  bool keeps_others_out_ = false;   // a parked tree holds locks
  std::size_t last_orders_ = 0;     // orders given at the end
  bool try_again_later_ = false;    // an order for a parked tree was told to come back later
  std::size_t interferences_ = 0;
};

}  // namespace pv2::testing

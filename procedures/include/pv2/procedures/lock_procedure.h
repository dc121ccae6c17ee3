// SPDX-License-Identifier: Apache-2.0
//
// LockProcedure: holds locks on behalf of a client, and does nothing else: "nobody changes table t
// until I say so". The client sends signals to it.
//
//     ACQUIRE -> HELD -> done("unlocked")       the client has sent the signal "unlock"
//                 | ^
//                 | |__ the client has sent the signal "heartbeat": the lease begins anew
//                 v
//               done("lease expired ...")       no heartbeat came during the lease
//
//     step      reads and writes                          runs again after a crash
//     ACQUIRE   checks the arguments; keeps the time      has changed nothing
//     HELD      the signals                               the lease goes on: it is durable
//
// ACQUIRE runs when all locks are granted, and not before: a client that sees the procedure in step
// HELD has the locks, since `held_since`. They are kept over restarts. An abort gives them back
// too.
//
// How it fails: in ACQUIRE only. kInvalidArgument: the locks are not among those below, a name is
// bad, or the lease or a text is too long. kFailedPrecondition: it is the namespace `system` or the
// catalogue's table, whose locks the recovery of the catalogue takes.
//
//     to lock        arguments                        mode
//     a namespace    name_space                       exclusive
//     a table        name_space, table                exclusive or shared
//     regions        name_space, table, region ids    exclusive

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/resource.h>
#include <pv2/engine/state_machine_procedure.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pv2 {

/// Persisted.
enum class LockProcedureStep { kAcquire = 1, kHeld = 2 };

/// What a client locks, why, and for how long. A plain value.
struct LockOrder {
  std::string name_space;
  std::string table{};                 ///< Empty: the namespace is locked.
  std::vector<std::string> regions{};  ///< Ids; empty: the table, or namespace, is locked.
  LockMode mode = LockMode::kExclusive;
  std::string description{};  ///< For people.
  /// The locks are given back when no heartbeat comes for this long. As in HBase.
  std::chrono::milliseconds lease = std::chrono::seconds(30);
};

/// Threads: as Procedure. Locks: those that it is for, until it ends.
class LockProcedure final : public StateMachineProcedure<LockProcedureStep> {
 public:
  static constexpr std::string_view kType = "cluster.Lock";
  static constexpr auto kSteps =
      steps(step(LockProcedureStep::kAcquire, "ACQUIRE", kNoUndo).must_run(),
            step(LockProcedureStep::kHeld, "HELD", kNoUndo));
  static constexpr std::string_view kHeartbeatSignal = "heartbeat";
  /// The result of a lock that an unlock has ended.
  static constexpr std::string_view kUnlocked = "unlocked";
  static constexpr std::string_view kUnlockSignal = "unlock";
  /// A holder that died without a word blocks others for no longer than this.
  static constexpr std::chrono::milliseconds kLeaseMax = std::chrono::hours(24);
  /// It is shown in one line of a listing.
  static constexpr std::size_t kDescriptionBytesMax = 1024;
  /// Far more than a client names by hand, and far fewer than a lock set may have.
  static constexpr std::size_t kRegionsMax = 1024;

  LockProcedure() = default;
  explicit LockProcedure(LockOrder order) : order_(std::move(order)) {}

  void fields(auto& f) {
    f.arg(1, "namespace", order_.name_space);
    f.arg(2, "table", order_.table);
    f.arg(3, "regions", order_.regions);
    f.arg(4, "mode", order_.mode);
    f.arg(5, "description", order_.description);
    f.arg(6, "lease", order_.lease);
    f(7, "held_since", held_since_);
  }

  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(LockProcedureStep step, StepContext& ctx) override;

 private:
  Flow acquire(StepContext& ctx);
  Flow held(StepContext& ctx);
  [[nodiscard]] Status check() const;

  LockOrder order_;
  WallTime held_since_{};  ///< Set in ACQUIRE.
};

}  // namespace pv2

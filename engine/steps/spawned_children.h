// SPDX-License-Identifier: Apache-2.0
//
// SpawnedChildren: the children that one run of a step spawns. They are kept as objects until the
// step is done; then adopt() gives them ids, locks and rows in the step's batch. No other thread
// sees them before that batch is durable.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "pv2/engine/procedure.h"
#include "pv2/engine/submit_options.h"

namespace pv2 {

struct ProcedureType;
struct StepFrame;

/// Owned by the worker that runs the step. adopt() is called once, after the last spawn().
/// abandon() may be called at any time, also repeatedly. Both take the state mutex.
class SpawnedChildren {
 public:
  explicit SpawnedChildren(const StepFrame& frame) : frame_(frame) {}

  void spawn(const ProcedureType& type, std::unique_ptr<Procedure> object, SpawnOptions options);
  /// The number of objects that wait for adopt().
  [[nodiscard]] std::size_t size() const noexcept { return spawned_.size(); }

  /// Makes the objects, at least one, children of the procedure and adds their rows to its batch.
  /// Calls user code. After a failure the caller abandons all of them.
  Status adopt();
  /// The run does not end its step: takes back all that spawn() and adopt() did.
  void abandon();

  /// After adopt(): whether the locks of the procedure cover its children. If so, the procedure
  /// keeps the locks until the children have ended.
  [[nodiscard]] bool are_covered() const noexcept { return covered_; }
  /// Whether adopt() failed because too many other procedures are live: it may succeed later.
  [[nodiscard]] bool may_find_room() const noexcept { return may_find_room_; }

 private:
  struct Spawned {
    const ProcedureType* type;
    std::unique_ptr<Procedure> object;
    SpawnOptions options;
  };
  [[nodiscard]] Status make_children();
  [[nodiscard]] Status reserve_ids();
  void insert_children();
  [[nodiscard]] Status no_room(std::size_t others) const;

  const StepFrame& frame_;
  std::vector<Spawned> spawned_;
  bool covered_ = true;
  bool may_find_room_ = false;
};

}  // namespace pv2

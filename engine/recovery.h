// SPDX-License-Identifier: Apache-2.0
//
// Recovery: from the rows of a store to executions that can go on, in this order: read everything;
// link trees; take the locks of those that held them, parents before children; only then queue
// anything, holders before those who waited. A tree that cannot be understood is quarantined with
// its locks. Nothing on disk changes before all of it was read.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine_core.h"
#include "record_codec.h"

namespace pv2 {

/// Used once, by open(). Owned by one thread.
class Recovery {
 public:
  explicit Recovery(EngineCore& core) : core_(core) {}

  /// Fills the engine's state. A failure leaves the store as it was.
  Status load(Effects& effects);

 private:
  Status read(const StoredRow& row);
  Status read_procedure(const StoredRow& row, const ProcedureKey& key);
  void read_message(const StoredRow& row, const ProcedureKey& key);
  void read_audit(const StoredRow& row, const ProcedureKey& key);
  Status finish_reading();
  void link(Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void restore_locks(Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void queue_all(Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void queue_tree(Execution& root, Effects& effects) PV2_REQUIRES(core_.state_mutex);
  bool joins_make_sense(Execution& root, Effects& effects) PV2_REQUIRES(core_.state_mutex);

  struct Loaded {
    std::unique_ptr<Execution> execution;
    ProcedureId parent;
    ProcedureId root;
    bool has_state = false;
    bool checked = false;  ///< Its fields were decoded.
    bool held_locks = false;
    Status problem;                    ///< Why its tree has to be quarantined.
    CommitSequence state_sequence;     ///< Of the batch that wrote its state.
    bool ended_after_message = false;  ///< It succeeded after an abort, or after what may be one.
  };

  void check_fields(Loaded& loaded);

  EngineCore& core_;
  std::vector<Loaded> loaded_;  // in order of id, as the store gives them
  FlatMap<ProcedureId, bool> ended_roots_;
  FlatMap<ProcedureId, std::vector<ProcedureId>> garbage_;
  std::vector<std::string> orphans_;  // keys of messages to whom nobody is left
  std::vector<Execution*> roots_;
  std::uint64_t highest_id_ = 0;
  std::size_t nonces_ = 0;
};

}  // namespace pv2

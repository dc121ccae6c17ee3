// SPDX-License-Identifier: Apache-2.0
//
// RecordReader: from the rows of some procedures to executions that nobody has linked yet. It
// touches nothing of the engine but its registry, so several of them read side by side, each the
// rows of a range of ids. It asks the store for a result only when messages or orders are left of
// whom there is nothing else.

#pragma once

#include <pv2/store/procedure_store.h>

#include <memory>
#include <string>
#include <vector>

#include "execution.h"
#include "pv2/engine/executor_options.h"
#include "record_codec.h"

namespace pv2 {

/// What the rows of one procedure say.
struct LoadedProcedure {
  std::unique_ptr<Execution> execution;
  HeaderFacts header;
  bool has_state = false;
  bool checked = false;              ///< Its fields were decoded.
  Status problem;                    ///< Why its tree has to be quarantined.
  CommitSequence state_sequence;     ///< Of the batch that wrote its state.
  bool ended_after_message = false;  ///< It succeeded after an abort, or after what may be one.
};

/// A root whose result is kept, and of which rows were found among those of live procedures: it
/// stays in the store.
struct EndedRoot {
  ProcedureId id;
  Nonce nonce;
  Duration age{};         ///< When it ended; kNotDated: an older program has recorded its end.
  std::size_t bytes = 0;  ///< About what its rows take.
};

/// The copy of an audit entry under the member that it is about.
struct AuditCopy {
  std::string key;
  ProcedureId root;  ///< Who has all of them.
};

/// What was read. The first two lists are in order of id.
struct ReadRecords {
  std::vector<LoadedProcedure> procedures;
  std::vector<EndedRoot> ended_roots;
  std::vector<std::string> orphans;  ///< Keys of messages to whom nobody is left.
  std::vector<AuditCopy> audit_copies;
  std::vector<UnreadableRecord> unreadable;  ///< What was set aside.
  ProcedureId highest;                       ///< Of all ids, also of what was set aside.
};

/// Used once. Owned by one thread.
class RecordReader {
 public:
  RecordReader(const ProcedureRegistry& registry, ProcedureStore& store, UnreadableRecords policy)
      : registry_(registry), store_(store), policy_(policy) {}

  /// Takes the next row of Space::kProcedure, in order of key; all rows of a procedure. A failure
  /// says which record cannot be read; there is none if such records are set aside.
  Status read(const StoredRow& row);
  /// After the last row.
  Status finish();
  [[nodiscard]] ReadRecords take() && { return std::move(read_); }

 private:
  Status read_row(const StoredRow& row);
  Status cannot_read(ProcedureId id, Status why);
  Status read_what_is_left(const StoredRow& row);
  Status read_result(ProcedureId id, const RowVisitor& visit);
  Status read_procedure(const StoredRow& row, const ProcedureKey& key);
  void read_message(const StoredRow& row, const ProcedureKey& key);
  void read_audit(const StoredRow& row, const ProcedureKey& key);
  void check_fields(LoadedProcedure& loaded) const;

  const ProcedureRegistry& registry_;
  ProcedureStore& store_;
  const UnreadableRecords policy_;
  ProcedureId current_;     ///< Whose rows are being read.
  bool is_result_ = false;  ///< Its header and state come from Space::kResult.
  /// It is a root that has ended, of which nothing but orders is left here: when its result was
  /// written.
  std::optional<CommitSequence> ended_;
  ReadRecords read_;
};

}  // namespace pv2

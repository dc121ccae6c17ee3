// SPDX-License-Identifier: Apache-2.0
//
// RecordReader: from the rows of some procedures to executions that are not linked yet. It touches
// nothing of the engine but its registry, so several readers work side by side, each on the rows of
// a range of ids. It asks the store for a result only if messages or orders of a procedure are
// left, and no header.

#pragma once

#include <pv2/store/procedure_store.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/execution.h"
#include "pv2/engine/procedure_info.h"
#include "records/header_codec.h"
#include "records/row_keys.h"

namespace pv2 {

class ProcedureRegistry;
enum class UnreadableRecords : std::uint8_t;

/// A procedure as its rows say it.
struct LoadedProcedure {
  std::unique_ptr<Execution> execution;
  ProcedureId parent;  ///< Not valid: a root.
  ProcedureId root;
  bool has_state = false;
  bool checked = false;  ///< Its fields were decoded.
  Status problem;        ///< Why its tree has to be quarantined.
  /// Why this program can neither run nor undo it: it lacks its type or one of its steps, or cannot
  /// read its fields. Of no consequence if the procedure turns out to be spent (tree/ending.h).
  Status misfit;
  CommitSequence state_sequence;  ///< Of the batch that wrote its state.
  /// Its success, if it has succeeded, came after an abort or after a message that cannot be read
  /// and may be an abort.
  bool ended_after_message = false;
};

/// A root that has ended and has rows among those of live procedures. Its result stays there.
struct EndedRoot {
  ProcedureId id;
  Nonce nonce;
  Duration age{};         ///< When it ended; kNotDated: an older program recorded its end.
  std::size_t bytes = 0;  ///< About what its rows take.
};

/// The copy of an order, under the member that the order is about.
struct AuditCopy {
  std::string key;
  ProcedureId root;  ///< The root under which the order itself lies.
};

/// What a reader has read. The first two lists are in order of id.
struct ReadRecords {
  std::vector<LoadedProcedure> procedures;
  std::vector<EndedRoot> ended_roots;
  std::vector<std::string> orphans;  ///< Keys of messages and orders that are not needed any more.
  std::vector<AuditCopy> audit_copies;
  std::vector<UnreadableRecord> unreadable;  ///< What was set aside.
  ProcedureId highest;                       ///< Of all ids, those set aside included.
};

/// New messages and orders of `execution` get numbers above that of the row `key`.
void go_on_above(const ProcedureKey& key, Execution& execution);

/// Used once. Owned by one thread.
class RecordReader {
 public:
  RecordReader(const ProcedureRegistry& registry, ProcedureStore& store, UnreadableRecords policy)
      : registry_(registry), store_(store), policy_(policy) {}

  /// Takes the next row of Space::kProcedure, in order of key. All rows of a procedure go to one
  /// reader. A failure names the record that cannot be read; there is no failure if such records
  /// are set aside.
  Status read(const StoredRow& row);
  /// After the last row.
  Status finish();
  [[nodiscard]] ReadRecords take() && { return std::move(read_); }

 private:
  Status read_row(const StoredRow& row);
  Status cannot_read(ProcedureId id, Status why);
  Status read_what_is_left(const StoredRow& row);
  Status read_result(ProcedureId id, const RowVisitor& visit);
  Status read_both_rows(ProcedureId id, const StoredRow& result);
  Status read_header(const StoredRow& row, const ProcedureKey& key);
  Status read_state(const StoredRow& row, const ProcedureKey& key);
  void read_message(const StoredRow& row, const ProcedureKey& key);
  void read_audit(const StoredRow& row, const ProcedureKey& key);
  void check_fields(LoadedProcedure& loaded) const;
  /// The last procedure that was read, if it is `id`; or nullptr.
  [[nodiscard]] LoadedProcedure* last_read(ProcedureId id);

  const ProcedureRegistry& registry_;
  ProcedureStore& store_;
  const UnreadableRecords policy_;
  ProcedureId current_;     ///< The procedure whose rows are being read.
  bool is_result_ = false;  ///< Its header and state come from Space::kResult.
  /// If it is an ended root of which only orders are left here: the batch that wrote its result.
  std::optional<CommitSequence> ended_;
  ReadRecords read_;
};

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// The lists of a state row: steps to undo, history, interrupted members. Each is a packed list of
// varints.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/base/wire.h>

#include <cstdint>
#include <string_view>

#include "model/record.h"
#include "records/row_writer.h"

namespace pv2 {

/// Writes the history of the record `next`, which follows one with `history`.
void encode_history(RowWriter& row, const History& history, const Transition& next);
/// Writes the undo list of the record `next`, which follows `last`. An entry that `next` adds is
/// stored without its sequence, which is that of its own batch.
void encode_undo_list(RowWriter& row, const Record& last, const Transition& next,
                      std::uint32_t ran_step);
/// Writes the ranges of `interrupted`; nullptr or no ranges: nothing.
void encode_interrupted(RowWriter& row, const InterruptedMembers* interrupted);

/// The lists of a row that is being read: views into it.
struct StoredLists {
  std::string_view undo;
  std::string_view history;
  std::string_view interrupted;

  /// Takes the reader's current field if it is a list, and returns whether it is.
  bool read(WireReader& reader);
};
/// Each fails if its list is torn. `own` is the sequence of the batch that wrote the row.
Status decode_undo_list(std::string_view bytes, CommitSequence own, LazyVector<UndoEntry>& undo);
/// `updated` is when the record was made; entries are dated relative to it.
Status decode_history(std::string_view bytes, WallTime updated, History& history);
Status decode_interrupted(std::string_view bytes, InterruptedMembers& interrupted);

}  // namespace pv2

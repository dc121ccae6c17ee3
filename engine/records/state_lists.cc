// SPDX-License-Identifier: Apache-2.0
//
// Each list: how it is written, then how it is read.

#include "records/state_lists.h"

#include <pv2/base/assert.h>

#include <cstddef>

#include "records/state_fields.h"

namespace pv2 {
namespace {

// In the step of a history entry, above its 32 bits: the step was being undone.
constexpr std::uint64_t kUndoEntry = std::uint64_t{1} << 32;

Status torn(std::string_view what, const WireReader& reader) {
  return reader.status().with_context(what);
}

}  // namespace

// Pairs: step, and the sequence of the record that added the entry. The sequence is 0 if this
// record adds it, and kUnfinishedStep for a step that never ended.
void encode_undo_list(RowWriter& row, const Record& last, const Transition& next,
                      std::uint32_t ran_step) {
  const auto [kept, adds] = undo_after(last, next, ran_step);
  PV2_ASSERT(kept <= last.undo.size(), "a record keeps at most the undo entries of the last one");
  if (kept == 0 && !adds) return;
  char* const list = row.open_list(state_field::kUndo);
  for (std::size_t i = 0; i < kept; ++i) {
    row.put(last.undo[i].step);
    row.put(last.undo[i].sequence.value);
  }
  if (adds) {
    row.put(ran_step);
    row.put(next.undo_is_unfinished ? kUnfinishedStep.value : 0);
  }
  row.close_list(list);
}

Status decode_undo_list(std::string_view bytes, CommitSequence own, LazyVector<UndoEntry>& undo) {
  WireReader reader(bytes);
  while (reader.remaining() != 0) {
    std::uint64_t step = 0;
    std::uint64_t sequence = 0;
    if (!reader.take_varint(step) || !reader.take_varint(sequence)) {
      return torn("undo list", reader);
    }
    undo.push_back(
        {static_cast<std::uint32_t>(step), sequence == 0 ? own : CommitSequence{sequence}});
  }
  return Status();
}

// Triples, oldest first: step (with kUndoEntry), attempt * 16 + outcome, and how long before this
// record (zigzag, microseconds).
void encode_history(RowWriter& row, const History& history, const Transition& next) {
  if (history.size() == 0 && !next.history) return;
  const auto add = [&](const HistoryEntry& entry) {
    PV2_ASSERT(static_cast<std::uint64_t>(entry.outcome) < 16, "an outcome has four bits");
    row.put(entry.step | (entry.undo ? kUndoEntry : 0));
    row.put((std::uint64_t{entry.attempt} << 4) | static_cast<std::uint64_t>(entry.outcome));
    row.put(zigzag((next.updated - entry.at).count()));
  };
  char* const list = row.open_list(state_field::kHistory);
  const bool drops_oldest = next.history && history.size() == History::kCapacity;
  for (std::size_t i = drops_oldest ? 1 : 0; i < history.size(); ++i) add(history.at(i));
  if (next.history) add(*next.history);
  row.close_list(list);
}

Status decode_history(std::string_view bytes, WallTime updated, History& history) {
  WireReader reader(bytes);
  while (reader.remaining() != 0) {
    std::uint64_t step = 0;
    std::uint64_t attempt_and_outcome = 0;
    std::uint64_t before = 0;
    if (!reader.take_varint(step) || !reader.take_varint(attempt_and_outcome) ||
        !reader.take_varint(before)) {
      return torn("history", reader);
    }
    history.add({static_cast<std::uint32_t>(step),
                 static_cast<std::uint32_t>(attempt_and_outcome >> 4),
                 static_cast<Outcome::Kind>(attempt_and_outcome & 15),
                 updated - Duration(unzigzag(before)), (step & kUndoEntry) != 0});
  }
  return Status();
}

// Pairs: the distance of a range from the end of the range before it, and its length.
void encode_interrupted(RowWriter& row, const InterruptedMembers* interrupted) {
  if (interrupted == nullptr || interrupted->ranges().empty()) return;
  char* const list = row.open_list(state_field::kInterrupted);
  ProcedureId end;
  for (const InterruptedMembers::Range& range : interrupted->ranges()) {
    PV2_ASSERT(end < range.first && !(range.last < range.first), "ranges of ids are in order");
    row.put(range.first.value - end.value);
    row.put(range.last.value - range.first.value);
    end = range.last;
  }
  row.close_list(list);
}

Status decode_interrupted(std::string_view bytes, InterruptedMembers& interrupted) {
  WireReader reader(bytes);
  std::uint64_t end = 0;
  while (reader.remaining() != 0) {
    std::uint64_t gap = 0;
    std::uint64_t length = 0;
    if (!reader.take_varint(gap) || !reader.take_varint(length)) {
      return torn("list of interrupted members", reader);
    }
    const std::uint64_t first = end + gap;
    end = first + length;
    if (!interrupted.append({ProcedureId{first}, ProcedureId{end}})) {
      return Status(StatusCode::kCorruption, "its interrupted members are in no order");
    }
  }
  return Status();
}

bool StoredLists::read(WireReader& reader) {
  switch (reader.number()) {
    case state_field::kUndo:
      undo = reader.bytes();
      return true;
    case state_field::kHistory:
      history = reader.bytes();
      return true;
    case state_field::kInterrupted:
      interrupted = reader.bytes();
      return true;
    default:
      return false;
  }
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// LockTable, the listing: the keys are copied in the order in which they became known, a section at
// a time, and everything else is done after the last section. A key that fits into a section is
// copied in one. At a longer key the waiters are copied before the holders: a waiter that is
// granted its lock between two sections is then seen twice, and listed as a holder, instead of
// missed.

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lock_listing.h"
#include "lock_table.h"

namespace pv2 {
namespace {

struct Line {
  const LockRecordList& list;
  bool holds;
};

Line line_of(const LockNode& node, std::size_t number) noexcept {
  if (number == kHolderLine) return {node.holders, true};
  const LockMode mode = number % 2 == 1 ? LockMode::kExclusive : LockMode::kShared;
  return {node.waiters(static_cast<Kin>(number / 2), mode), false};
}

std::size_t parties_of(const LockNode& node) noexcept {
  return std::size_t{node.holder_count()} + node.waiter_count();
}

void begin_line(TableCursor& cursor, const Line& line) noexcept {
  cursor.in_line = true;
  cursor.at = line.list.empty() ? nullptr : const_cast<LockRecord*>(&line.list.front());
  // A new holder joins at either end, so the entries that hold now follow each other from here.
  cursor.left = line.holds ? cursor.node->holder_count() : UINT32_MAX;
}

// The next record of the line that the cursor is in, or null at its end.
const LockRecord* next_in_line(TableCursor& cursor, const Line& line) noexcept {
  LockRecord* const record = cursor.at;
  if (record == nullptr || cursor.left == 0) return nullptr;
  if (!line.holds && record->ticket() > cursor.last_ticket) return nullptr;
  const auto next = std::next(line.list.iterator_to(*record));
  cursor.at = next == line.list.end() ? nullptr : const_cast<LockRecord*>(&*next);
  --cursor.left;
  return record;
}

}  // namespace

void LockTable::open(TableCursor& cursor) {
  cursor.node = known_.empty() ? nullptr : &known_.front();
  cursor.last = known_.empty() ? nullptr : &known_.back();
  cursor.last_ticket = last_ticket_;
  cursors_.push_back(&cursor);
}

void LockTable::close(TableCursor& cursor) { std::erase(cursors_, &cursor); }

void LockTable::next_key(TableCursor& cursor) {
  const bool is_last = cursor.node == cursor.last;
  cursor.node = is_last ? nullptr : &*std::next(Keys::s_iterator_to(*cursor.node));
  cursor.line = 0;
  cursor.in_line = false;
}

void LockTable::move_cursors_from(const LockNode& node) {
  for (TableCursor* const cursor : cursors_) {
    if (cursor->node == &node) next_key(*cursor);
    // While there is a next key, it stands before the last one.
    if (cursor->last == &node && cursor->node != nullptr) {
      cursor->last = &*std::prev(Keys::s_iterator_to(*cursor->last));
    }
  }
}

void LockTable::move_cursors_from(const LockRecord& record, const LockRecordList& list) {
  for (TableCursor* const cursor : cursors_) {
    if (cursor->at != &record) continue;
    const auto next = std::next(list.iterator_to(record));
    cursor->at = next == list.end() ? nullptr : const_cast<LockRecord*>(&*next);
  }
}

// The next record of the line that the cursor is in, or begins; nullopt at its end.
std::optional<LockTable::PartyAt> LockTable::next_party(TableCursor& cursor) {
  const Line line = line_of(*cursor.node, cursor.line);
  if (!cursor.in_line) begin_line(cursor, line);
  const LockRecord* const record = next_in_line(cursor, line);
  if (record == nullptr) return std::nullopt;
  return PartyAt{*record, line.holds};
}

// Copies the lines of the cursor's key from where it stands, at most `parties_max` parties. Returns
// whether that was all.
bool LockTable::copy_lines(TableCursor& cursor, LockListing& listing,
                           std::size_t parties_max) const {
  for (; cursor.line < kLines; ++cursor.line, cursor.in_line = false) {
    const Line line = line_of(*cursor.node, cursor.line);
    if (!cursor.in_line) begin_line(cursor, line);
    while (const LockRecord* const record = next_in_line(cursor, line)) {
      ++looks_;
      listing.parties.push_back({record->entry().id, record->entry().since_, record->ticket(),
                                 record->mode(), line.holds});
      if (--parties_max == 0) return false;
    }
  }
  return true;
}

bool LockTable::copy_section(TableCursor& cursor, LockListing& listing) const {
  for (std::size_t room = kSectionMax; cursor.node != nullptr && room != 0; --room) {
    const LockNode& node = *cursor.node;
    ++looks_;
    const bool continued = cursor.in_line;
    const bool is_empty = parties_of(node) == 0 && !node.limited();
    if (!continued && is_empty) {
      next_key(cursor);
      continue;
    }
    // A key that does not fit into the rest of a section begins the next one.
    if (!continued && parties_of(node) >= room && room < kSectionMax) return true;

    const std::size_t before = listing.parties.size();
    const bool done = copy_lines(cursor, listing, room);
    const std::size_t copied = listing.parties.size() - before;
    // A key with nobody but waiters who came later has nothing to show.
    if (copied != 0 || continued || node.limited()) {
      listing.names += node.key.name;
      listing.keys.push_back({node.key.cls, continued, listing.names.size(), node.limit(), copied});
    }
    if (!done) return true;
    room -= copied;
    next_key(cursor);
  }
  return cursor.node != nullptr;
}

void LockListing::reserve_section() {
  // Doubling, as push_back() would.
  const auto grow = [](auto& list, std::size_t more) {
    if (list.capacity() - list.size() < more) list.reserve(2 * list.capacity() + more);
  };
  grow(keys, kSectionMax);
  grow(parties, kSectionMax);
  grow(names, kSectionMax * 24);  // a table's or server's name
}

std::vector<LockInfo> LockListing::assemble() && {
  std::vector<LockInfo> infos;
  infos.reserve(keys.size());
  std::size_t name_begin = 0;
  auto party = parties.begin();
  for (auto key = keys.begin(); key != keys.end();) {
    LockInfo& info = infos.emplace_back();
    info.key = {key->cls, names.substr(name_begin, key->name_end - name_begin)};
    if (key->limit != LockNode::kNoLimit) info.limit = key->limit;
    auto end = party;
    bool in_sections = false;
    do {
      end += static_cast<std::ptrdiff_t>(key->parties);
      name_begin = key->name_end;
      in_sections |= key->continued;
    } while (++key != keys.end() && key->continued);

    // Holders first; a party that was seen several times is listed once, as a holder if it was seen
    // as one.
    std::sort(party, end, [](const Party& a, const Party& b) {
      if (a.holds != b.holds) return a.holds;
      return a.holds ? a.id < b.id : a.ticket < b.ticket;
    });
    std::unordered_set<std::uint64_t> seen;
    for (; party != end; ++party) {
      if (in_sections && !seen.insert(party->id.value).second) continue;
      (party->holds ? info.holders : info.waiters)
          .push_back({party->id, party->mode, party->since, {}});
    }
  }
  std::sort(infos.begin(), infos.end(),
            [](const LockInfo& a, const LockInfo& b) { return a.key < b.key; });
  return infos;
}

}  // namespace pv2

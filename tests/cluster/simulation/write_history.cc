// SPDX-License-Identifier: Apache-2.0
//
// Each check is made when a client is told something, and once more at the end.

#include "cluster/simulation/write_history.h"

#include <algorithm>
#include <charconv>

namespace pv2::testing::cluster_simulation {
namespace {

using cluster::Cell;
using cluster::Mutation;
using cluster::MutationKind;

// 4^30 fits into the counter's 63 bits.
constexpr std::uint64_t kDigitsMax = 31;

bool counts(std::size_t row) { return row % 3 != 2; }

std::string name_of(const Write& write) {
  return "write " + std::to_string(write.number) + " of row " + write.row + " of " +
         to_string(write.table);
}

bool puts(const Mutation& mutation, const std::string& name) {
  return mutation.kind == MutationKind::kPut && mutation.qualifier == name;
}
bool touches(const Mutation& mutation, const std::string& name) {
  return mutation.kind == MutationKind::kDeleteRow || mutation.qualifier == name;
}
/// What the write leaves in the register: a value, or nothing. No value at all: it does not touch
/// it.
std::optional<std::optional<std::string>> left_by(const Write& write, const std::string& name) {
  std::optional<std::optional<std::string>> left;
  for (const Mutation& mutation : write.mutations) {
    if (!touches(mutation, name)) continue;
    left = puts(mutation, name) ? std::optional(mutation.value) : std::nullopt;
  }
  return left;
}

const Cell* find_cell(const std::vector<Cell>& cells, const std::string& qualifier) {
  const auto found = std::ranges::find(cells, qualifier, &Cell::qualifier);
  return found == cells.end() ? nullptr : &*found;
}

std::string value_of(const std::vector<Cell>& cells, const std::string& qualifier) {
  const Cell* const cell = find_cell(cells, qualifier);
  return cell == nullptr ? "" : cell->value;
}

}  // namespace

std::string WriteHistory::row(std::size_t number) {
  return std::string(1, static_cast<char>(number * 256 / kRows + 3)) +
         (counts(number) ? "count" : "register");
}

Write& WriteHistory::begin(const TableName& table, Nonce nonce, Random& random) {
  auto made = std::make_unique<Write>();
  Write& write = *made;
  const std::size_t number = random.below(kRows);
  write.number = writes_.size();
  write.table = table;
  write.row = row(number);
  write.nonce = nonce;
  write.begun = now();
  Row& kept = row_of(write);
  const auto add = [&](MutationKind kind, const char* name, std::string value = {}) {
    write.mutations.push_back({kind, write.row, "f", name, std::move(value), 0});
  };
  if (counts(number)) {
    const std::uint64_t choice = random.below(3);
    if (choice != 1 && kept.digits < kDigitsMax) {
      write.digit = kept.digits++;
      add(MutationKind::kIncrement, "n");
      write.mutations.back().amount =
          static_cast<std::int64_t>(std::uint64_t{1} << 2 * *write.digit);
    }
    if (choice != 0 || !write.digit) {
      write.token = std::to_string(write.number) + ";";
      add(MutationKind::kAppend, "t", write.token);
    }
  } else {
    const std::string value = "v" + std::to_string(write.number);
    switch (random.below(8)) {
      case 0:
        write.mutations.push_back({MutationKind::kDeleteRow, write.row, {}, {}, {}, 0});
        break;
      case 1:
        add(MutationKind::kDelete, "a");
        break;
      case 2:
        add(MutationKind::kDelete, "b");
        add(MutationKind::kPut, "a", value);
        break;
      case 3:
      case 4:
        add(MutationKind::kPut, "a", value);
        add(MutationKind::kPut, "b", value);
        break;
      default:
        add(MutationKind::kPut, random.below(2) == 0 ? "a" : "b", value);
        break;
    }
  }
  kept.writes.push_back(&write);
  writes_.push_back(std::move(made));
  return write;
}

std::vector<Write*> WriteHistory::writes_in(Write::State state) {
  std::vector<Write*> found;
  for (const auto& write : writes_) {
    if (write->state == state) found.push_back(write.get());
  }
  return found;
}

std::size_t WriteHistory::count(Write::State state) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(writes_, [&](const auto& write) { return write->state == state; }));
}

void WriteHistory::wrong(const std::string& what) {
  if (contradiction_.empty()) contradiction_ = what;
}

void WriteHistory::heard(Write& write, const cluster::WriteOutcome& outcome) {
  using Kind = cluster::WriteOutcome::Kind;
  using State = Write::State;
  --write.in_flight;
  if (outcome.expires_at) write.expires_at = outcome.expires_at;
  switch (outcome.kind) {
    case Kind::kUnknown:
      if (write.state == State::kPending && write.in_flight == 0) write.state = State::kUnknown;
      return;
    case Kind::kFailed:
      // It says that this copy did nothing. Of the others it knows nothing.
      if (write.copies == 1) write.state = State::kFailed;
      if (write.state == State::kPending && write.in_flight == 0) write.state = State::kUnknown;
      return;
    case Kind::kOk:
      break;
  }
  if (write.state == State::kAcknowledged) {
    if (!(write.result == outcome.result) && !is_loose(write.table)) {
      wrong(name_of(write) + " was answered twice, and differently");
    }
    return;
  }
  if (write.state == State::kFailed) {
    return wrong(name_of(write) + " has failed for good, and was then acknowledged");
  }
  write.state = State::kAcknowledged;
  write.result = outcome.result;
  write.ended = now();
  check_acknowledged(write);
}

void WriteHistory::check_acknowledged(const Write& write) {
  const Row& row = row_of(write);
  const bool is_loose = this->is_loose(write.table);
  if (write.result.values.size() != write.mutations.size()) {
    return wrong(name_of(write) + " has " + std::to_string(write.mutations.size()) +
                 " mutations and " + std::to_string(write.result.values.size()) + " values");
  }
  const std::string where = "the answer to " + name_of(write);
  for (std::size_t i = 0; i < write.mutations.size(); ++i) {
    const std::string& value = write.result.values[i];
    if (write.mutations[i].qualifier == "n") {
      check_counter(row, where, value, &write, write.begun, is_loose);
    }
    if (write.mutations[i].qualifier == "t") {
      check_text(row, where, value, &write, write.begun, is_loose);
    }
  }
  if (!is_loose) check_order(row);
}

void WriteHistory::check_mark(const Write& write, std::uint64_t times, const std::string& where,
                              const Write* by, std::uint64_t begun, bool is_loose) {
  using State = Write::State;
  const std::string mark = where + ": " + name_of(write);
  if (times > 1) return wrong(mark + " was done " + std::to_string(times) + " times");
  if (is_loose) return;
  if (times == 1 && write.state == State::kFailed) return wrong(mark + " failed, and was done");
  if (write.state != State::kAcknowledged) return;
  if (by != nullptr) {
    // A value is of its sequence: the marks up to it, and no later ones.
    const bool is_before = write.result.sequence <= by->result.sequence;
    if (is_before && times == 0) wrong(mark + " was acknowledged before, and is not in it");
    if (!is_before && times == 1) wrong(mark + " comes after it, and is in it");
  } else if (write.ended < begun && times == 0) {
    wrong(mark + " was acknowledged before, and is not in it");
  }
}

void WriteHistory::check_counter(const Row& row, const std::string& where, const std::string& value,
                                 const Write* by, std::uint64_t begun, bool is_loose) {
  std::uint64_t number = 0;
  if (!value.empty()) std::from_chars(value.data(), value.data() + value.size(), number);
  for (const Write* write : row.writes) {
    if (!write->digit) continue;
    check_mark(*write, (number >> 2 * *write->digit) & 3, where, by, begun, is_loose);
  }
  if (row.digits < kDigitsMax && number >> 2 * row.digits != 0) {
    wrong(where + " is " + value + ", which no writes make");
  }
}

void WriteHistory::check_text(const Row& row, const std::string& where, const std::string& value,
                              const Write* by, std::uint64_t begun, bool is_loose) {
  std::map<std::string, std::uint64_t> times;
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t end = std::min(value.find(';', at), value.size() - 1);
    ++times[value.substr(at, end + 1 - at)];
    at = end + 1;
  }
  for (const Write* write : row.writes) {
    if (write->token.empty()) continue;
    const auto found = times.find(write->token);
    check_mark(*write, found == times.end() ? 0 : found->second, where, by, begun, is_loose);
    if (found != times.end()) times.erase(found);
  }
  if (!times.empty()) wrong(where + " has '" + times.begin()->first + "', which nobody appended");
}

// The sequences of a row are the order of its writes, also of those that did not overlap in time;
// and what each was told is a part of what the next one was told.
void WriteHistory::check_order(const Row& row) {
  std::vector<const Write*> done;
  for (const Write* write : row.writes) {
    if (write->state == Write::State::kAcknowledged) done.push_back(write);
  }
  std::ranges::sort(done, {}, [](const Write* write) { return write->result.sequence; });
  std::uint64_t latest_begin = 0;
  std::string text;
  const Write* before = nullptr;
  for (const Write* write : done) {
    if (before != nullptr && before->result.sequence == write->result.sequence) {
      return wrong(name_of(*before) + " and " + name_of(*write) + " have one sequence");
    }
    if (write->ended < latest_begin) {
      return wrong(name_of(*write) + " was acknowledged before another write began, and has a " +
                   "later sequence than that");
    }
    latest_begin = std::max(latest_begin, write->begun);
    before = write;
    for (std::size_t i = 0; i < write->mutations.size(); ++i) {
      if (write->mutations[i].qualifier != "t") continue;
      if (!write->result.values[i].starts_with(text)) {
        return wrong(name_of(*write) + " was told '" + write->result.values[i] +
                     "', which does not begin with '" + text + "'");
      }
      text = write->result.values[i];
    }
  }
}

void WriteHistory::check_register(const Row& row, const std::string& where, const std::string& name,
                                  const Cell* cell, std::uint64_t begun, bool is_loose) {
  using State = Write::State;
  const Write* last = nullptr;   // of those that ended before the read
  const Write* found = nullptr;  // who has put the value
  bool may_be_deleted = false;   // by a write that is not known to be before `last`
  for (const Write* write : row.writes) {
    const auto left = left_by(*write, name);
    if (!left || write->state == State::kFailed) continue;
    if (cell != nullptr && *left == cell->value) found = write;
    if (write->state == State::kAcknowledged && write->ended < begun &&
        (last == nullptr || write->result.sequence > last->result.sequence)) {
      last = write;
    }
  }
  const auto is_later = [&](const Write& write) {
    return write.state != State::kAcknowledged || last == nullptr ||
           write.result.sequence >= last->result.sequence;
  };
  for (const Write* write : row.writes) {
    const auto left = left_by(*write, name);
    if (left && !*left && write->state != State::kFailed && is_later(*write)) may_be_deleted = true;
  }
  if (cell == nullptr) {
    if (!is_loose && last != nullptr && !may_be_deleted) {
      wrong(where + ": " + name + " is not there, but " + name_of(*last) + " was acknowledged");
    }
    return;
  }
  if (found == nullptr) return wrong(where + ": nobody has put '" + cell->value + "' there");
  if (is_loose) return;
  if (found->state == State::kAcknowledged && found->result.sequence != cell->sequence) {
    wrong(where + ": " + name + " has sequence " + std::to_string(cell->sequence) + ", and " +
          name_of(*found) + " was told " + std::to_string(found->result.sequence));
  }
  if (last != nullptr && cell->sequence < last->result.sequence) {
    wrong(where + ": " + name + " is that of " + name_of(*found) + ", but " + name_of(*last) +
          " was acknowledged later");
  }
}

void WriteHistory::read(const TableName& table, const std::string& row,
                        const std::vector<Cell>& cells, std::uint64_t begun) {
  const auto found = rows_.find({table, row});
  if (found == rows_.end()) {
    if (!cells.empty()) wrong("row " + row + " of " + to_string(table) + " was never written");
    return;
  }
  const std::string where = "a read of row " + row + " of " + to_string(table);
  const bool is_loose = this->is_loose(table);
  const Row& kept = found->second;
  check_counter(kept, where, value_of(cells, "n"), nullptr, begun, is_loose);
  check_text(kept, where, value_of(cells, "t"), nullptr, begun, is_loose);
  for (const char* name : {"a", "b"}) {
    check_register(kept, where, name, find_cell(cells, name), begun, is_loose);
  }
  // A write is done as a whole.
  std::uint64_t number = 0;
  const std::string counter = value_of(cells, "n");
  const std::string text = ";" + value_of(cells, "t");
  std::from_chars(counter.data(), counter.data() + counter.size(), number);
  for (const Write* write : kept.writes) {
    if (!write->digit || write->token.empty()) continue;
    const bool is_counted = ((number >> 2 * *write->digit) & 3) != 0;
    const bool is_told = text.find(";" + write->token) != std::string::npos;
    if (is_counted != is_told) wrong(where + ": only a part of " + name_of(*write) + " is there");
  }
}

void WriteHistory::check_end(const TableName& table, const std::string& row,
                             const std::vector<Cell>& cells) {
  read(table, row, cells, now());
  const auto found = rows_.find({table, row});
  if (found == rows_.end() || is_loose(table)) return;
  check_order(found->second);
  // The last answer is the beginning of what is there.
  const std::string text = value_of(cells, "t");
  for (const Write* write : found->second.writes) {
    if (write->state != Write::State::kAcknowledged) continue;
    for (std::size_t i = 0; i < write->mutations.size(); ++i) {
      if (write->mutations[i].qualifier == "t" && !text.starts_with(write->result.values[i])) {
        wrong(name_of(*write) + " was told '" + write->result.values[i] + "', but there is '" +
              text + "'");
      }
    }
  }
}

}  // namespace pv2::testing::cluster_simulation

// SPDX-License-Identifier: Apache-2.0
//
// WriteHistory: what clients have written, what they were told of it, and whether what is read can
// be true. It is exact although the outcome of some writes is unknown, because each write leaves a
// mark of its own in the value:
//
//     "n"     a counter: write number k of the row adds 4^k, so each digit of the value in base 4
//             says how often that write was done: 0 or 1
//     "t"     a text: each write appends a token of its own
//     "a" "b" registers: each put has a value of its own, and the cell tells the sequence
//
// The sequences of a row's writes are their order. So a value that a write was told, or that is
// read at the end, has exactly the marks of those that were acknowledged before, perhaps those of
// unknown writes, and no other one.
//
// A table that was truncated or deleted is *loose*: what was acknowledged may be gone. Its values
// still have each mark once at most.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/random.h>
#include <pv2/base/time.h>
#include <pv2/cluster/cell.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/procedures/table.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pv2::testing::cluster_simulation {

/// One write of a client, under one nonce, however often it is sent.
struct Write {
  enum class State {
    kPending,  ///< It is under way, and nothing was heard of it.
    kUnknown,
    kAcknowledged,
    kFailed,  ///< None of it was done, and none will be.
  };

  std::uint64_t number = 0;
  TableName table;
  std::string row;
  std::vector<cluster::Mutation> mutations;
  Nonce nonce;
  std::optional<WallTime> expires_at{};

  State state = State::kPending;
  int copies = 0;     ///< That clients have sent.
  int in_flight = 0;  ///< Of these, those that have no outcome yet.
  cluster::WriteResult result{};
  std::uint64_t begun = 0;  ///< Moments of the history.
  std::uint64_t ended = 0;  ///< When it was first acknowledged.

  std::optional<std::uint64_t> digit{};  ///< Of the counter.
  std::string token{};                   ///< Of the text.
};

/// Owned by one thread. The first contradiction is kept in words.
class WriteHistory {
 public:
  /// A row for counters and texts, or one for registers.
  static constexpr std::size_t kRows = 12;
  [[nodiscard]] static std::string row(std::size_t number);

  /// Makes a write of `table` for one of its rows.
  Write& begin(const TableName& table, Nonce nonce, Random& random);
  /// A client has heard of a write.
  void heard(Write& write, const cluster::WriteOutcome& outcome);
  /// Of the clients that die with their requests.
  [[nodiscard]] std::vector<Write*> writes_in(Write::State state);

  /// A moment, for a read that begins.
  std::uint64_t now() { return ++moment_; }
  /// What a read that began at `begun` has found in a row.
  void read(const TableName& table, const std::string& row, const std::vector<cluster::Cell>& cells,
            std::uint64_t begun);
  /// What is left in a row when nothing is under way any more.
  void check_end(const TableName& table, const std::string& row,
                 const std::vector<cluster::Cell>& cells);

  void loosen(const TableName& table) { loose_.insert(table); }
  [[nodiscard]] bool is_loose(const TableName& table) const { return loose_.contains(table); }

  /// Empty: there was none.
  [[nodiscard]] const std::string& contradiction() const noexcept { return contradiction_; }
  [[nodiscard]] std::size_t size() const noexcept { return writes_.size(); }
  [[nodiscard]] std::size_t count(Write::State state) const;

 private:
  struct Row {
    std::vector<Write*> writes;  // by number
    std::uint64_t digits = 0;
  };

  [[nodiscard]] Row& row_of(const Write& write) { return rows_[{write.table, write.row}]; }
  void wrong(const std::string& what);
  void check_acknowledged(const Write& write);
  /// The marks of a value against those of the other writes. `by` is the write that was told it,
  /// if one was; otherwise all that ended before `begun` are in it.
  void check_counter(const Row& row, const std::string& where, const std::string& value,
                     const Write* by, std::uint64_t begun, bool is_loose);
  void check_text(const Row& row, const std::string& where, const std::string& value,
                  const Write* by, std::uint64_t begun, bool is_loose);
  void check_mark(const Write& write, std::uint64_t times, const std::string& where,
                  const Write* by, std::uint64_t begun, bool is_loose);
  void check_register(const Row& row, const std::string& where, const std::string& name,
                      const cluster::Cell* cell, std::uint64_t begun, bool is_loose);
  void check_order(const Row& row);

  std::vector<std::unique_ptr<Write>> writes_;
  std::map<std::pair<TableName, std::string>, Row> rows_;
  std::set<TableName> loose_;
  std::uint64_t moment_ = 0;
  std::string contradiction_;
};

}  // namespace pv2::testing::cluster_simulation

// SPDX-License-Identifier: Apache-2.0
//
// RowTable: the rows of a store that lives in memory, in the order of space and key. It checks what
// a batch claims (insert: the row is new; update: it is there), because a broken claim is a defect
// of the engine that a real database would hide. A unit with a broken claim is undone as a whole.
// It knows neither threads nor durability.

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/base/ids.h"
#include "pv2/base/status.h"
#include "pv2/store/commit_request.h"
#include "pv2/store/procedure_store.h"

namespace pv2 {

/// Rows in key order. Owned by one thread at a time.
class RowTable {
 public:
  struct Row {
    std::string value;
    CommitSequence sequence;
  };
  /// A copy of one row; `key` begins with the byte of its space.
  struct Copy {
    std::string key;
    Row row;
  };

  /// Applies all requests of `unit`, or none of them: then the failure names the row and what was
  /// wrong with it.
  Status apply(const CommitList& unit);

  /// Applies what one batch does to one space, without checking its claims.
  void apply_unchecked(const RowBatch& batch, Space space, CommitSequence sequence);

  [[nodiscard]] const Row* find(Space space, std::string_view key) const;
  void put(Space space, std::string_view key, std::string_view value, CommitSequence sequence);
  bool erase(Space space, std::string_view key);

  [[nodiscard]] std::vector<Copy> copy_prefix(Space space, std::string_view prefix) const;
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }

 private:
  struct Undo {
    std::string key;
    std::optional<Row> before;
  };
  Status apply_one(RowOperation operation, std::string full_key, std::string_view value,
                   CommitSequence sequence, std::vector<Undo>& undo);

  std::map<std::string, Row, std::less<>> rows_;
};

/// Shows copies to a visitor; ends with its first failure.
Status visit_copies(const std::vector<RowTable::Copy>& copies, const RowVisitor& visit);

/// The byte of the space, then the key: the order of such keys is the order of rows in every store.
[[nodiscard]] std::string full_key(Space space, std::string_view key);

/// "row P 0000002a": for messages; bytes that do not print appear in hexadecimal.
[[nodiscard]] std::string describe_key(std::string_view full_key);

}  // namespace pv2

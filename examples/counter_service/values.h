// SPDX-License-Identifier: Apache-2.0
//
// Values: the counters and texts of the service, in memory, as they are after all operations that
// have begun, and the rows that keep them. An operation is computed from the newest value, not from
// the last durable one, so operations need not wait for each other: their batches become durable in
// the order in which the service computed them. A reader gets the durable value.

#pragma once

#include <pv2/base/status.h>
#include <pv2/idempotency/row_log.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "requests.h"

namespace counter {

/// Owned by one thread, the loop's. Batches have to be committed in the order in which they were
/// filled.
class Values {
 public:
  static constexpr std::size_t kNamesMax = 1000;  ///< Of counters, and of texts.
  static constexpr std::size_t kTextBytesMax = std::size_t{64} << 20;

  /// Reads the rows of an earlier process. kCorruption: they are not what this class writes.
  pv2::Status load(pv2::RowLog& rows);

  /// The outcome of an operation: its answer, or a definite failure, which changes nothing. The
  /// rows of the effect are added to `effect`.
  pv2::Result<std::string> add(const AddRequest& request, pv2::RowBatch& effect);
  pv2::Result<std::string> append(const AppendRequest& request, pv2::RowBatch& effect);
  /// The batch with this answer is durable.
  void counter_is_durable(const std::string& name, std::uint64_t value);
  void text_is_durable(const std::string& name, std::uint64_t size);

  /// What is durable; 0 and "" without a row.
  [[nodiscard]] std::uint64_t counter(const std::string& name) const;
  [[nodiscard]] std::string_view text(const std::string& name) const;

 private:
  struct Counter {
    std::uint64_t newest = 0;
    std::uint64_t durable = 0;
  };
  struct Text {
    std::string newest;
    std::size_t durable = 0;  // the length of the part that the store has
  };
  std::map<std::string, Counter, std::less<>> counters_;
  std::map<std::string, Text, std::less<>> texts_;
};

}  // namespace counter

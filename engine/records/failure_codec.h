// SPDX-License-Identifier: Apache-2.0
//
// The failure in a state row: the error, why the procedure is parked, and why its last undo failed.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/base/wire.h>

#include <memory>
#include <string>
#include <string_view>

#include "model/record.h"
#include "records/named_values.h"
#include "records/row_writer.h"

namespace pv2 {

/// Writes what `failure` says; nothing if there is none.
void encode_failure(RowWriter& row, const FailureAfter& failure);

/// The failure of a row that is being read. Views into the row.
struct StoredFailure {
  StatusCode error_code = StatusCode::kOk;
  StatusCode parked_code = StatusCode::kOk;
  std::string_view error_message;
  std::string_view parked_message;
  std::string_view undo;  ///< An encoded message; empty: the last undo did not fail.
  CommitSequence sequence;

  /// `own` is the sequence of the batch that wrote the row. If an error is stored without a
  /// sequence, the record in this row was the one that failed first.
  explicit StoredFailure(CommitSequence own) : sequence(own) {}

  /// Takes the reader's current field if it belongs to a failure, and returns whether it does.
  bool read(WireReader& reader, NamedValues& named);
  /// nullptr: the record carries no failure. Fails if `undo` is malformed.
  [[nodiscard]] Result<std::unique_ptr<Failure>> decode() const;
};

}  // namespace pv2

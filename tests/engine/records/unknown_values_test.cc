// SPDX-License-Identifier: Apache-2.0
//
// Rows that name a value which this program does not know, as a newer program may have written it.

#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include <cstdint>
#include <string>

#include "records/audit_row.h"
#include "records/nonce_record.h"
#include "support/catch.h"

namespace pv2::testing::unknown_values_test {
namespace {

// A nonce row of procedure 7, whose fingerprint has the form `form`.
std::string nonce_row(std::uint64_t form) {
  std::string row;
  FrameWriter frame(row);
  append_varint_field(row, 1, 7);
  append_varint_field(row, 4, form);
  frame.finish();
  return row;
}

// The copy of order `verb` about procedure 8 of the tree of procedure 7.
std::string audit_row(std::uint64_t verb) {
  std::string row;
  FrameWriter frame(row);
  append_varint_field(row, 1, verb);
  append_varint_field(row, 6, 8);
  append_varint_field(row, 8, 7);
  frame.finish();
  return row;
}

}  // namespace

TEST_CASE("a nonce row with a form of fingerprint that is not known is corrupt") {
  CHECK(decode_nonce_record(nonce_row(1))->fingerprint.form == Fingerprint::Form::kJoined);
  CHECK(decode_nonce_record(nonce_row(2))->fingerprint.form == Fingerprint::Form::kExact);
  const std::uint64_t unknown =
      GENERATE(as<std::uint64_t>(), 0, 3, 257, UINT64_MAX);  // 257: 1 in its last byte
  const Status status = decode_nonce_record(nonce_row(unknown)).status();
  CHECK(status.code() == StatusCode::kCorruption);
  CHECK_THAT(status.to_string(), ContainsSubstring("form " + std::to_string(unknown)));
}

TEST_CASE("an audit row with an order that is not known is corrupt, and its place is known") {
  CHECK(decode_audit(audit_row(1))->entry.verb == RepairVerb::kRetryNow);
  CHECK(decode_audit(audit_row(4))->entry.verb == RepairVerb::kBypass);
  const std::uint64_t unknown = GENERATE(as<std::uint64_t>(), 0, 5, 257, UINT64_MAX);
  const Status status = decode_audit(audit_row(unknown)).status();
  CHECK(status.code() == StatusCode::kCorruption);
  CHECK_THAT(status.to_string(), ContainsSubstring("order " + std::to_string(unknown)));

  const auto place = decode_audit_place(audit_row(unknown));
  REQUIRE(place.ok());
  CHECK(place->procedure == ProcedureId{8});
  CHECK(place->root == ProcedureId{7});
  CHECK(decode_audit_place("torn").status().code() == StatusCode::kCorruption);
}

}  // namespace pv2::testing::unknown_values_test

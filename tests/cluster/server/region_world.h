// SPDX-License-Identifier: Apache-2.0
//
// RegionWorld: a world of servers with one table of one region, and short names for what a client
// asks of that region.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/server/server_world.h"
#include "wire/methods.h"

namespace pv2::testing::region_world {

using namespace cluster;       // NOLINT: the layer under test
using namespace server_world;  // NOLINT

inline const TableName kTable{"default", "t"};
inline const RegionInfo kRegion = whole_table(kTable, "r1");

template <class T>
std::string encoded(T message) {
  std::string body;
  encode_fields(message, FieldSelection::kAll, body);
  return body;
}

inline std::string put_body(const std::string& row, const std::string& value,
                            std::uint64_t epoch = 0, const std::string& region = "r1") {
  return encoded(WriteRequest{region, {{MutationKind::kPut, row, "f", "q", value}}, epoch});
}
inline std::string add_body(const std::string& row) {
  return encoded(WriteRequest{"r1", {{MutationKind::kIncrement, row, "f", "n", "", 1}}, 0});
}
inline std::string scan_body(const std::string& region = "r1", std::uint64_t epoch = 0) {
  return encoded(ScanRequest{region, {}, epoch});
}

inline CallOptions once(std::uint64_t number, Duration timeout = std::chrono::milliseconds(300)) {
  return {.nonce = {77, number}, .timeout = timeout};
}
inline CallOptions reading() {
  return {.read_only = true, .timeout = std::chrono::milliseconds(300)};
}

inline std::vector<std::string> values_of(const CallOutcome& outcome) {
  INFO(to_string(outcome));
  REQUIRE(outcome.ok());
  ScanPage page;
  REQUIRE(decode_fields(page, FieldSelection::kAll, outcome.body).ok());
  std::vector<std::string> values;
  for (const Cell& cell : page.cells) values.push_back(cell.row + "=" + cell.value);
  return values;
}

inline WriteResult result_of(const CallOutcome& outcome) {
  INFO(to_string(outcome));
  REQUIRE(outcome.ok());
  WriteResult result;
  REQUIRE(decode_fields(result, FieldSelection::kAll, outcome.body).ok());
  return result;
}

/// One table with one region, which is on no server yet.
struct World : ServerWorld {
  World() { make_table(kTable, {"f"}, {kRegion}); }
};

using Values = std::vector<std::string>;

}  // namespace pv2::testing::region_world

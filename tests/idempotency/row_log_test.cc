// SPDX-License-Identifier: Apache-2.0
//
// What StoreRows promises about a batch.

#include "pv2/idempotency/row_log.h"

#include <pv2/store/memory_procedure_store.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::row_log_test {
namespace {

RowBatch rows(int count, std::size_t bytes = 1) {
  RowBatch batch;
  for (int i = 0; i < count; ++i) {
    batch.put(Space::kHost, "row/" + std::to_string(i), std::string(bytes, 'x'));
  }
  return batch;
}

}  // namespace

TEST_CASE("a batch beyond the limits of the store is refused, and the next one is written") {
  const auto disk = std::make_shared<MemoryDisk>();
  MemoryStoreOptions options;
  options.limits = {.batch_operations = 3, .batch_bytes = 200};
  const auto log = *StoreRows::open(std::make_unique<MemoryProcedureStore>(disk, options));
  for (RowBatch& batch : std::vector{rows(4), rows(1, 200)}) {
    const Status refused = log->commit(std::move(batch));
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK_THAT(refused.to_string(), ContainsSubstring("the store takes 3 and 200"));
  }
  CHECK(disk->rows() == 0);

  CHECK(log->commit(rows(3)).to_string() == "OK");
  CHECK(disk->rows() == 3);
}

TEST_CASE("a batch that waits is written before the store is closed") {
  const auto disk = std::make_shared<MemoryDisk>();
  std::optional<Status> answer;
  {
    const auto log = *StoreRows::open(std::make_unique<MemoryProcedureStore>(disk));
    log->commit(rows(2), [&](const Status& status) { answer = status; });
    CHECK_FALSE(answer);
  }
  REQUIRE(answer);
  CHECK(answer->to_string() == "OK");
  CHECK(disk->rows() == 2);
}

}  // namespace pv2::testing::row_log_test

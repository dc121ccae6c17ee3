// SPDX-License-Identifier: Apache-2.0
//
// What only the memory store does: it checks what batches claim, is pumped request by request, is
// fenced, and has a disk that a test can copy and damage.

#include <deque>

#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::memory_procedure_store_test {
namespace {

using Strings = std::vector<std::string>;

TEST_CASE("an insert of a row that exists fails its whole unit and names the row") {
  MemoryProcedureStore store;
  RecordingSink sink;
  REQUIRE(store.recover_lease(sink).ok());
  std::deque<Request> requests(3);
  requests[0].batch.insert(Space::kProcedure, "7", "first");
  store.commit(requests[0]);
  store.pump();

  requests[1].batch.update(Space::kProcedure, "7", "changed");
  requests[1].batch.insert(Space::kHost, "row", "new");
  requests[2].batch.erase(Space::kHost, "row");
  requests[2].batch.insert(Space::kProcedure, "7", "again");
  store.commit(requests[1]);
  store.commit(requests[2]);
  store.pump();

  const auto answers = sink.answers();
  REQUIRE(answers[1].status.code() == StatusCode::kInternal);
  REQUIRE(answers[2].status.message() ==
          "memory store: commit 3 inserts row P 7, which exists since commit 2");
  REQUIRE(load_rows(store) == Strings{"P:7=first@1"});
}

TEST_CASE("an update of a row that does not exist fails and names the row") {
  MemoryProcedureStore store;
  RecordingSink sink;
  REQUIRE(store.recover_lease(sink).ok());
  Request request;
  request.batch.update(Space::kProcedure, std::string_view("\0\x2a", 2), "v");
  store.commit(request);
  store.pump();

  REQUIRE(request.status.code() == StatusCode::kInternal);
  REQUIRE(request.status.message() ==
          "memory store: commit 1 updates row P 002a, which does not exist");
}

TEST_CASE("pump makes all queued commits durable as one list, pump_some only the first ones") {
  MemoryProcedureStore store;
  RecordingSink sink;
  REQUIRE(store.recover_lease(sink).ok());
  std::deque<Request> requests(5);
  for (Request& request : requests) {
    request.batch.put(Space::kHost, "row", std::to_string(&request - &requests[0]));
    store.commit(request);
  }

  REQUIRE(store.pump_some(2));
  REQUIRE(sink.answers().size() == 2);
  REQUIRE(store.queued() == 3);
  REQUIRE(*store.get(Space::kHost, "row").value() == "1");
  REQUIRE(store.pump());
  REQUIRE(sink.answers().size() == 5);
  REQUIRE(sink.lists() == 2);
  REQUIRE_FALSE(store.pump());
}

TEST_CASE("the second owner of a disk fences the first, which writes nothing more") {
  const auto disk = std::make_shared<MemoryDisk>();
  RecordingSink sink;
  MemoryProcedureStore first(disk);
  REQUIRE(first.recover_lease(sink).ok());
  MemoryProcedureStore second(disk);
  REQUIRE(second.recover_lease(sink).ok());
  Request late;
  late.batch.insert(Space::kHost, "row", "of the first");
  first.commit(late);
  first.pump();
  Request valid;
  valid.batch.insert(Space::kHost, "row", "of the second");
  second.commit(valid);
  second.pump();

  REQUIRE(late.status.code() == StatusCode::kFenced);
  REQUIRE_THAT(std::string(late.status.message()), ContainsSubstring("epoch 2, this store has 1"));
  REQUIRE(valid.status.ok());
  REQUIRE(disk->get(Space::kHost, "row") == "of the second");
}

TEST_CASE("a cloned disk is independent, and a test can damage a row on it") {
  const auto disk = std::make_shared<MemoryDisk>();
  disk->put(Space::kProcedure, "7", "good");
  const auto copy = disk->clone();
  copy->put(Space::kProcedure, "7", "bad");
  copy->put(Space::kProcedure, "8", "more");
  REQUIRE(copy->erase(Space::kProcedure, "8"));
  REQUIRE_FALSE(copy->erase(Space::kProcedure, "8"));

  REQUIRE(disk->get(Space::kProcedure, "7") == "good");
  REQUIRE(copy->get(Space::kProcedure, "7") == "bad");
  REQUIRE(copy->rows() == 1);
}

TEST_CASE(
    "the noop store answers at once, keeps only rows of the host, and says that it keeps no "
    "records") {
  const auto store = noop();
  RecordingSink sink;
  REQUIRE(store->recover_lease(sink).ok());
  REQUIRE_FALSE(store->keeps_records());
  Request first;
  first.batch.insert(Space::kProcedure, "7", "record");
  Request second;
  second.batch.insert(Space::kProcedure, "8", "record");
  second.batch.put(Space::kHost, "a/1", "row");
  second.batch.put(Space::kHost, "a/2", "row");
  second.batch.erase(Space::kHost, "a/1");

  REQUIRE(store->commit(first) == CommitAnswer::kDurable);
  CommitList list;
  list.push_back(second);
  REQUIRE(store->commit_all(list) == CommitAnswer::kDurable);

  REQUIRE(list.size() == 1);
  REQUIRE(first.status.ok());
  REQUIRE(second.sequence > first.sequence);
  REQUIRE(scan_rows(*store, Space::kHost, "a/") == Strings{"a/2=row"});
  REQUIRE_FALSE(store->get(Space::kProcedure, "8").value().has_value());
  REQUIRE(load_rows(*store).size() == 1);
  REQUIRE(sink.answers().empty());

  store->close();
  store->close();
  REQUIRE(store->commit(first) == CommitAnswer::kDurable);
  REQUIRE(first.status.code() == StatusCode::kStopping);
}

}  // namespace
}  // namespace pv2::testing::memory_procedure_store_test

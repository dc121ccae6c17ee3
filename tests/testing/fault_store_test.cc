// SPDX-License-Identifier: Apache-2.0
//
// The FaultStore itself: other tests rely on it.

#include "pv2/testing/fault_store.h"

#include <deque>

#include "store/store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::fault_store_test {
namespace {

using Numbers = std::vector<int>;

// A FaultStore over a memory store or the noop store, and five requests.
class Bench {
 public:
  explicit Bench(std::unique_ptr<ProcedureStore> inner) : faults(std::move(inner)) {
    REQUIRE(faults.recover_lease(sink).ok());
    for (int i = 0; i < 5; ++i) {
      requests[static_cast<std::size_t>(i)].number = i + 1;
      requests[static_cast<std::size_t>(i)].batch.insert(Space::kHost, std::to_string(i + 1), "v");
    }
  }
  void commit_all_five() {
    for (Request& request : requests) faults.commit(request);
    while (faults.pump()) {
    }
  }
  [[nodiscard]] Numbers heard(bool ok) const {
    Numbers numbers;
    for (const RecordingSink::Answer& answer : sink.answers()) {
      if (answer.status.ok() == ok) numbers.push_back(answer.number);
    }
    return numbers;
  }

  RecordingSink sink;
  std::deque<Request> requests{5};
  FaultStore faults;
};

TEST_CASE("a FaultStore without a fault passes, counts and traces every commit") {
  Bench bench(memory());
  bench.commit_all_five();

  REQUIRE(bench.heard(true) == Numbers{1, 2, 3, 4, 5});
  REQUIRE(bench.sink.lists() == 1);
  REQUIRE(bench.faults.commits() == 5);
  REQUIRE(bench.faults.rows(Space::kHost, RowOperation::kInsert) == 5);
  REQUIRE(bench.faults.rows(Space::kHost, RowOperation::kPut) == 0);
  REQUIRE(bench.faults.trace()[2].commit == 3);
  REQUIRE(bench.faults.trace()[2].key == "3");
}

TEST_CASE("a failing commit and all later ones fail in order and are not written") {
  const auto disk = std::make_shared<MemoryDisk>();
  Bench bench(memory(disk));
  bench.faults.fail_commit(3, Status(StatusCode::kIoError, "no disk"));
  bench.commit_all_five();

  REQUIRE(bench.heard(true) == Numbers{1, 2});
  REQUIRE(bench.heard(false) == Numbers{3, 4, 5});
  REQUIRE(bench.requests[4].status == Status(StatusCode::kIoError, "no disk"));
  REQUIRE(bench.requests[4].sequence > bench.requests[3].sequence);
  REQUIRE(disk->rows() == 2);
}

TEST_CASE("a held commit and all later ones wait for the release and keep their order") {
  Bench bench(memory());
  bench.faults.hold_commit(2);
  bench.commit_all_five();
  REQUIRE(bench.heard(true) == Numbers{1});
  REQUIRE(bench.faults.held() == 4);

  bench.faults.release();
  REQUIRE(bench.faults.pump());
  REQUIRE(bench.heard(true) == Numbers{1, 2, 3, 4, 5});
}

TEST_CASE("commits before a held one do not wait although they come in one list with it") {
  const bool is_memory = GENERATE(true, false);
  Bench bench(is_memory ? memory() : noop());
  bench.faults.hold_commit(3);
  CommitList list;
  for (Request& request : bench.requests) list.push_back(request);
  const CommitAnswer answer = bench.faults.commit_all(list);
  CHECK(answer == (is_memory ? CommitAnswer::kQueued : CommitAnswer::kDurable));
  if (is_memory) {
    REQUIRE(bench.faults.pump());
    CHECK(bench.heard(true) == Numbers{1, 2});
  } else {
    CHECK(list.size() == 2);
  }
  CHECK(bench.faults.commits() == 2);
  CHECK(bench.faults.held() == 3);

  bench.faults.release();
  while (bench.faults.pump()) {
  }
  CHECK(bench.faults.commits() == 5);
  CHECK(bench.heard(true) == (is_memory ? Numbers{1, 2, 3, 4, 5} : Numbers{3, 4, 5}));
}

TEST_CASE("a crash before a commit leaves the disk without it, and no answer comes") {
  const auto disk = std::make_shared<MemoryDisk>();
  Bench bench(memory(disk));
  bench.faults.crash_before(3);
  bench.commit_all_five();

  REQUIRE(bench.faults.crashed());
  REQUIRE(bench.heard(true) == Numbers{1, 2});
  REQUIRE(bench.heard(false).empty());
  REQUIRE(disk->rows() == 2);
}

TEST_CASE("a crash after a commit leaves the disk with it, and no answer comes") {
  const auto disk = std::make_shared<MemoryDisk>();
  Bench bench(memory(disk));
  bench.faults.crash_after(3);
  bench.commit_all_five();

  REQUIRE(bench.faults.crashed());
  REQUIRE(bench.heard(true) == Numbers{1, 2});
  REQUIRE(bench.heard(false).empty());
  REQUIRE(disk->rows() == 3);
}

TEST_CASE("after a crash whose commits are to be answered, later commits fail") {
  Bench bench(memory());
  bench.faults.crash_before(4, FaultStore::AfterCrash::kFail);
  CommitList list;
  for (Request& request : bench.requests) list.push_back(request);

  REQUIRE(bench.faults.commit_all(list) == CommitAnswer::kQueued);
  REQUIRE(list.empty());
  bench.faults.pump();

  REQUIRE(bench.heard(true) == Numbers{1, 2, 3});
  REQUIRE(bench.heard(false) == Numbers{4, 5});
}

TEST_CASE("over the noop store commits are answered at once, failed ones too") {
  Bench bench(noop());
  bench.faults.fail_commit(2, Status(StatusCode::kIoError, "no disk"));

  REQUIRE(bench.faults.commit(bench.requests[0]) == CommitAnswer::kDurable);
  REQUIRE(bench.requests[0].status.ok());
  REQUIRE(bench.faults.commit(bench.requests[1]) == CommitAnswer::kDurable);
  REQUIRE(bench.requests[1].status.code() == StatusCode::kIoError);
  REQUIRE(bench.sink.answers().empty());
}

TEST_CASE("over the noop store a held commit is answered through the sink when it is released") {
  Bench bench(noop());
  bench.faults.hold_commit(1);
  REQUIRE(bench.faults.commit(bench.requests[0]) == CommitAnswer::kQueued);
  bench.faults.release();

  REQUIRE(bench.heard(true) == Numbers{1});
}

TEST_CASE("over the noop store a commit that a crash makes unknown fails at once") {
  Bench bench(noop());
  bench.faults.crash_after(1, FaultStore::AfterCrash::kFail);

  REQUIRE(bench.faults.commit(bench.requests[0]) == CommitAnswer::kDurable);
  REQUIRE(bench.requests[0].status.code() == StatusCode::kIoError);
  REQUIRE(bench.faults.crashed());
  bench.faults.close();
  REQUIRE(bench.sink.answers().empty());
}

TEST_CASE("what was dropped or is held comes back as failed when the store is closed") {
  const auto disk = std::make_shared<MemoryDisk>();
  Bench bench(memory(disk));
  bench.faults.crash_before(2);
  bench.faults.hold_commit(4);
  bench.commit_all_five();
  REQUIRE(bench.heard(true) == Numbers{1});
  REQUIRE(bench.faults.held() == 2);

  bench.faults.close();

  REQUIRE(bench.heard(false) == Numbers{2, 3, 4, 5});
  REQUIRE(bench.faults.held() == 0);
  REQUIRE(disk->rows() == 1);
}

TEST_CASE("a commit to a closed FaultStore fails at once, also after a crash or while it holds") {
  Bench bench(memory());
  const bool holds = GENERATE(false, true);
  holds ? bench.faults.hold_commit(1) : bench.faults.crash_before(1);
  bench.faults.close();
  CommitList list;
  list.push_back(bench.requests[1]);

  REQUIRE(bench.faults.commit(bench.requests[0]) == CommitAnswer::kDurable);
  REQUIRE(bench.faults.commit_all(list) == CommitAnswer::kDurable);
  REQUIRE(!list.empty());
  list.pop_front();

  REQUIRE(bench.requests[0].status.code() == StatusCode::kStopping);
  REQUIRE(bench.requests[1].status.code() == StatusCode::kStopping);
  REQUIRE(bench.sink.answers().empty());
}

TEST_CASE("with a committer thread the answers to earlier commits come before a failure") {
  Bench bench(memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread}));
  bench.faults.fail_commit(3, Status(StatusCode::kIoError, "no disk"));
  bench.commit_all_five();
  bench.sink.wait_for(5, bench.faults);

  REQUIRE(bench.heard(true) == Numbers{1, 2});
  REQUIRE(bench.heard(false) == Numbers{3, 4, 5});
  bench.faults.close();
}

}  // namespace
}  // namespace pv2::testing::fault_store_test

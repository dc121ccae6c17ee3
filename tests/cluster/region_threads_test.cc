// SPDX-License-Identifier: Apache-2.0
//
// A region with threads: clients that increment, readers, and flushes and compactions on the thread
// of a work queue. For the thread sanitizer, and for counts that must be exact.

#include <atomic>
#include <latch>
#include <thread>

#include "storage_fixture.h"

namespace pv2::testing::region_threads_test {
namespace {

using cluster::ThreadWorkQueue;

constexpr int kClients = 4;
constexpr int kWrites = 150;

}  // namespace

TEST_CASE("cluster: increments by many threads are exact while files are flushed and merged") {
  Disk disk;
  disk.make_table({whole_table()});
  auto log_work = *ThreadWorkQueue::start("the log of a test");
  auto region_work = *ThreadWorkQueue::start("the files of a test");
  auto log = *cluster::ServerLog::open(disk.files, disk.layout, *log_work, {"rs1", 1},
                                       {.file_bytes_max = 4000});
  auto region =
      *cluster::Region::open(disk.files, disk.layout, *region_work, whole_table(),
                             {.families = {"f"}, .since = {1}, .descriptor = 1, .opening = 1});
  std::atomic<int> failures = 0;
  std::latch answered(kClients * kWrites);

  std::vector<std::thread> threads;
  for (int client = 0; client < kClients; ++client) {
    threads.emplace_back([&] {
      for (int i = 0; i < kWrites; ++i) {
        region->write({.mutations = {increment("a", 1), increment("b", 1)}}, *log,
                      [&](const Result<cluster::WriteResult>& done) {
                        if (!done.ok()) ++failures;
                        answered.count_down();
                      });
        if (i % 20 == 0) {
          region->flush([&](const Result<std::uint64_t>& done) {
            if (done.ok()) log->flushed(whole_table().id, *done);
            if (!done.ok()) ++failures;
          });
        }
        if (i % 50 == 0) {
          region->compact({}, [&](const Status& done) {
            if (!done.ok()) ++failures;
          });
        }
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < 100; ++i) {
      // Both rows are written together, so no reader sees them differ.
      const auto page = region->scan({});
      const bool agrees =
          page.ok() && (page->cells.empty() ||
                        (page->cells.size() == 2 && page->cells[0].value == page->cells[1].value));
      if (!agrees) ++failures;
    }
  });
  for (std::thread& thread : threads) thread.join();
  answered.wait();
  std::latch closed(1);
  region->close([&](const Result<std::uint64_t>& done) {
    if (!done.ok()) ++failures;
    closed.count_down();
  });
  closed.wait();
  region_work.reset();
  log_work.reset();

  REQUIRE(failures == 0);
  StorageServer next(disk, 2);
  REQUIRE(next.start().ok());
  REQUIRE(next.open(whole_table(), 2).ok());
  const std::string total = std::to_string(kClients * kWrites);
  REQUIRE(rows_of(next.region()) == std::map<std::string, std::string>{{"a", total}, {"b", total}});
}

}  // namespace pv2::testing::region_threads_test

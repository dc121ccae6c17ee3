// SPDX-License-Identifier: Apache-2.0
//
// On which thread, as the engine sees it, a task of a pool runs and ends.

#include "core/run_task.h"

#include <memory>
#include <utility>

#include "support/catch.h"

namespace pv2::testing::run_task_test {

TEST_CASE("what a task owns is destroyed on a thread that is marked as the engine's") {
  const int engine = 0;  // an address
  bool is_marked_in_call = false;
  bool is_marked_at_end = false;
  const auto note_end = [&](const int* /*unused*/) {
    is_marked_at_end = EngineThread::belongs_to(&engine);
  };
  const int owned = 0;
  Task task([&, last = std::shared_ptr<const int>(&owned, note_end)] {
    is_marked_in_call = EngineThread::belongs_to(&engine);
  });

  run_task(&engine, task);

  CHECK(is_marked_in_call);
  CHECK(is_marked_at_end);
  CHECK_FALSE(task);
  CHECK_FALSE(EngineThread::belongs_to(&engine));
}

}  // namespace pv2::testing::run_task_test

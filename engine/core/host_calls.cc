// SPDX-License-Identifier: Apache-2.0
//
// Each thread remembers the callbacks that it is in, one frame per engine: a callback may run
// another engine.

#include "core/host_calls.h"

#include <memory>
#include <utility>

#include "core/run_task.h"

namespace pv2 {
namespace {

// A procedure's life causes three callbacks; a host that goes on from them has some lives at once.
constexpr std::size_t kCausedMost = 256;

// A thread is in callbacks of `engine`.
struct Frame {
  const void* engine;
  Frame* outer;
  TaskList caused{};  // by the callbacks that ran
};

thread_local Frame* innermost_frame = nullptr;

Frame* frame_of(const void* engine) {
  Frame* frame = innermost_frame;
  while (frame != nullptr && frame->engine != engine) frame = frame->outer;
  return frame;
}

// A pool calls them as this thread would have done: in a frame.
void leave_to(TaskPool& pool, const void* engine, TaskList rest) {
  pool.post([&pool, engine, rest = std::make_unique<TaskList>(std::move(rest))] {
    call_host(engine, pool, *rest);
  });
}

}  // namespace

void call_host(const void* engine, TaskPool& pool, std::span<Task> calls) noexcept {
  if (Frame* const frame = frame_of(engine); frame != nullptr) {
    for (Task& call : calls) frame->caused.push_back(std::move(call));
    return;
  }
  Frame frame{.engine = engine, .outer = innermost_frame};
  innermost_frame = &frame;
  for (Task& call : calls) run_task(engine, call);
  for (std::size_t called = 0; !frame.caused.empty() && called < kCausedMost;) {
    TaskList next = std::exchange(frame.caused, {});
    for (Task& call : next) run_task(engine, call);
    called += next.size();
  }
  innermost_frame = frame.outer;
  if (!frame.caused.empty()) leave_to(pool, engine, std::move(frame.caused));
}

}  // namespace pv2

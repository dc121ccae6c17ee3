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

// Enough for a host that goes on with some procedures at once: a life has three callbacks.
constexpr std::size_t kCausedMost = 256;

struct Frame;
thread_local Frame* innermost_frame = nullptr;

// The calling thread is in callbacks of `engine`, for a scope.
struct Frame {
  const void* const engine;
  Frame* const outer = innermost_frame;
  TaskList caused{};  // by the callbacks that ran

  explicit Frame(const void* of) : engine(of) { innermost_frame = this; }
  ~Frame() { innermost_frame = outer; }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
};

Frame* frame_of(const void* engine) {
  Frame* frame = innermost_frame;
  while (frame != nullptr && frame->engine != engine) frame = frame->outer;
  return frame;
}

// Calls them, and those that they cause, in a frame. Returns those that it has left.
TaskList call_some(const void* engine, std::span<Task> calls) {
  Frame frame(engine);
  for (Task& call : calls) run_task(engine, call);
  for (std::size_t called = 0; !frame.caused.empty() && called < kCausedMost;) {
    TaskList next = std::exchange(frame.caused, {});
    for (Task& call : next) run_task(engine, call);
    called += next.size();
  }
  return std::move(frame.caused);
}

}  // namespace

void call_host(const void* engine, TaskPool& pool, std::span<Task> calls) {
  if (Frame* const frame = frame_of(engine); frame != nullptr) {
    for (Task& call : calls) frame->caused.push_back(std::move(call));
    return;
  }
  TaskList rest = call_some(engine, calls);
  if (rest.empty()) return;
  pool.post([&pool, engine, rest = std::make_unique<TaskList>(std::move(rest))] {
    call_host(engine, pool, *rest);  // as this thread would have done: in a frame
  });
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Each thread remembers the callbacks that it is in, one frame per engine: a callback may run
// another engine.

#include "core/host_calls.h"

#include <utility>

#include "core/run_task.h"

namespace pv2 {
namespace {

struct Frame;
thread_local Frame* innermost_frame = nullptr;

// The calling thread is in callbacks of `engine`, for a scope.
struct Frame {
  const void* const engine;
  Frame* const outer = innermost_frame;
  LeftByHost& left;  // by the callbacks that ran

  Frame(const void* of, LeftByHost& to) : engine(of), left(to) { innermost_frame = this; }
  ~Frame() { innermost_frame = outer; }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
};

Frame* frame_of(const void* engine) {
  Frame* frame = innermost_frame;
  while (frame != nullptr && frame->engine != engine) frame = frame->outer;
  return frame;
}

}  // namespace

void call_host(const void* engine, std::span<Task> calls, LeftByHost& left) {
  if (Frame* const around = frame_of(engine); around != nullptr) {
    for (Task& call : calls) around->left.calls.push_back(std::move(call));
    return;
  }
  const Frame frame(engine, left);
  for (Task& call : calls) run_task(engine, call);
  for (std::size_t called = 0; !left.calls.empty() && called < kCausedCallsMost;) {
    TaskList next = std::exchange(left.calls, {});
    for (Task& call : next) run_task(engine, call);
    called += next.size();
  }
}

CommitList* kept_for_publication(const void* engine) noexcept {
  Frame* const frame = frame_of(engine);
  return frame != nullptr ? &frame->left.durable : nullptr;
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Each thread remembers the callbacks that it is in, one frame per engine: a callback may run
// another engine.

#include "core/host_calls.h"

#include <deque>
#include <utility>

#include "core/run_task.h"

namespace pv2 {
namespace {

// A thread is in callbacks of `engine`.
struct Frame {
  const void* engine;
  Frame* outer;
  std::deque<Task> caused{};  // by the callbacks that ran
};

thread_local Frame* innermost_frame = nullptr;

Frame* frame_of(const void* engine) {
  Frame* frame = innermost_frame;
  while (frame != nullptr && frame->engine != engine) frame = frame->outer;
  return frame;
}

}  // namespace

void call_host(const void* engine, std::span<Task> calls) noexcept {
  if (Frame* const frame = frame_of(engine); frame != nullptr) {
    for (Task& call : calls) frame->caused.push_back(std::move(call));
    return;
  }
  Frame frame{.engine = engine, .outer = innermost_frame};
  innermost_frame = &frame;
  for (Task& call : calls) run_task(engine, call);
  while (!frame.caused.empty()) {
    Task call = std::move(frame.caused.front());
    frame.caused.pop_front();
    run_task(engine, call);
  }
  innermost_frame = frame.outer;
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Each chain of answers ends by taking a number at or beyond the end; the next call begins at that
// end.

#include "harness/filler.h"

#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

// More would only wait in the engine's queues.
constexpr int kAtOnce = 4096;

}  // namespace

void Filler::submit_up_to(std::uint64_t end) {
  next_.store(end_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  end_.store(end, std::memory_order_relaxed);
  for (int i = 0; i < kAtOnce; ++i) submit_next();
}

void Filler::submit_next() {
  const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  if (number >= end_.load(std::memory_order_relaxed)) return;
  submit_(executor_, number, [this](const Result<Submitted>& answer) {
    must(answer.status(), "filling the engine");
    submit_next();
  });
}

}  // namespace pv2::bench

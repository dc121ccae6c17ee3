// SPDX-License-Identifier: Apache-2.0
//
// Read submit(), submitted(), ended(): the life of one procedure as its client sees it.

#include "harness/closed_load.h"

#include "harness/work_folder.h"

namespace pv2::bench {

void ClosedLoad::start(unsigned in_flight) {
  for (unsigned i = 0; i < in_flight; ++i) submit();
}

void ClosedLoad::submit() {
  const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  under_way_.fetch_add(1, std::memory_order_relaxed);
  if (submit_) {
    submit_(executor_, number, [this](Result<Submitted> answer) { submitted(answer); });
  } else {
    execute_(executor_, number, [this](Result<ProcedureResult> answer) { ended(answer); });
  }
}

void ClosedLoad::submitted(const Result<Submitted>& answer) {
  must(answer.status(), "submitting");
  executor_.wait(answer->id, [this](Result<ProcedureResult> result) { ended(result); });
}

void ClosedLoad::ended(const Result<ProcedureResult>& answer) {
  must(answer.status(), "waiting");
  must(answer->status, "running");
  ended_.fetch_add(1, std::memory_order_relaxed);
  if (execute_) {
    go_on();
    leave();
    return;
  }
  executor_.acknowledge(answer->id, [this](const Status& status) {
    must(status, "acknowledging");
    leave();
  });
  go_on();
}

void ClosedLoad::go_on() {
  if (!stopping_.load(std::memory_order_relaxed)) submit();
}

void ClosedLoad::leave() {
  if (under_way_.fetch_sub(1, std::memory_order_acq_rel) == 1) under_way_.notify_all();
}

void ClosedLoad::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  for (std::uint64_t left = under_way_.load(std::memory_order_acquire); left != 0;
       left = under_way_.load(std::memory_order_acquire)) {
    under_way_.wait(left, std::memory_order_acquire);
  }
}

}  // namespace pv2::bench

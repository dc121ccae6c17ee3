// SPDX-License-Identifier: Apache-2.0
//
// Filler: brings a number of procedures into an engine as fast as it takes them, a few thousand
// submissions at a time, each answer causing the next. It has no thread, and waits for nothing but
// the answers: that the procedures have come where they are to wait is for the caller to find out.

#pragma once

#include <pv2/engine/procedure_executor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace pv2::bench {

/// Thread-safe. Outlives the submissions that it made.
class Filler {
 public:
  /// Submits the procedure of this number with submit_async.
  using Submit =
      std::function<void(ProcedureExecutor&, std::uint64_t, ProcedureExecutor::SubmitCallback)>;

  Filler(ProcedureExecutor& executor, Submit submit)
      : executor_(executor), submit_(std::move(submit)) {}
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;

  /// Submits the numbers from where it ended before up to `end`, which stays out. Returns before
  /// they are answered. Not while a former call still submits.
  void submit_up_to(std::uint64_t end);

 private:
  void submit_next();

  ProcedureExecutor& executor_;
  const Submit submit_;
  // Relaxed: the numbers have to differ, and `end_` changes only while nobody submits.
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> end_{0};
};

}  // namespace pv2::bench

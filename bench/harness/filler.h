// SPDX-License-Identifier: Apache-2.0
//
// Filler: submits a number of procedures as fast as an engine takes them, a few thousand
// submissions at a time, each answer causing the next. It has no thread and waits for nothing. The
// caller has to find out when the procedures have come to their waits.

#pragma once

#include <pv2/engine/procedure_executor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace pv2::bench {

/// Thread-safe. Must outlive the submissions that it made.
class Filler {
 public:
  /// Submits the procedure of this number with async().submit().
  using Submit = std::function<void(ProcedureExecutor&, std::uint64_t, SubmitCallback)>;

  Filler(ProcedureExecutor& executor, Submit submit)
      : executor_(executor), submit_(std::move(submit)) {}
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;

  /// Submits the numbers from where it ended before up to, but not including, `end`. Returns before
  /// they are answered. Must not be called while an earlier call still submits.
  void submit_up_to(std::uint64_t end);

 private:
  void submit_next();

  ProcedureExecutor& executor_;
  const Submit submit_;
  // Relaxed: the numbers only have to differ, and `end_` changes only while no call submits.
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> end_{0};
};

}  // namespace pv2::bench

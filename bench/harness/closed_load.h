// SPDX-License-Identifier: Apache-2.0
//
// ClosedLoad: keeps a number of procedures in flight. When one has ended, it acknowledges the
// result, unless execute() does, and submits another, so the number between submission and known
// end stays the same. It has no thread: everything happens in the executor's callbacks, and never
// blocks for a procedure. The cost of the load is therefore part of every figure.

#pragma once

#include <pv2/engine/async_executor.h>
#include <pv2/engine/procedure_executor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace pv2::bench {

/// Thread-safe. The executor must outlive it.
class ClosedLoad {
 public:
  /// Submits the procedure of this number, under a nonce of its own.
  using Submit = std::function<void(AsyncExecutor, std::uint64_t, SubmitCallback)>;
  /// Executes it, so that its result is forgotten when it was told.
  using Execute = std::function<void(AsyncExecutor, std::uint64_t, ResultCallback)>;

  ClosedLoad(ProcedureExecutor& executor, CallbackThread callbacks, Submit submit)
      : executor_(executor.async(callbacks)), submit_(std::move(submit)) {}
  ClosedLoad(ProcedureExecutor& executor, CallbackThread callbacks, Execute execute)
      : executor_(executor.async(callbacks)), execute_(std::move(execute)) {}
  ~ClosedLoad() { stop(); }
  ClosedLoad(const ClosedLoad&) = delete;
  ClosedLoad& operator=(const ClosedLoad&) = delete;

  void start(unsigned in_flight);
  /// Stops submitting, and waits until all procedures have ended and were acknowledged.
  void stop();

  /// How many have ended since the beginning.
  [[nodiscard]] std::uint64_t ended() const noexcept {
    return ended_.load(std::memory_order_relaxed);
  }

 private:
  void submit();
  void submitted(const Result<Submitted>& answer);
  void ended(const Result<ProcedureResult>& answer);
  void go_on();
  void leave();

  const AsyncExecutor executor_;
  const Submit submit_;                  // one of
  const Execute execute_;                // the two
  std::atomic<std::uint64_t> next_{1};   // relaxed: the numbers only have to differ
  std::atomic<std::uint64_t> ended_{0};  // relaxed: a count
  std::atomic<bool> stopping_{false};    // relaxed: one submission more or less does not matter
  // The ends and the answers to acknowledgements that are still to come; stop() waits for 0.
  std::atomic<std::uint64_t> under_way_{0};
};

}  // namespace pv2::bench

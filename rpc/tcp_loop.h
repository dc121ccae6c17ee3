// SPDX-License-Identifier: Apache-2.0
//
// TcpLoop: one thread that runs one io_context, and what it serves besides sockets: posted tasks
// and timers. What a handler throws leaves the thread, which ends the process.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/log.h>
#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "asio_types.h"
#include "loop_timers.h"

namespace pv2 {

/// Its methods are called on the loop's thread, unless they say otherwise.
class TcpLoop {
 public:
  /// Throws boost::system::system_error if the system has no descriptor left.
  explicit TcpLoop(LogSink log);
  /// Ends the thread, then destroys tasks, timers and stories. Not on the loop's thread.
  ~TcpLoop();

  /// Starts the thread. kResourceExhausted: there is none.
  Status start();

  /// Thread-safe.
  void post(std::function<void()> task);
  [[nodiscard]] bool on_loop() const noexcept;
  [[nodiscard]] Clock& clock() noexcept { return clock_; }

  [[nodiscard]] LoopTimers& timers() noexcept { return timers_; }
  [[nodiscard]] asio::io_context& io() noexcept { return io_; }
  [[nodiscard]] const LogSink& log_sink() const noexcept { return log_; }
  /// Begins `story`, and goes on when it waits for the first time. What it throws ends the process.
  void spawn(Story<void> story);
  /// Where the stream whose turn it is reads: a thousand idle streams need one.
  [[nodiscard]] std::span<char> read_buffer() noexcept { return read_buffer_; }

 private:
  // Lets the handlers be destroyed while the rest of the loop is there.
  struct Context : asio::io_context {
    using io_context::io_context;
    using io_context::shutdown;
  };
  void run_tasks();
  bool destroy_tasks();

  const LogSink log_;
  SystemClock clock_;
  // 1: one thread runs it, so handlers that it makes itself are queued without a lock.
  Context io_{1};
  asio::executor_work_guard<LoopExecutor> keep_running_{io_.get_executor()};
  LoopTimers timers_{io_, clock_};
  // 64 KiB: as much as the kernel usually has for a busy stream, and at 10 GB/s a copy of 6 us, so
  // one stream does not keep the others waiting.
  std::array<char, 64 * 1024> read_buffer_;

  Mutex tasks_mutex_;
  std::vector<std::function<void()>> tasks_ PV2_GUARDED_BY(tasks_mutex_);
  std::vector<std::function<void()>> running_tasks_;  // keeps its memory from round to round
  std::thread thread_;
};

}  // namespace pv2

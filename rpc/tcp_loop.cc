// SPDX-License-Identifier: Apache-2.0
//
// Posted tasks are collected in a vector of our own: of many that are posted at once, only the
// first has to wake the thread.

#include "tcp_loop.h"

#include <pv2/base/assert.h>
#include <pv2/base/thread.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

namespace pv2 {

TcpLoop::TcpLoop(LogSink log) : log_(std::move(log)) {}

TcpLoop::~TcpLoop() {
  PV2_ASSERT(!on_loop(), "a transport cannot be destroyed on its own thread, which has to end");
  io_.stop();
  if (thread_.joinable()) thread_.join();
  // Whatever is destroyed here may own something that posts or cancels when it is destroyed.
  io_.shutdown();
  do {
    timers_.clear();
  } while (destroy_tasks());
}

Status TcpLoop::start() {
  auto thread = start_thread("pv2-transport", "the loop of a transport", [this] { io_.run(); });
  if (!thread.ok()) return thread.status();
  thread_ = *std::move(thread);
  return Status();
}

bool TcpLoop::on_loop() const noexcept {
  return const_cast<Context&>(io_).get_executor().running_in_this_thread();
}

void TcpLoop::post(std::function<void()> task) {
  PV2_ASSERT(task != nullptr, "a task can be called");
  const MutexLock lock(tasks_mutex_);
  tasks_.push_back(std::move(task));
  if (tasks_.size() > 1) return;  // whoever posted the first has woken the loop
  try {
    asio::post(io_, [this] { run_tasks(); });
  } catch (...) {
    task = std::move(tasks_.back());  // destroyed outside of the mutex
    tasks_.pop_back();
    throw;
  }
}

void TcpLoop::run_tasks() {
  {
    MutexLock lock(tasks_mutex_);
    running_tasks_.swap(tasks_);
  }
  // Each is destroyed before the next one runs.
  for (auto& task : running_tasks_) std::exchange(task, nullptr)();
  running_tasks_.clear();
}

bool TcpLoop::destroy_tasks() {
  std::vector<std::function<void()>> tasks;  // destroyed after the lock
  MutexLock lock(tasks_mutex_);
  tasks.swap(tasks_);
  return !tasks.empty();
}

void TcpLoop::spawn(Story<void> story) {
  asio::co_spawn(io_, std::move(story), [](const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
  });
}

}  // namespace pv2

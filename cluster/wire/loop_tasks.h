// SPDX-License-Identifier: Apache-2.0
//
// LoopTasks: posts tasks and sets timers on the loop of a transport, for an owner that may be gone
// before they run: from the owner's end on they are not called. So tasks may use their owner
// freely.

#pragma once

#include <pv2/rpc/transport.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace pv2::cluster {

/// A member of its owner, declared last, so that it ends first. post() is thread-safe; the rest is
/// used on the loop only. Not to be destroyed on another thread while the loop is blocked.
class LoopTasks {
 public:
  explicit LoopTasks(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {}
  ~LoopTasks() { end(); }
  LoopTasks(const LoopTasks&) = delete;
  LoopTasks& operator=(const LoopTasks&) = delete;

  /// From now on no task is called. For an owner whose other members end before this one.
  void end() {
    run_on_loop(*transport_, [this] { *lives_ = false; });
  }

  void post(std::function<void()> task) const { transport_->post(guard(std::move(task))); }
  TimerId after(Duration time, std::function<void()> task) const {
    return transport_->call_at(transport_->clock().steady_now() + time, guard(std::move(task)));
  }
  void cancel(TimerId timer) const { transport_->cancel(timer); }
  /// A post() that other threads may keep beyond the end of this object.
  [[nodiscard]] std::function<void(std::function<void()>)> poster() const {
    return [transport = transport_, lives = lives_](std::function<void()> task) {
      transport->post([lives, task = std::move(task)] {
        if (*lives) task();
      });
    };
  }

  /// `task`, but without effect once the owner is gone. To be called on the loop.
  template <class Arg>
  [[nodiscard]] std::function<void(Arg)> guarded(
      std::function<void(std::type_identity_t<Arg>)> task) const {
    return [lives = lives_, task = std::move(task)](Arg arg) {
      if (*lives) task(std::move(arg));
    };
  }

  [[nodiscard]] SteadyTime now() const { return transport_->clock().steady_now(); }
  [[nodiscard]] Transport& transport() const noexcept { return *transport_; }

 private:
  [[nodiscard]] std::function<void()> guard(std::function<void()> task) const {
    return [lives = lives_, task = std::move(task)] {
      if (*lives) task();
    };
  }

  std::shared_ptr<Transport> transport_;
  // Shared with tasks that wait. Read and written on the loop only.
  std::shared_ptr<bool> lives_ = std::make_shared<bool>(true);
};

}  // namespace pv2::cluster

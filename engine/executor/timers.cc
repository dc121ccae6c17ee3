// SPDX-License-Identifier: Apache-2.0
//
// The timer thread is an asio context with one steady_timer. It is armed again whenever some
// deadline became the earliest.

#include "executor/timers.h"

#include <fmt/format.h>
#include <pv2/base/thread.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/state_lock.h"

namespace pv2 {
namespace {

// The alarm counts nanoseconds, which overflow for a time that is far away. So the thread looks
// again after this time.
constexpr Duration kAlarmMax = std::chrono::hours(24);
// Deadlines that one critical section handles: about 50 us.
constexpr std::size_t kAtOnce = 256;

}  // namespace

class Timers::Thread {
 public:
  explicit Thread(Timers& timers)
      : timers_(timers),
        alarm_(*context_),
        work_(boost::asio::make_work_guard(*context_)),
        subscription_(timers.core_.clock.subscribe([this, context = context_] {
          boost::asio::post(*context, [this] { fire_and_rearm(); });
        })) {}
  ~Thread() { stop(); }

  Status begin(StartGate& gate) {
    auto thread = start_thread("pv2-timers", "the timers of the executor", [this, &gate] {
      if (gate.pass()) run();
    });
    if (!thread.ok()) return thread.status();
    thread_ = *std::move(thread);
    return Status();
  }

  // The object stays: a thread that still reports an earlier deadline posts into a context that no
  // thread runs.
  void stop() {
    if (std::exchange(stopped_, true)) return;
    timers_.core_.clock.unsubscribe(subscription_);
    context_->stop();
    if (thread_.joinable()) thread_.join();
  }

  void look() {
    boost::asio::post(*context_, [this] { fire_and_rearm(); });
  }

 private:
  void run() {
    const EngineThread mark(&timers_.core_);
    context_->run();
  }

  void fire_and_rearm() {
    timers_.fire_due();
    const std::optional<SteadyTime> earliest = timers_.earliest();
    Clock& clock = timers_.core_.clock;
    if (!earliest || clock.is_manual()) return;  // a manual clock calls look() when it moves
    alarm_.expires_after(std::clamp(*earliest - clock.steady_now(), Duration::zero(), kAlarmMax));
    alarm_.async_wait([this](const boost::system::error_code& error) {
      if (!error) fire_and_rearm();
    });
  }

  Timers& timers_;
  // A clock that is just being advanced may call the subscription after this object: what it posts
  // then is run by no thread.
  const std::shared_ptr<boost::asio::io_context> context_ =
      std::make_shared<boost::asio::io_context>(1);
  boost::asio::steady_timer alarm_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::uint64_t subscription_;
  bool stopped_ = false;  // used only by the thread that stops it
  std::thread thread_;
};

Timers::Timers(EngineCore& core) : core_(core) {}
Timers::~Timers() { stop(); }

// Procedures that are submitted before start() may arm timers before and during this call. A thread
// that does not see the timer thread yet has armed its timer before the timer thread looks.
Status Timers::make_thread(StartGate& gate) {
  try {
    thread_ = std::make_unique<Thread>(*this);
  } catch (const boost::system::system_error& failure) {  // asio waits with descriptors
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("the timers of the executor cannot be made: {}", failure.what()));
  }
  return thread_->begin(gate);
}
void Timers::start() {
  running_.store(thread_.get(), std::memory_order_release);
  thread_->look();
}
void Timers::stop() {
  if (thread_) thread_->stop();
}

void Timers::earliest_moved() {
  if (Thread* const thread = running_.load(std::memory_order_acquire)) thread->look();
}

std::optional<SteadyTime> Timers::earliest() {
  std::optional<SteadyTime> earliest;
  {
    StateLock lock(core_, Width::kNarrow);
    earliest = core_.state.timers.earliest();
  }
  for (TimedWork* const other : others_) {
    const auto due = other->next_due();
    if (due && (!earliest || *due < *earliest)) earliest = due;
  }
  return earliest;
}

std::size_t Timers::fire_due() {
  const SteadyTime now = core_.clock.steady_now();
  std::size_t fired = 0;
  for (TimedWork* const other : others_) fired += other->fire(now);
  // Any number of deadlines may pass at once: after a restart, or at the full hour.
  std::size_t queued = 0;
  do {
    queued = fire_some(now);
    fired += queued;
  } while (queued == kAtOnce);
  return fired;
}

std::size_t Timers::fire_some(SteadyTime now) {
  std::size_t fired = 0;
  StateLock lock(core_, Width::kNarrow);
  while (fired < kAtOnce) {
    Execution* const execution = core_.state.timers.pop_due(now);
    if (execution == nullptr) break;
    PV2_ASSERT(execution->phase == Phase::kWaiting,
               "a timer is armed only while its procedure waits");
    PV2_ASSERT(execution->record.deadline.has_value(), "a timer belongs to a deadline");
    PV2_ASSERT(execution->wait.due <= now, "a timer that fires is due");
    execution->wait.timed_out = true;
    core_.queue(*execution, execution->holds_locks() ? Disposition::kFront : Disposition::kBack);
    ++fired;
  }
  return fired;
}

}  // namespace pv2

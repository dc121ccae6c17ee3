// SPDX-License-Identifier: Apache-2.0
//
// A slot that subscribes either sees that the event is set, or is on the list when the event is
// set: both happen under the mutex of the event, so no wake is lost. Slots are completed after that
// mutex was released, because completing a slot wakes its procedure, which takes other locks.

#include "pv2/engine/event.h"

#include <pv2/base/mutex.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace pv2 {

class Event::State {
 public:
  explicit State(std::string name) : name(std::move(name)) {}

  const std::string name;

  std::vector<std::weak_ptr<EventSlot>> set() PV2_EXCLUDES(event_mutex_) {
    MutexLock lock(event_mutex_);
    set_ = true;
    return std::exchange(waiters_, {});
  }
  void reset() PV2_EXCLUDES(event_mutex_) {
    MutexLock lock(event_mutex_);
    set_ = false;
  }
  [[nodiscard]] bool is_set() const PV2_EXCLUDES(event_mutex_) {
    MutexLock lock(event_mutex_);
    return set_;
  }
  /// False: the event is set, and `slot` need not wait.
  bool wait(const std::shared_ptr<EventSlot>& slot) PV2_EXCLUDES(event_mutex_) {
    MutexLock lock(event_mutex_);
    if (set_) return false;
    if (waiters_.size() >= look_at_) {  // drop slots whose procedures do not wait any more
      std::erase_if(waiters_, [](const auto& waiter) { return waiter.expired(); });
      look_at_ = std::max(kFew, 2 * waiters_.size());
    }
    waiters_.push_back(slot);
    return true;
  }

 private:
  static constexpr std::size_t kFew = 16;

  mutable Mutex event_mutex_;
  bool set_ PV2_GUARDED_BY(event_mutex_) = false;
  // Not owned: a procedure that does not wait any more destroys its slot.
  std::vector<std::weak_ptr<EventSlot>> waiters_ PV2_GUARDED_BY(event_mutex_);
  std::size_t look_at_ PV2_GUARDED_BY(event_mutex_) = kFew;
};

Event::Event(std::string name) : state_(std::make_shared<State>(std::move(name))) {}

void Event::set() {
  for (const auto& waiter : state_->set()) {
    if (const auto slot = waiter.lock()) slot->complete();
  }
}
void Event::reset() { state_->reset(); }
bool Event::is_set() const { return state_->is_set(); }
const std::string& Event::name() const noexcept { return state_->name; }

EventSlot::EventSlot(std::shared_ptr<WakeTarget> target, ProcedureId id, std::uint32_t epoch,
                     Event event)
    : AwaitSlot(std::move(target), id, epoch), event_(std::move(event)) {}

void EventSlot::complete() {
  if (claim()) arrived();
}

void EventSlot::subscribe(const std::shared_ptr<EventSlot>& slot) {
  if (!slot->event_.state_->wait(slot)) slot->complete();
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// An event lists the slots that wait with plain pointers, and each slot knows its place in the
// list. So a waiter costs 8 bytes here, and a slot whose procedure does not wait any more leaves
// the list at once. What may happen at the same time:
//
// - A slot subscribes while the event is set. Both happen under the mutex of the event: the slot
//   sees that the event is set, or it is on the list when the event is set.
// - A slot loses its last reference while the event is set. Its destructor takes it off the list,
//   under the mutex. So each pointer on a list is that of a slot whose memory is still there, and
//   set() leaves a slot alone that has no reference any more.
// - A procedure goes on while set() has a reference to its slot. set() drops the last reference
//   without the mutex, because the destructor of the slot may need it.
// - The list is compacted while a slot on it is being destroyed. Such a slot is moved like all
//   others: it looks up its place only when it has the mutex.
// - Steps begin to wait while set() is on its way, because the event was reset; or another thread
//   sets the event. Each set() takes the list as it finds it, and completes those slots in their
//   order.
// - A procedure that goes on destroys the last handle of the event: set() has one of its own.
//
// Slots are completed without the mutex, because completing a slot wakes its procedure, which takes
// other locks.

#include "pv2/engine/event.h"

#include <pv2/base/assert.h>
#include <pv2/base/mutex.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pv2 {

class Event::State {
 public:
  explicit State(std::string name) : name(std::move(name)) {}
  ~State() {
    PV2_ASSERT(waiters_.empty() && taken_ == nullptr, "a slot that waits keeps its event");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const std::string name;

  void set() PV2_EXCLUDES(event_mutex_);
  void reset() PV2_EXCLUDES(event_mutex_) {
    MutexLock lock(event_mutex_);
    set_ = false;
  }
  [[nodiscard]] bool is_set() const PV2_EXCLUDES(event_mutex_) {
    MutexLock lock(event_mutex_);
    return set_;
  }
  /// False: the event is set, and `slot` need not wait.
  [[nodiscard]] bool add(EventSlot& slot) PV2_EXCLUDES(event_mutex_);
  /// For a slot that is being destroyed: no list has it any more.
  void remove(const EventSlot& slot) noexcept PV2_EXCLUDES(event_mutex_);

 private:
  using Waiters = std::vector<EventSlot*>;  // null: that slot has left

  // The list that one call of set() has taken; on the stack of that call.
  struct Taken {
    Waiters waiters;
    std::size_t next = 0;  // those before it were taken from this list, too
    Taken* older = nullptr;
  };
  // At so many places of the list set() looks in one section of the mutex, before it completes the
  // slots without it. Such a section takes some microseconds, however many wait. A section of add()
  // is nearly always shorter, but now and then it handles the whole list, and others who use the
  // event wait meanwhile. With a million waiters, compact() takes 6.8 ms, because it writes into
  // each of their slots, and push_back() takes 3.5 ms when it moves the list to a larger block; on
  // a busy machine both took 16 ms and more.
  static constexpr std::size_t kLooks = 64;
  using Some = std::array<EventSlot*, kLooks>;  // each with a reference
  // A list with room for more is freed when the last waiter leaves.
  static constexpr std::size_t kFew = 16;

  void begin_set(Taken& taken) noexcept PV2_REQUIRES(event_mutex_);
  static std::size_t take_some(Taken& taken, Some& some) noexcept;
  void end_set(Taken& taken) noexcept PV2_REQUIRES(event_mutex_);
  static bool clear_place_of(const EventSlot& slot, Waiters& waiters) noexcept;
  void compact() noexcept PV2_REQUIRES(event_mutex_);

  mutable Mutex event_mutex_;
  bool set_ PV2_GUARDED_BY(event_mutex_) = false;
  Waiters waiters_ PV2_GUARDED_BY(event_mutex_);       // in the order in which they began to wait
  std::size_t left_ PV2_GUARDED_BY(event_mutex_) = 0;  // how many of waiters_ are null
  Taken* taken_ PV2_GUARDED_BY(event_mutex_) = nullptr;
};

void Event::State::set() {
  Taken taken;
  bool more = true;
  for (bool is_first = true; more; is_first = false) {
    Some some;  // not initialised: most events have one waiter
    std::size_t count = 0;
    {
      MutexLock lock(event_mutex_);
      if (is_first) begin_set(taken);
      count = take_some(taken, some);
      more = taken.next != taken.waiters.size();
      if (!more) end_set(taken);
    }
    for (std::size_t i = 0; i < count; ++i) Ref<EventSlot>::adopt(some[i])->complete();
  }
}

void Event::State::begin_set(Taken& taken) noexcept {
  set_ = true;
  taken.waiters.swap(waiters_);
  left_ = 0;
  taken.older = std::exchange(taken_, &taken);
}

// Returns how many slots it has taken.
std::size_t Event::State::take_some(Taken& taken, Some& some) noexcept {
  std::size_t count = 0;
  const std::size_t end = std::min(taken.next + kLooks, taken.waiters.size());
  for (; taken.next != end; ++taken.next) {
    EventSlot* const slot = std::exchange(taken.waiters[taken.next], nullptr);
    if (slot == nullptr) continue;
    if (auto alive = Ref<EventSlot>::if_alive(*slot)) some[count++] = alive.detach();
  }
  return count;
}

void Event::State::end_set(Taken& taken) noexcept {
  Taken** link = &taken_;
  while (*link != &taken) link = &(*link)->older;
  *link = taken.older;
}

bool Event::State::add(EventSlot& slot) {
  MutexLock lock(event_mutex_);
  if (set_) return false;
  // Only when at least half of it is empty, so one subscription moves one slot on average. A list
  // that grows here is less than twice as long as it has to be, at this moment: waiters may leave
  // later, and their places stay until the list is full again, the event is set, or all have left.
  if (waiters_.size() == waiters_.capacity() && 2 * left_ >= waiters_.size()) compact();
  PV2_ASSERT(waiters_.size() < UINT32_MAX, "the place of a slot is a number of 32 bits");
  waiters_.push_back(&slot);
  slot.place_ = static_cast<std::uint32_t>(waiters_.size() - 1);
  return true;
}

void Event::State::compact() noexcept {
  std::uint32_t place = 0;
  for (EventSlot* const slot : waiters_) {
    if (slot == nullptr) continue;
    slot->place_ = place;
    waiters_[place++] = slot;
  }
  waiters_.resize(place);
  left_ = 0;
}

void Event::State::remove(const EventSlot& slot) noexcept {
  MutexLock lock(event_mutex_);
  if (clear_place_of(slot, waiters_)) {
    if (++left_ != waiters_.size()) return;
    left_ = 0;
    waiters_.clear();
    if (waiters_.capacity() > kFew) waiters_.shrink_to_fit();
    return;
  }
  for (Taken* taken = taken_; taken != nullptr; taken = taken->older) {
    if (clear_place_of(slot, taken->waiters)) return;
  }
}

// False: `slot` is not on this list.
bool Event::State::clear_place_of(const EventSlot& slot, Waiters& waiters) noexcept {
  if (slot.place_ >= waiters.size() || waiters[slot.place_] != &slot) return false;
  waiters[slot.place_] = nullptr;
  return true;
}

Event::Event(std::string name) : state_(std::make_shared<State>(std::move(name))) {}

void Event::set() {
  const std::shared_ptr<State> state = state_;  // a procedure that goes on may destroy this handle
  state->set();
}
void Event::reset() { state_->reset(); }
bool Event::is_set() const { return state_->is_set(); }
const std::string& Event::name() const noexcept { return state_->name; }

EventSlot::EventSlot(Ref<WakeTarget> target, ProcedureId id, std::uint32_t epoch,
                     const Event& event)
    : AwaitSlot(std::move(target), id, epoch), event_(event) {}

EventSlot::~EventSlot() {
  if (!ready()) event_.state_->remove(*this);  // set() has taken a slot off before it is ready
}

void EventSlot::complete() {
  if (claim()) arrived();
}

void EventSlot::subscribe() {
  if (!event_.state_->add(*this)) complete();
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Event: a condition in memory that procedures wait for and the host declares, such as "the
// catalogue is online". It is latched: once set it stays set until the host resets it. An event is
// not durable: after a restart the steps that wait for it run again and look again, so the host
// sets it again when the condition is true. What has to survive a crash is a signal, not an event.
//
// A handle: copies are the same event, and a move copies. It may outlive the executor, and the
// executor may outlive it.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <typeinfo>

#include "pv2/engine/completion.h"

namespace pv2 {

/// Thread-safe.
class Event {
 public:
  /// `name` is for people: it is what explain() shows.
  explicit Event(std::string name = {});
  // Copied also where it could be moved: so a handle that was moved from still works.
  Event(const Event&) = default;
  Event& operator=(const Event&) = default;
  ~Event() = default;

  /// Wakes all steps that wait, in the order in which they began to wait; a step that asks while
  /// the event is set does not wait. A step that waited goes on even if the event is reset before
  /// it runs.
  void set();
  /// Steps that ask from now on wait.
  void reset();
  [[nodiscard]] bool is_set() const;
  [[nodiscard]] const std::string& name() const noexcept;

 private:
  friend class EventSlot;
  class State;
  // Shared by all copies, and by the steps that wait.
  std::shared_ptr<State> state_;
};

/// One step that waits for an event. The event lists it and does not own it. Thread-safe.
class EventSlot final : public AwaitSlot {
 public:
  EventSlot(Ref<WakeTarget> target, ProcedureId id, std::uint32_t epoch, const Event& event);
  ~EventSlot() override;

  /// Completes this slot when its event is set; at once if it is set already. Called once, by a
  /// caller that has a reference.
  void subscribe();

  [[nodiscard]] const Event& event() const noexcept { return event_; }
  [[nodiscard]] bool waits_for(const Event& event) const noexcept {
    return event_.state_ == event.state_;
  }
  [[nodiscard]] const std::type_info& type() const noexcept override { return typeid(EventSlot); }

 private:
  friend class Event;
  void complete();

  std::uint32_t place_ = 0;  // in the list of its event; guarded by the mutex of the event
  const Event event_;
};

}  // namespace pv2

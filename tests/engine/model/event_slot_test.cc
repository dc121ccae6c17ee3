// SPDX-License-Identifier: Apache-2.0
//
// An event and the slots that wait for it, without an engine: what may happen while an event is
// set. The target of a wake is called in the middle of Event::set(), so the tests of one thread
// say exactly what happens there.

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "pv2/engine/event.h"
#include "support/catch.h"
#include "support/own_malloc.h"

namespace pv2::testing::event_slot_test {
namespace {

using Ids = std::vector<std::uint64_t>;

/// Notes who was woken, and calls what the test wants to happen at that moment. Thread-safe if
/// nothing is to be called.
class Noting final : public WakeTarget {
 public:
  void wake(AwaitSlot& slot) noexcept override {
    if (!during_wake) return;
    woken.push_back(slot.id().value);
    during_wake(woken.back());
  }
  Ids woken;
  std::function<void(std::uint64_t)> during_wake = [](std::uint64_t) {};
};

using Slot = Ref<EventSlot>;

struct EventWorld {
  Slot wait(std::uint64_t id) {
    auto slot = make_ref<EventSlot>(target, ProcedureId{id}, 0, *event);
    slot->subscribe();
    return slot;
  }
  void wait_for_each_until(std::uint64_t last) {
    for (std::uint64_t id = 1; id <= last; ++id) slots.push_back(wait(id));
  }

  Ref<Noting> target = make_ref<Noting>();
  std::optional<Event> event{"event"};
  std::vector<Slot> slots;
};

#if !PV2_HAS_OWN_MALLOC
std::size_t bytes_in_use() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}
#endif

Ids from_to(std::uint64_t first, std::uint64_t last) {
  Ids ids;
  for (std::uint64_t id = first; id <= last; ++id) ids.push_back(id);
  return ids;
}

}  // namespace

TEST_CASE("a slot is ready when its event is set, and at once if it is set already") {
  EventWorld world;
  const Slot before = world.wait(1);
  CHECK_FALSE(before->ready());
  world.event->set();
  CHECK(before->ready());
  CHECK(world.wait(2)->ready());
  world.event->set();
  CHECK(world.target->woken == Ids{1, 2});
}

TEST_CASE("an event wakes those who wait in their order, however many have left between them") {
  EventWorld world;
  std::map<std::uint64_t, Slot> waiting;
  for (std::uint64_t id = 0; id < 1000; ++id) {
    waiting[id] = world.wait(id);
    // Four of five go on without the event, so its list is compacted several times.
    if (id % 100 == 99)
      std::erase_if(waiting, [](const auto& each) { return each.first % 5 != 0; });
  }
  world.event->set();
  Ids expected;
  for (const auto& [id, slot] : waiting) expected.push_back(id);
  CHECK(expected.size() == 200);
  CHECK(world.target->woken == expected);
}

TEST_CASE("a slot whose procedure has gone on is not woken, and the event is there without it") {
  EventWorld world;
  world.wait_for_each_until(5);
  world.slots[0] = nullptr;
  world.slots[2] = nullptr;
  world.slots[4] = nullptr;
  world.event->set();
  CHECK(world.target->woken == Ids{2, 4});

  world.event->reset();
  const Slot stays = world.wait(6);
  (void)world.wait(7);
  (void)world.wait(8);
  world.event->set();
  CHECK(world.target->woken == Ids{2, 4, 6});
}

TEST_CASE("set() leaves a slot alone whose last reference has gone") {
  EventWorld world;
  // It has no reference, as a slot between its last reference and its destructor.
  auto* const dying = new EventSlot(world.target, ProcedureId{1}, 0, *world.event);
  dying->subscribe();
  world.event->set();
  CHECK(world.target->woken.empty());
  CHECK_FALSE(dying->ready());
  (void)Ref<EventSlot>(dying);
}

TEST_CASE("slots that leave while their event is set are destroyed once, and are not woken later") {
  EventWorld world;
  world.wait_for_each_until(300);
  // A call of set() has references to some of the first slots already: those may be woken.
  world.target->during_wake = [&](std::uint64_t id) {
    if (id != 1) return;
    for (Slot& slot : world.slots) slot = nullptr;
  };
  world.event->set();
  CHECK(world.target->woken.front() == 1);
  CHECK(world.target->woken.size() <= 64);
  CHECK(std::is_sorted(world.target->woken.begin(), world.target->woken.end()));
}

TEST_CASE("each slot that leaves when it is woken is destroyed by set()") {
  EventWorld world;
  world.wait_for_each_until(100);
  world.target->during_wake = [&](std::uint64_t id) { world.slots[id - 1] = nullptr; };
  world.event->set();
  CHECK(world.target->woken == from_to(1, 100));
  CHECK(std::count(world.slots.begin(), world.slots.end(), nullptr) == 100);
  world.target->during_wake = nullptr;
  world.event.reset();
  CHECK_FALSE(world.target->is_shared());
}

TEST_CASE("who begins to wait after a reset is not woken by the set() before it") {
  EventWorld world;
  world.wait_for_each_until(100);
  Slot late;
  world.target->during_wake = [&](std::uint64_t id) {
    if (id != 1) return;
    world.event->reset();
    late = world.wait(1000);
    CHECK_FALSE(late->ready());
  };
  world.event->set();
  CHECK(world.target->woken == from_to(1, 100));
  CHECK_FALSE(late->ready());
  CHECK_FALSE(world.event->is_set());
  world.event->set();
  CHECK(late->ready());
}

TEST_CASE("two calls of set() at the same time wake those whom each of them has found") {
  EventWorld world;
  world.wait_for_each_until(100);
  std::vector<Slot> late;
  world.target->during_wake = [&](std::uint64_t id) {
    if (id == 1001) {  // both calls are on their way
      world.slots[98] = nullptr;
      late[98] = nullptr;
    }
    if (id != 1) return;
    world.event->reset();
    for (std::uint64_t other = 1001; other <= 1100; ++other) late.push_back(world.wait(other));
    world.event->set();
    CHECK(late[99]->ready());
  };
  world.event->set();
  Ids expected{1};
  for (std::uint64_t id = 1001; id <= 1100; ++id) {
    if (id != 1099) expected.push_back(id);
  }
  for (std::uint64_t id = 2; id <= 100; ++id) {
    if (id != 99) expected.push_back(id);
  }
  CHECK(world.target->woken == expected);
}

TEST_CASE("an event may be destroyed by a procedure that it wakes, with all others who wait") {
  EventWorld world;
  world.wait_for_each_until(200);
  world.target->during_wake = [&](std::uint64_t id) {
    if (id != 1) return;
    world.slots.clear();
    world.event.reset();
  };
  Event& event = *world.event;
  event.set();
  CHECK(world.target->woken.front() == 1);
  CHECK(world.target->woken.size() <= 64);
  CHECK_FALSE(world.target->is_shared());
}

TEST_CASE("slots that nobody wakes keep their event, and leave nothing behind") {
  EventWorld world;
  world.wait_for_each_until(100);
  world.event.reset();
  CHECK(world.slots[99]->event().name() == "event");
  CHECK(world.target->is_shared());
  world.slots.clear();
  CHECK_FALSE(world.target->is_shared());
}

#if !PV2_HAS_OWN_MALLOC
TEST_CASE("an event keeps no memory of those who do not wait any more") {
  constexpr std::uint64_t kComeAndGo = 100'000;
  EventWorld world;
  SECTION("one by one, while one waits") {
    const Slot first = world.wait(0);
    const std::size_t before = bytes_in_use();
    for (std::uint64_t id = 1; id <= kComeAndGo; ++id) (void)world.wait(id);
    CHECK(bytes_in_use() < before + 10'000);
    world.event->set();
    CHECK(world.target->woken == Ids{0});
  }
  SECTION("all at once") {
    const std::size_t before = bytes_in_use();
    world.wait_for_each_until(kComeAndGo);
    world.slots.clear();
    world.slots.shrink_to_fit();
    // Of the slots, free blocks are kept: 256 KiB.
    CHECK(bytes_in_use() < before + 400'000);
  }
}
#endif

TEST_CASE("slots come and go on several threads while others set and reset the event") {
  constexpr int kRounds = 3000;
  EventWorld world;
  world.target->during_wake = nullptr;
  std::atomic<int> waiting = 2;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      std::vector<Slot> kept;
      for (int round = 0; round < kRounds; ++round) {
        (void)world.wait(1);
        kept.push_back(world.wait(2));
        if (kept.size() == 20) kept.clear();
      }
      --waiting;
    });
  }
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      while (waiting != 0) {
        world.event->set();
        world.event->reset();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  const Slot last = world.wait(3);
  CHECK_FALSE(last->ready());
  world.event->set();
  CHECK(last->ready());
}

}  // namespace pv2::testing::event_slot_test

// SPDX-License-Identifier: Apache-2.0
//
// A slot and its completions, without an engine: who still wants the value, that a value is
// destroyed exactly if it has arrived, and what memory a slot takes.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "pv2/engine/completion.h"
#include "pv2/engine/event.h"
#include "support/catch.h"

namespace pv2::testing::await_slot_test {
namespace {

/// Counts the wakes. Owned by one thread.
class CountingTarget final : public WakeTarget {
 public:
  void wake(AwaitSlot& /*slot*/) noexcept override { ++wakes; }
  int wakes = 0;
};

/// Counts how many of it there are, and throws when it is moved, if it is to. Owned by one thread.
class Live {
 public:
  explicit Live(int& count, bool throws = false) : count_(&count), throws_(throws) { ++*count_; }
  Live(Live&& other) : count_(other.count_), throws_(other.throws_) {
    if (throws_) throw std::runtime_error("not moved");
    ++*count_;
  }
  Live& operator=(Live&&) = delete;
  ~Live() { --*count_; }

 private:
  int* count_;
  bool throws_;
};

/// A host's type whose address only std::addressof() tells.
class Unaddressed : public Live {
 public:
  using Live::Live;
  Unaddressed* operator&() = delete;
  const Unaddressed* operator&() const = delete;
};

template <class T>
Ref<AwaitSlotOf<T>> slot_for(const Ref<CountingTarget>& target) {
  return make_ref<AwaitSlotOf<T>>(target, ProcedureId{1}, 0);
}

}  // namespace

TEST_CASE("a completion says whether the procedure or a copy may still want the value") {
  auto slot = slot_for<int>(make_ref<CountingTarget>());
  Completion<int> first(slot);
  CHECK(first.is_awaited());
  std::optional<Completion<int>> second(first);
  slot = nullptr;
  CHECK(first.is_awaited());
  second.reset();
  CHECK_FALSE(first.is_awaited());
  first(1);
  CHECK_FALSE(first.is_awaited());

  const Completion<int> moved = std::move(first);
  CHECK_FALSE(moved.is_awaited());
  CHECK_FALSE(first.is_awaited());
}

TEST_CASE("a completion that was moved from drops the value, and the other one gives its own") {
  const auto target = make_ref<CountingTarget>();
  const auto slot = slot_for<int>(target);
  Completion<int> first(slot);
  const Completion<int> moved = std::move(first);

  first(1);  // NOLINT(bugprone-use-after-move): that it does nothing is promised
  CHECK(target->wakes == 0);
  moved(2);
  CHECK(target->wakes == 1);
  CHECK(slot->value() == 2);
}

TEST_CASE("a value is there once, and goes with the last who shares the slot") {
  int live = 0;
  const auto target = make_ref<CountingTarget>();
  auto slot = slot_for<Live>(target);
  std::optional<Completion<Live>> completion(slot);
  SECTION("it never arrives") {}
  SECTION("it arrives twice, and later calls are dropped") {
    (*completion)(Live(live));
    (*completion)(Live(live));
    CHECK(live == 1);
    CHECK(target->wakes == 1);
  }
  SECTION("it is left for a caller who wakes the procedure") {
    slot->leave(Live(live));
    CHECK(live == 1);
    CHECK(target->wakes == 0);
  }
  SECTION("it cannot be moved") {
    CHECK_THROWS_AS(slot->complete(Live(live, true)), std::runtime_error);
    CHECK_FALSE(slot->ready());
    CHECK(live == 0);
  }
  SECTION("it arrives after the procedure has gone on") {
    slot = nullptr;
    (*completion)(Live(live));
    CHECK(live == 1);
  }
  slot = nullptr;
  completion.reset();
  CHECK(live == 0);
  CHECK_FALSE(target->is_shared());
}

TEST_CASE("a value may be of a type that has an operator & of its own") {
  int live = 0;
  auto slot = slot_for<Unaddressed>(make_ref<CountingTarget>());
  slot->complete(Unaddressed(live));
  CHECK(slot->ready());
  CHECK(live == 1);
  slot = nullptr;
  CHECK(live == 0);
}

TEST_CASE("an awaited value takes little more memory than the value") {
  CHECK(sizeof(AwaitSlotOf<int>) <= 40);
  CHECK(sizeof(AwaitSlotOf<std::string>) <= 72);
  CHECK(sizeof(EventSlot) <= 56);
  struct alignas(64) Aligned {
    int number = 7;
  };
  const auto strict = make_ref<AwaitSlotOf<Aligned>>(nullptr, ProcedureId{1}, 0);
  strict->leave(Aligned{});
  CHECK(strict->value().number == 7);
  CHECK(reinterpret_cast<std::uintptr_t>(&strict->value()) % 64 == 0);
}

}  // namespace pv2::testing::await_slot_test

// SPDX-License-Identifier: Apache-2.0
//
// The types that keep a waiting procedure small: CompactBytes, LazyVector, OptionalTime, SlotList.
// Each behaves like the standard type that it replaces, in less memory.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/compact_bytes.h"
#include "model/lazy_vector.h"
#include "model/optional_time.h"
#include "model/slot_list.h"
#include "support/catch.h"

namespace pv2::testing::compact_types_test {
namespace {

std::string text(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

TEST_CASE("a byte string of any length can become one of any other length", "[compact]") {
  const std::vector<std::size_t> sizes{0, 1, 6, 7, 8, 9, 71, 72, 80, 500};
  for (const std::size_t before : sizes) {
    for (const std::size_t after : sizes) {
      CompactBytes bytes(text(before));
      CHECK(bytes.view() == text(before));

      bytes = std::string_view(text(after));

      CHECK(bytes.view() == text(after));
      CHECK(bytes.size() == after);
      CHECK(bytes.empty() == (after == 0));
    }
  }
}

TEST_CASE("a byte string keeps zeros and bytes above 127", "[compact]") {
  const std::string raw("\0\xFF\0\x80", 4);
  CompactBytes bytes{std::string_view(raw)};
  CHECK(bytes.view() == raw);
}

TEST_CASE("a byte string can become a part of itself", "[compact]") {
  for (const std::size_t size : {7, 20, 200}) {
    CompactBytes bytes(text(size));
    bytes = bytes.view().substr(2);
    CHECK(bytes.view() == text(size).substr(2));
    bytes = bytes.view().substr(0, 3);
    CHECK(bytes.view() == text(size).substr(2, 3));
  }
}

TEST_CASE("a byte string that was cleared is empty and can be used again", "[compact]") {
  for (const std::size_t size : {3, 30}) {
    CompactBytes bytes(text(size));
    bytes.clear();
    CHECK(bytes.empty());
    CHECK(bytes.view().empty());
    bytes = std::string_view(text(size + 1));
    CHECK(bytes.view() == text(size + 1));
  }
}

TEST_CASE("a byte string moves, and changes places with another one", "[compact]") {
  for (const std::size_t size : {0, 3, 30}) {
    CompactBytes one(text(40));
    CompactBytes other(text(size));
    one.swap(other);
    CHECK(one.view() == text(size));
    CHECK(other.view() == text(40));

    other = std::move(one);
    CHECK(other.view() == text(size));
    CHECK(one.empty());  // NOLINT(bugprone-use-after-move)

    const CompactBytes made(std::move(other));
    CHECK(made.view() == text(size));
    CHECK(other.empty());  // NOLINT(bugprone-use-after-move)
  }
}

TEST_CASE("a lazy vector grows, shrinks and is empty again", "[compact]") {
  CHECK(sizeof(LazyVector<int>) == sizeof(void*));
  LazyVector<std::uint64_t> list;
  CHECK(list.empty());
  CHECK(list.begin() == list.end());

  list.push_back(1);
  while (list.size() != 100)
    list.push_back(list[0] + list.size());  // computed from one of its items

  std::uint64_t expected = 1;
  for (const std::uint64_t item : list) CHECK(item == expected++);
  CHECK(list.back() == 100);
  list.pop_back();
  CHECK(list.back() == 99);
  while (!list.empty()) list.pop_back();
  CHECK(list.begin() == list.end());
  list.push_back(7);
  CHECK(list.back() == 7);
  list.clear();
  CHECK(list.empty());
}

TEST_CASE("a lazy vector that has room keeps its items where they are", "[compact]") {
  LazyVector<int> list;
  list.push_back(1);
  list.reserve(50);
  const int* const first = list.begin();
  while (list.size() != 50) list.push_back(2);
  CHECK(list.begin() == first);
  CHECK(list[0] == 1);
  list.reserve(10);
  CHECK(list.size() == 50);
}

TEST_CASE("an optional time is none until it is given, and again after reset", "[compact]") {
  CHECK(sizeof(OptionalTime) == sizeof(WallTime));
  OptionalTime time;
  CHECK_FALSE(time.has_value());
  CHECK(std::optional<WallTime>(time) == std::nullopt);
  for (const WallTime given : {WallTime{}, WallTime::min(), WallTime(Duration(-5))}) {
    time = given;
    REQUIRE(time.has_value());
    CHECK(*time == given);
    CHECK(std::optional<WallTime>(time) == given);
  }
  time = std::optional<WallTime>();
  CHECK_FALSE(time);
  time = WallTime::max();
  CHECK(time);
  time.reset();
  CHECK_FALSE(time);
}

// A slot that wakes no procedure.
Ref<AwaitSlot> slot() { return make_ref<AwaitSlotOf<int>>(nullptr, ProcedureId{1}, 0); }

TEST_CASE("a slot list keeps its slots in the order in which they were asked", "[compact]") {
  CHECK(sizeof(SlotList) == sizeof(void*));
  for (const std::size_t count : {1, 2, 5}) {
    SlotList list;
    CHECK(list.empty());
    CHECK(list.begin() == list.end());
    std::vector<Ref<AwaitSlot>> asked;
    for (std::size_t i = 0; i < count; ++i) list.push_back(asked.emplace_back(slot()));

    CHECK(list.size() == count);
    CHECK(std::equal(list.begin(), list.end(), asked.begin(), asked.end(),
                     [](const AwaitSlot* slot, const auto& each) { return slot == each.get(); }));
    CHECK(&list[count - 1] == asked.back().get());
    for (const auto& each : asked) CHECK(each->is_shared());

    list.clear();
    CHECK(list.empty());
    for (const auto& each : asked) CHECK(!each->is_shared());
    list.push_back(asked.front());
    CHECK(list.size() == 1);
  }
}

TEST_CASE("a slot list that is destroyed lets its slots go", "[compact]") {
  for (const std::size_t count : {0, 1, 3}) {
    std::vector<Ref<AwaitSlot>> asked;
    {
      SlotList list;
      for (std::size_t i = 0; i < count; ++i) list.push_back(asked.emplace_back(slot()));
    }
    for (const auto& each : asked) CHECK_FALSE(each->is_shared());
  }
}

}  // namespace
}  // namespace pv2::testing::compact_types_test

// SPDX-License-Identifier: Apache-2.0
//
// A Ref keeps its object until the last one goes, whichever thread that is on, and an object that
// is being destroyed gets no new one.

#include "pv2/base/ref.h"

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::ref_test {
namespace {

class Base : public Counted {
 public:
  int value = 1;
};

class Noted final : public Base {
 public:
  explicit Noted(int& destroyed) : destroyed_(destroyed) {}
  ~Noted() override {
    CHECK_FALSE(Ref<Noted>::if_alive(*this));
    ++destroyed_;
  }

 private:
  int& destroyed_;
};

}  // namespace

TEST_CASE("an object lives as long as one reference to it, of its own type or of its base") {
  int destroyed = 0;
  Ref<Base> base;
  {
    const Ref<Noted> first = make_ref<Noted>(destroyed);
    CHECK_FALSE(first->is_shared());
    const Ref<Noted> copy = first;
    CHECK(first->is_shared());
    CHECK(copy == first);
    base = copy;
  }
  CHECK(destroyed == 0);
  CHECK(base->value == 1);
  CHECK_FALSE(base->is_shared());

  SECTION("reset") { base = nullptr; }
  SECTION("moved") {
    { const Ref<Base> moved = std::move(base); }
    CHECK(base == nullptr);
  }
  SECTION("replaced") {
    int others = 0;
    base = make_ref<Noted>(others);
    CHECK(destroyed == 1);
    base = nullptr;
    CHECK(others == 1);
  }
  SECTION("assigned to itself") {
    const Ref<Base>& same = base;
    base = same;
    CHECK(destroyed == 0);
    base = Ref<Base>();
  }
  CHECK(destroyed == 1);
}

TEST_CASE("a reference can be made of a plain pointer, and be one for a while") {
  int destroyed = 0;
  Ref<Noted> made = make_ref<Noted>(destroyed);
  Noted* const plain = made.get();

  const Ref<Noted> second(plain);
  CHECK(plain->is_shared());
  Ref<Noted> third = Ref<Noted>::if_alive(*plain);
  CHECK(third);
  Noted* const detached = third.detach();
  CHECK_FALSE(third);
  made = nullptr;
  CHECK(plain->is_shared());
  (void)Ref<Noted>::adopt(detached);
  CHECK_FALSE(plain->is_shared());
  CHECK(destroyed == 0);
}

TEST_CASE("threads that copy and drop references destroy the object once, when all are done") {
  constexpr int kThreads = 4;
  int destroyed = 0;
  std::array<int, kThreads> seen{};
  std::vector<std::thread> threads;
  {
    const Ref<Noted> object = make_ref<Noted>(destroyed);
    for (int number = 0; number < kThreads; ++number) {
      threads.emplace_back([mine = Ref<Noted>(object), &seen, number]() mutable {
        for (int round = 0; round < 2000; ++round) {
          const Ref<Base> copy = mine;
          seen[static_cast<std::size_t>(number)] += copy->value;
        }
        mine = nullptr;
      });
    }
  }
  for (std::thread& thread : threads) thread.join();

  CHECK(destroyed == 1);
  CHECK(seen == std::array<int, kThreads>{2000, 2000, 2000, 2000});
}

}  // namespace pv2::testing::ref_test

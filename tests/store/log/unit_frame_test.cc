// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a unit: they come back as they were, and no damaged frame is taken for a whole one.

#include "log/unit_frame.h"

#include <string>
#include <vector>

#include "log_fixture.h"
#include "pv2/base/random.h"
#include "support/catch.h"

namespace pv2::testing::unit_frame_test {
namespace {

std::string small_frame() {
  Unit unit(41);
  unit.insert("key", "value").add([](RowBatch&) {}).insert("another", "");
  return unit.frame(7);
}

TEST_CASE("a unit comes back from its frame, wherever that begins") {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t first = 1 + random.below(1'000'000);
    Unit unit(first);
    std::vector<std::string> batches;
    for (std::uint64_t left = 1 + random.below(5); left > 0; --left) {
      unit.add([&](RowBatch& batch) {
        for (std::uint64_t rows = random.below(4); rows > 0; --rows) {
          batch.put(Space::kProcedure, std::string(random.below(50), 'k'),
                    std::string(random.below(3'000), 'v'));
        }
        batches.emplace_back(batch.encoded());
      });
    }
    const std::string before(random.below(100), 'b');
    const std::string frame = unit.frame(round);
    REQUIRE(frame.size() == frame_bytes(unit.list()));
    const std::string bytes = before + frame + "behind";

    const auto read = read_frame(bytes, before.size());

    REQUIRE(read.has_value());
    REQUIRE(read->bytes() == frame.size());
    REQUIRE(read->segment.value == static_cast<std::uint64_t>(round));
    REQUIRE(read->first.value == first);
    REQUIRE(read->last().value == first + batches.size() - 1);
    std::size_t next = 0;
    REQUIRE(read->for_each_batch([&](CommitSequence sequence, std::string_view batch) {
      REQUIRE(sequence.value == first + next);
      REQUIRE(batch == batches[next++]);
      return true;
    }));
    REQUIRE(next == batches.size());
  }
}

TEST_CASE("a frame in which any bit is flipped is not a frame") {
  const std::string whole = small_frame();
  REQUIRE(read_frame(whole, 0).has_value());
  for (const std::size_t behind : {0, 100'000}) {
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string damaged = whole + std::string(behind, '\0');
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      INFO("bit " << bit);
      REQUIRE_FALSE(read_frame(damaged, 0).has_value());
    }
  }
}

TEST_CASE("a frame that is cut anywhere, or goes on in zeros, is not a frame") {
  const std::string whole = small_frame();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("cut to " << size << " of " << whole.size());
    const std::string cut = whole.substr(0, size);
    REQUIRE_FALSE(read_frame(cut, 0).has_value());
    if (whole.substr(size).find_first_not_of('\0') == std::string::npos) continue;  // the same
    REQUIRE_FALSE(read_frame(cut + std::string(1'000, '\0'), 0).has_value());
  }
  REQUIRE_FALSE(read_frame(whole, 1).has_value());
  REQUIRE_FALSE(read_frame(whole, whole.size()).has_value());
  REQUIRE_FALSE(read_frame(whole, whole.size() + 1).has_value());
}

TEST_CASE("a payload that is not made of as many batches as the header says is refused") {
  const auto is_good = [](std::uint32_t batches, std::string_view payload) {
    const std::string bytes = sealed_frame(batches, 1, 1, payload);
    const auto frame = read_frame(bytes, 0);
    REQUIRE(frame.has_value());
    return frame->for_each_batch([](CommitSequence, std::string_view) { return true; });
  };
  const std::string two("\2\0\0\0ab\1\0\0\0c", 11);
  REQUIRE(is_good(2, two));
  REQUIRE_FALSE(is_good(1, two));
  REQUIRE_FALSE(is_good(3, two));
  REQUIRE_FALSE(is_good(UINT32_MAX, two));
  for (std::size_t size = 0; size < two.size(); ++size) {
    REQUIRE_FALSE(is_good(2, std::string_view(two).substr(0, size)));
  }
  REQUIRE_FALSE(is_good(1, std::string_view("\xff\xff\xff\xff", 4)));
}

TEST_CASE("visiting the batches of a frame ends when the visitor says so") {
  const std::string bytes = small_frame();
  int visited = 0;
  REQUIRE_FALSE(read_frame(bytes, 0)->for_each_batch(
      [&](CommitSequence, std::string_view) { return ++visited < 2; }));
  REQUIRE(visited == 2);
}

TEST_CASE("a later frame is found at any offset, and one of an older segment or commit is not") {
  for (std::size_t before = 0; before < 40; ++before) {
    const std::string bytes = std::string(before, 'P') + frame_of(5, 20) + "PV2UPV2U";
    INFO("offset " << before);
    for (std::size_t from = 0; from <= before; ++from) {
      const auto found = find_later_frame(bytes, from, {5}, {19});
      REQUIRE(found.has_value());
      REQUIRE(found->first.value == 20);
    }
    REQUIRE(find_later_frame(bytes, 0, {4}, {3}).has_value());
    REQUIRE_FALSE(find_later_frame(bytes, before + 1, {5}, {19}).has_value());
    REQUIRE_FALSE(find_later_frame(bytes, 0, {6}, {19}).has_value());
    REQUIRE_FALSE(find_later_frame(bytes, 0, {5}, {20}).has_value());
  }
  // Behind one that does not count there may be one that does.
  const std::string bytes = frame_of(4, 30) + frame_of(5, 10) + frame_of(5, 20);
  REQUIRE(find_later_frame(bytes, 0, {5}, {15})->first.value == 20);
}

}  // namespace
}  // namespace pv2::testing::unit_frame_test

// SPDX-License-Identifier: Apache-2.0
//
// The memory of a segment is used again, and nothing of the segment before is left in it.

#include "log/spare_segment.h"

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "log_fixture.h"
#include "support/catch.h"

namespace pv2::testing::spare_segment_test {
namespace {

void fill(Segment& segment, const std::string& frame, std::uint64_t last) {
  std::memcpy(segment.data(), frame.data(), frame.size());
  segment.set_durable(frame.size(), CommitSequence{last});
}

TEST_CASE("a segment gets the memory of one that is not used any more, and none of its rows") {
  const SpareSegment spare;
  auto segment = spare.make(SegmentNumber{1}, 1'000);
  const char* const memory = segment->data();
  fill(*segment, frame_of(1, 1), 1);
  REQUIRE(segment->find("H1")->value == std::string(20, 'b'));
  segment.reset();

  segment = spare.make(SegmentNumber{2}, 1'000);
  REQUIRE(segment->data() == memory);
  CHECK(segment->number() == SegmentNumber{2});
  CHECK(segment->last() == CommitSequence{0});
  CHECK_FALSE(segment->find("H1"));
  fill(*segment, frame_of(2, 2), 2);
  CHECK(segment->find("H2")->value == std::string(20, 'c'));
  CHECK_FALSE(segment->find("H1"));
  std::vector<std::string_view> keys;
  segment->collect("H", keys);
  CHECK(keys == std::vector<std::string_view>{"H2"});
}

TEST_CASE("a segment that somebody still reads keeps its memory") {
  const SpareSegment spare;
  auto first = spare.make(SegmentNumber{1}, 1'000);
  fill(*first, frame_of(1, 1), 1);
  const std::shared_ptr<const Segment> reader = first;
  first.reset();

  const auto second = spare.make(SegmentNumber{2}, 1'000);
  fill(*second, frame_of(2, 2), 2);
  CHECK(reader->last() == CommitSequence{1});
  CHECK(reader->number() == SegmentNumber{1});
}

TEST_CASE("memory of another size is not used again") {
  const SpareSegment spare;
  spare.make(SegmentNumber{1}, 1'000).reset();
  const auto larger = spare.make(SegmentNumber{2}, 2'000);
  CHECK(larger->capacity() == 2'000);
}

TEST_CASE("a segment with so many rows that its index is larger than its bytes forgets it") {
  const SpareSegment spare;
  Unit unit(1);
  unit.add([](RowBatch& batch) {
    for (int i = 0; i < 1'000; ++i) batch.put(Space::kHost, std::to_string(i), "");
  });
  const std::string frame = unit.frame(1);
  auto segment = spare.make(SegmentNumber{1}, frame.size());
  fill(*segment, frame, 1);
  REQUIRE(segment->find("H999"));
  segment.reset();

  segment = spare.make(SegmentNumber{2}, frame.size());
  CHECK_FALSE(segment->find("H999"));
  fill(*segment, frame_of(2, 2), 2);
  CHECK(segment->find("H2"));
}

TEST_CASE("a segment outlives what made it") {
  auto spare = std::make_unique<SpareSegment>();
  auto segment = spare->make(SegmentNumber{1}, 1'000);
  spare.reset();
  fill(*segment, frame_of(1, 1), 1);
  CHECK(segment->find("H1"));
}

}  // namespace
}  // namespace pv2::testing::spare_segment_test

// SPDX-License-Identifier: Apache-2.0
//
// What one segment in memory promises on its own; overlay_test.cc has several together.

#include "log/segment.h"

#include <string>

#include "log_fixture.h"
#include "support/catch.h"

namespace pv2::testing::segment_test {
namespace {

TEST_CASE("a bit that flips in memory after the frame was written is noticed") {
  const std::string frame = frame_of(1, 1);
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    Segment segment(SegmentNumber{1}, frame, CommitSequence{1});
    segment.data()[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    CAPTURE(bit);
    CHECK_FALSE(segment.index_checked());
  }
}

}  // namespace
}  // namespace pv2::testing::segment_test

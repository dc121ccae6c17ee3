// SPDX-License-Identifier: Apache-2.0
//
// The memory of a segment that nobody uses any more is that of the next one, and no reader sees the
// next one's bytes.

#include "log/segment_memory.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "log/segment.h"
#include "log_fixture.h"
#include "pv2/base/sanitizers.h"
#include "support/catch.h"

namespace pv2::testing::segment_memory_test {
namespace {

constexpr std::size_t kBytes = 1'000;

TEST_CASE("a block that came back is taken again") {
  SegmentMemory memory;
  auto block = memory.take(kBytes);
  const char* const first = block.get();
  block.reset();
  // The block is not freed meanwhile, so another one would be somewhere else.
  const auto other = kAddressSanitizer ? nullptr : memory.take_once(kBytes);

  block = memory.take(kBytes);
  CHECK((block.get() == first) == !kAddressSanitizer);
}

TEST_CASE("a block that is in use is not taken again") {
  SegmentMemory memory;
  const auto used = memory.take(kBytes);
  const auto next = memory.take(kBytes);
  CHECK(used.get() != next.get());
}

TEST_CASE("a block of another size is not taken, and is gone") {
  SegmentMemory memory;
  memory.take(kBytes).reset();
  const auto larger = memory.take(kBytes * 100);
  std::memset(larger.get(), 'x', kBytes * 100);  // the sanitizer of addresses looks
  CHECK(larger.get_deleter().size == kBytes * 100);
}

TEST_CASE("of two blocks that come back the last one is kept") {
  SegmentMemory memory;
  auto first = memory.take(kBytes);
  auto second = memory.take(kBytes);
  const char* const last = second.get();
  first.reset();
  second.reset();
  CHECK((memory.take(kBytes).get() == last) == !kAddressSanitizer);
}

TEST_CASE("a block outlives the memory that it was taken from") {
  auto memory = std::make_unique<SegmentMemory>();
  auto block = memory->take(kBytes);
  memory.reset();
  std::memset(block.get(), 'x', kBytes);
}

// The thread sanitizer looks: readers on other threads are the last ones to leave some segments.
TEST_CASE("a reader on another thread sees the bytes of its segment until it leaves it") {
  SegmentMemory memory;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (std::uint64_t number = 1; number <= 200; ++number) {
    const std::string frame = frame_of(number, number);
    auto segment = std::make_shared<Segment>(SegmentNumber{number}, kBytes, memory.take(kBytes));
    std::memcpy(segment->data(), frame.data(), frame.size());
    segment->set_durable(frame.size(), CommitSequence{number});
    const bool good = segment->index_checked();
    REQUIRE(good);
    readers.emplace_back([segment = std::move(segment), number, &wrong] {
      segment->for_each_row([number, &wrong](std::string_view key, const SegmentRow& row) {
        const std::string value(20, static_cast<char>('a' + number % 26));
        if (key != "H" + std::to_string(number) || row.value != value) ++wrong;
      });
    });
    if (readers.size() == 4) {
      for (std::thread& reader : readers) reader.join();
      readers.clear();
    }
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace pv2::testing::segment_memory_test

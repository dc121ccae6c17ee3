// SPDX-License-Identifier: Apache-2.0
//
// The block that is kept belongs to neither the log nor a segment, but to all of them together.

#include "log/segment_memory.h"

#include <utility>

#include "pv2/base/sanitizers.h"

namespace pv2 {

struct SegmentMemory::Kept {
  Mutex kept_mutex;
  std::unique_ptr<char[]> bytes PV2_GUARDED_BY(kept_mutex);
  std::size_t size PV2_GUARDED_BY(kept_mutex) = 0;
};

SegmentMemory::SegmentMemory() : kept_(std::make_shared<Kept>()) {}

SegmentMemory::Block SegmentMemory::take(std::size_t size) {
  std::unique_ptr<char[]> bytes;
  {
    MutexLock lock(kept_->kept_mutex);
    bytes = std::move(kept_->bytes);
    if (kept_->size != size) bytes.reset();
  }
  if (bytes == nullptr) bytes = std::make_unique_for_overwrite<char[]>(size);
  return {bytes.release(), GiveBack{kept_, size}};
}

SegmentMemory::Block SegmentMemory::take_once(std::size_t size) {
  return {std::make_unique_for_overwrite<char[]>(size).release(), GiveBack{}};
}

void SegmentMemory::GiveBack::operator()(char* bytes) const noexcept {
  std::unique_ptr<char[]> block(bytes);
  if (to == nullptr || kAddressSanitizer) return;
  MutexLock lock(to->kept_mutex);
  std::swap(to->bytes, block);
  to->size = size;
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// The block that is kept belongs to neither the log nor a segment, but to all of them together.

#include "log/segment_memory.h"

#include <new>
#include <utility>

#include "pv2/base/sanitizers.h"
#include "pv2/store/segment_files.h"

namespace pv2 {
namespace {

constexpr std::align_val_t kAligned{SegmentFile::kBlockBytes};

}  // namespace

struct SegmentMemory::Kept {
  Mutex kept_mutex;
  Bytes bytes PV2_GUARDED_BY(kept_mutex);
  std::size_t size PV2_GUARDED_BY(kept_mutex) = 0;
};

SegmentMemory::SegmentMemory() : kept_(std::make_shared<Kept>()) {}

SegmentMemory::Block SegmentMemory::take(std::size_t size) {
  Bytes bytes;
  {
    MutexLock lock(kept_->kept_mutex);
    bytes = std::move(kept_->bytes);
    if (kept_->size != size) bytes.reset();
  }
  if (bytes == nullptr) bytes = allocate(size);
  return {bytes.release(), GiveBack{kept_, size}};
}

SegmentMemory::Block SegmentMemory::take_once(std::size_t size) {
  return {allocate(size).release(), GiveBack{}};
}

SegmentMemory::Bytes SegmentMemory::allocate(std::size_t size) {
  return Bytes(static_cast<char*>(::operator new[](size, kAligned)));
}

void SegmentMemory::Free::operator()(char* bytes) const noexcept {
  ::operator delete[](bytes, kAligned);
}

void SegmentMemory::GiveBack::operator()(char* bytes) const noexcept {
  Bytes block(bytes);
  if (to == nullptr || kAddressSanitizer) return;
  MutexLock lock(to->kept_mutex);
  std::swap(to->bytes, block);
  to->size = size;
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// The in-memory encoding of a batch. It never reaches a disk, so lengths are fixed and native.

#include "pv2/store/commit_request.h"

#include <cstring>

namespace pv2 {
namespace {

char* write_string(char* at, std::string_view text) noexcept {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::memcpy(at, &size, sizeof size);
  if (size != 0) std::memcpy(at + sizeof size, text.data(), size);  // an empty view may be null
  return at + sizeof size + text.size();
}

}  // namespace

void RowBatch::add(RowOperation operation, Space space, std::string_view key,
                   std::string_view value) {
  PV2_ASSERT(key.size() <= UINT32_MAX && value.size() <= UINT32_MAX,
             "a key or value of a batch is below 4 GiB");
  const std::size_t start = bytes_.size();
  bytes_.resize(start + 2 + 2 * sizeof(std::uint32_t) + key.size() + value.size());
  char* at = bytes_.data() + start;
  *at++ = static_cast<char>(operation);
  *at++ = static_cast<char>(space);
  write_string(write_string(at, key), value);
  ++operations_;
  if (space == Space::kHost) ++host_operations_;
}

// The last value begins at `value` and ends with the batch; its length stands before it.
void RowBatch::set_last_length(std::size_t value) {
  PV2_ASSERT(bytes_.size() - value <= UINT32_MAX, "a value of a batch is below 4 GiB");
  const auto size = static_cast<std::uint32_t>(bytes_.size() - value);
  std::memcpy(bytes_.data() + value - sizeof size, &size, sizeof size);
}

std::string_view RowBatch::read_string(const char*& at) noexcept {
  std::uint32_t size = 0;
  std::memcpy(&size, at, sizeof size);
  const std::string_view text(at + sizeof size, size);
  at += sizeof size + size;
  return text;
}

void CommitList::splice_back(CommitList&& other) noexcept {
  if (other.empty()) return;
  (tail_ ? tail_->next_ : head_) = other.head_;
  tail_ = other.tail_;
  size_ += other.size_;
  operations_ += other.operations_;
  bytes_ += other.bytes_;
  other = CommitList();
}

}  // namespace pv2

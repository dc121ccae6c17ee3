// SPDX-License-Identifier: Apache-2.0
//
// The encoding of a batch. It is written into a log as it is, so it is the same on every machine on
// which this compiles.

#include "pv2/store/commit_request.h"

#include <bit>
#include <cstring>

namespace pv2 {
namespace {

static_assert(std::endian::native == std::endian::little, "lengths are copied as they are");

constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);

// Removes a length, and as many bytes behind it, from the beginning of `bytes`.
bool take_string(std::string_view& bytes, std::string_view& text) noexcept {
  if (bytes.size() < kLengthBytes) return false;
  std::uint32_t size = 0;
  std::memcpy(&size, bytes.data(), kLengthBytes);
  if (bytes.size() - kLengthBytes < size) return false;
  text = bytes.substr(kLengthBytes, size);
  bytes.remove_prefix(kLengthBytes + size);
  return true;
}

void write_string(char* at, std::string_view text) noexcept {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::memcpy(at, &size, kLengthBytes);
  if (size != 0) std::memcpy(at + kLengthBytes, text.data(), size);  // an empty view may be null
}

}  // namespace

void RowBatch::add(RowOperation operation, Space space, std::string_view key,
                   std::string_view value) {
  PV2_ASSERT(key.size() < UINT32_MAX && value.size() <= UINT32_MAX,
             "a key or value of a batch is below 4 GiB");
  const std::size_t start = bytes_.size();
  bytes_.resize(start + 2 + 2 * kLengthBytes + key.size() + value.size());
  char* at = bytes_.data() + start;
  *at++ = static_cast<char>(operation);
  const auto full_key_size = static_cast<std::uint32_t>(1 + key.size());
  std::memcpy(at, &full_key_size, kLengthBytes);
  at += kLengthBytes;
  *at++ = static_cast<char>(space);
  if (!key.empty()) std::memcpy(at, key.data(), key.size());  // an empty view may be null
  write_string(at + key.size(), value);
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

bool RowBatch::take_row(std::string_view& bytes, EncodedRow& row) noexcept {
  if (bytes.empty()) return false;
  const auto operation = static_cast<RowOperation>(bytes.front());
  if (operation < RowOperation::kInsert || operation > RowOperation::kDelete) return false;
  std::string_view rest = bytes.substr(1);
  if (!take_string(rest, row.full_key) || row.full_key.empty()) return false;
  if (!take_string(rest, row.value)) return false;
  row.operation = operation;
  bytes = rest;
  return true;
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

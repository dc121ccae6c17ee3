// SPDX-License-Identifier: Apache-2.0
//
// The one pass over an encoded message, and the marks that stand for empty lists.

#include "pv2/base/field_index.h"

#include <algorithm>

#include "pv2/base/field_types.h"

namespace pv2::internal {

FieldIndex::FieldIndex(std::string_view input) {
  WireReader reader(input);
  while (status_.ok() && reader.next()) {
    if (reader.number() == kEmptyFieldsNumber) {
      add_empty(reader);
      continue;
    }
    FieldEntry entry{reader.number(), reader.type(), false, reader.raw_value(), nullptr};
    if (entry.type == WireType::kBytes) entry.data = reader.bytes().data();
    add(entry);
  }
  if (status_.ok()) status_ = reader.status();
  if (!status_.ok()) size_ = 0;
}

void FieldIndex::add(const FieldEntry& entry) {
  if (size_ > 0 && entry.number < entries_[size_ - 1].number) ordered_ = false;
  if (size_ < kInline) {
    inline_[size_++] = entry;
    return;
  }
  if (size_ == kInline) more_.assign(inline_, inline_ + kInline);
  more_.push_back(entry);
  entries_ = more_.data();
  ++size_;
}

void FieldIndex::add_empty(WireReader& reader) {
  const auto mark = [this](std::uint64_t number) {
    // A number that no class can use is ignored like an unknown field.
    if (number > kFieldNumberMax) return;
    add({static_cast<std::uint32_t>(number), WireType::kVarint, true, 0, nullptr});
  };
  if (reader.type() != WireType::kBytes) return mark(reader.varint());
  // protoc writes the marks as one packed list.
  WireReader numbers(reader.bytes());
  std::uint64_t number = 0;
  while (numbers.remaining() > 0 && numbers.take_varint(number)) mark(number);
  status_ = numbers.status();
}

std::size_t FieldIndex::first_of(std::uint32_t number) const noexcept {
  const FieldEntry* const at = std::lower_bound(
      entries_, entries_ + size_, number,
      [](const FieldEntry& entry, std::uint32_t wanted) { return entry.number < wanted; });
  return static_cast<std::size_t>(at - entries_);
}

}  // namespace pv2::internal

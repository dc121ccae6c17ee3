// SPDX-License-Identifier: Apache-2.0
//
// FieldDecoder: the visitor that reads fields back. Unknown numbers are skipped. A missing field
// leaves its member as it is. If a single value occurs several times, the last one wins; a list or
// map that occurs replaces the member's content. Bytes that cannot be decoded give a Status that
// names the field, and no later field is assigned; the object is then half read and of no use.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pv2/base/field_index.h"
#include "pv2/base/field_types.h"
#include "pv2/base/status.h"

namespace pv2 {

/// Assigns the fields that it visits from encoded bytes. Owned by one thread.
class FieldDecoder {
 public:
  FieldDecoder(std::string_view bytes, FieldSelection which) : FieldDecoder(bytes, which, 1) {}

  template <class T>
  void arg(std::uint32_t number, std::string_view name, T& value) {
    if (which_ != FieldSelection::kState) decode_field(number, name, value);
  }
  template <class T>
  void operator()(std::uint32_t number, std::string_view name, T& value) {
    if (which_ != FieldSelection::kArguments) decode_field(number, name, value);
  }

  /// OK, or kCorruption: which field, and what is wrong with it.
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  using Entry = internal::FieldEntry;

  FieldDecoder(std::string_view bytes, FieldSelection which, int depth)
      : index_(bytes), status_(index_.status()), which_(which), depth_(depth) {}

  template <class T>
  void decode_field(std::uint32_t number, std::string_view name, T& value) {
    internal::require_field_type<T>();
    if (!status_.ok()) return;
    if constexpr (!internal::kCanBeField<T>) {
      return;
    } else if constexpr (internal::kIsVector<T> || internal::kIsMap<T>) {
      bool first = true;
      index_.for_each(number, [&](const Entry& entry) {
        if (first || entry.is_empty) value.clear();
        first = false;
        if (!entry.is_empty && status_.ok()) note(number, name, add_to(value, entry));
      });
    } else {
      index_.for_each(number, [&](const Entry& entry) {
        if (status_.ok()) note(number, name, assign(value, entry));
      });
    }
  }

  template <class T>
  Status assign(T& value, const Entry& entry) {
    if constexpr (internal::kIsOptional<T>) {
      if (entry.is_empty) {
        value.reset();
        return Status();
      }
      if (!value) value.emplace();
      return assign(*value, entry);
    } else if (entry.is_empty) {
      return Status();  // it was an optional once, and absent: like not written
    } else if constexpr (internal::FieldScalar<T>) {
      if (entry.type != internal::scalar_wire_type<T>()) {
        return wrong_type(entry, internal::scalar_wire_type<T>());
      }
      return assign_scalar(value, entry.raw);
    } else {
      if (entry.type != WireType::kBytes) return wrong_type(entry, WireType::kBytes);
      if constexpr (internal::FieldBytes<T>) {
        value.assign(entry.bytes());
        return Status();
      } else {
        return decode_message(entry,
                              [&](FieldDecoder& inner) { internal::visit_fields(value, inner); });
      }
    }
  }

  template <class T>
  static Status assign_scalar(T& value, std::uint64_t raw) {
    const std::optional<T> decoded = internal::scalar_from_raw<T>(raw);
    if (!decoded) return out_of_range(raw);
    value = *decoded;
    return Status();
  }

  template <class T>
  Status add_to(std::vector<T>& values, const Entry& entry) {
    if constexpr (internal::FieldScalar<T>) {
      if (entry.type == WireType::kBytes) return add_packed(values, entry.bytes());
      T value{};
      Status status = assign(value, entry);
      if (status.ok()) values.push_back(value);
      return status;
    } else {
      return assign(values.emplace_back(), entry);
    }
  }

  template <class T>
  static Status add_packed(std::vector<T>& values, std::string_view packed) {
    WireReader reader(packed);
    while (reader.remaining() > 0) {
      std::uint64_t raw = 0;
      if constexpr (std::same_as<T, double>) {
        reader.take_fixed_word(raw);
      } else if constexpr (std::same_as<T, float>) {
        std::uint32_t word = 0;
        reader.take_fixed_word(word);
        raw = word;
      } else {
        reader.take_varint(raw);
      }
      if (!reader.ok()) return reader.status();
      T value{};
      Status status = assign_scalar(value, raw);
      if (!status.ok()) return status;
      values.push_back(value);
    }
    return Status();
  }

  template <class K, class V>
  Status add_to(std::map<K, V>& map, const Entry& entry) {
    if (entry.type != WireType::kBytes) return wrong_type(entry, WireType::kBytes);
    K key{};
    V mapped{};
    Status status = decode_message(entry, [&](FieldDecoder& inner) {
      inner(1, "key", key);
      inner(2, "value", mapped);
    });
    if (status.ok()) map.insert_or_assign(std::move(key), std::move(mapped));
    return status;
  }

  template <class Visit>
  Status decode_message(const Entry& entry, Visit&& visit) {
    if (depth_ == kFieldDepthMax) return too_deep();
    FieldDecoder inner(entry.bytes(), FieldSelection::kAll, depth_ + 1);
    visit(inner);
    return inner.status();
  }

  void note(std::uint32_t number, std::string_view name, Status status) {
    if (!status.ok()) fail(number, name, status);
  }
  void fail(std::uint32_t number, std::string_view name, const Status& status);
  static Status wrong_type(const Entry& entry, WireType wanted);
  static Status out_of_range(std::uint64_t raw);
  static Status too_deep();

  internal::FieldIndex index_;
  Status status_;
  FieldSelection which_;
  int depth_;
};

}  // namespace pv2

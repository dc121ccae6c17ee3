// SPDX-License-Identifier: Apache-2.0
//
// FieldEncoder: the visitor that writes fields in protobuf's wire format. It writes every selected
// field, even one that is zero or empty, because a default in C++ need not be zero. It does not
// change what it visits. It throws only what the string's memory or the class's own fields()
// throws, and std::length_error for messages nested too deeply to be read back.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pv2/base/field_types.h"
#include "pv2/base/wire.h"

namespace pv2 {

/// Appends the fields that it visits to a string. Owned by one thread.
class FieldEncoder {
 public:
  FieldEncoder(std::string& out, FieldSelection which) noexcept : FieldEncoder(out, which, 1) {}

  /// An argument: written once, when the object is submitted.
  template <class T>
  void arg(std::uint32_t number, std::string_view /*name*/, T& value) {
    if (which_ != FieldSelection::kState) encode_field(number, value);
  }
  /// State: written again whenever it changes.
  template <class T>
  void operator()(std::uint32_t number, std::string_view /*name*/, T& value) {
    if (which_ != FieldSelection::kArguments) encode_field(number, value);
  }

 private:
  FieldEncoder(std::string& out, FieldSelection which, int depth) noexcept
      : out_(out), which_(which), depth_(depth) {}

  template <class T>
  void encode_field(std::uint32_t number, T& value) {
    internal::require_field_type<T>();
    if constexpr (internal::kCanBeField<T>) encode(number, value);
  }

  template <class T>
  void encode(std::uint32_t number, T& value) {
    if constexpr (internal::FieldScalar<T>) {
      encode_scalar(number, value);
    } else if constexpr (internal::FieldBytes<T>) {
      append_length_delimited(out_, number, value);
    } else if constexpr (internal::FieldMessage<T>) {
      encode_message(number, value);
    } else if constexpr (internal::kIsOptional<T>) {
      value ? encode(number, *value) : encode_empty(number);
    } else if (value.empty()) {
      encode_empty(number);
    } else if constexpr (internal::kIsMap<T>) {
      for (auto& [key, mapped] : value) encode_entry(number, key, mapped);
    } else if constexpr (internal::FieldScalar<typename T::value_type>) {
      encode_packed(number, value);
    } else {
      for (auto& element : value) encode(number, element);
    }
  }

  template <class T>
  void encode_scalar(std::uint32_t number, T value) {
    const std::uint64_t raw = internal::scalar_to_raw(value);
    switch (internal::scalar_wire_type<T>()) {
      case WireType::kFixed64:
        return append_fixed64_field(out_, number, raw);
      case WireType::kFixed32:
        return append_fixed32_field(out_, number, static_cast<std::uint32_t>(raw));
      case WireType::kVarint:
      case WireType::kBytes:
        return append_varint_field(out_, number, raw);
    }
  }

  template <class T>
  void encode_packed(std::uint32_t number, const std::vector<T>& values) {
    const std::size_t body = begin_delimited(number);
    for (const T value : values) {
      const std::uint64_t raw = internal::scalar_to_raw(value);
      switch (internal::scalar_wire_type<T>()) {
        case WireType::kFixed64:
          append_fixed64(out_, raw);
          break;
        case WireType::kFixed32:
          append_fixed32(out_, static_cast<std::uint32_t>(raw));
          break;
        case WireType::kVarint:
        case WireType::kBytes:
          append_varint(out_, raw);
          break;
      }
    }
    end_delimited(body);
  }

  template <class T>
  void encode_message(std::uint32_t number, T& message) {
    if (depth_ == kFieldDepthMax) throw_too_deep(number);
    const std::size_t body = begin_delimited(number);
    FieldEncoder inner(out_, FieldSelection::kAll, depth_ + 1);
    internal::visit_fields(message, inner);
    end_delimited(body);
  }

  template <class K, class V>
  void encode_entry(std::uint32_t number, const K& key, V& mapped) {
    if (depth_ == kFieldDepthMax) throw_too_deep(number);
    const std::size_t body = begin_delimited(number);
    FieldEncoder inner(out_, FieldSelection::kAll, depth_ + 1);
    // fields() takes a mutable key; this visitor only reads, so the key does not change.
    inner(1, "key", const_cast<K&>(key));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    inner(2, "value", mapped);
    end_delimited(body);
  }

  void encode_empty(std::uint32_t number) { append_varint_field(out_, kEmptyFieldsNumber, number); }

  /// Starts a field whose length is known when it ends; returns where its bytes begin.
  std::size_t begin_delimited(std::uint32_t number) {
    internal::WireScratch().tag(number, WireType::kBytes).varint(0).append_to(out_);
    return out_.size();
  }
  void end_delimited(std::size_t body) {
    const std::size_t size = out_.size() - body;
    if (size < 0x80) {  // fits the byte that was left for it
      out_[body - 1] = static_cast<char>(size);
    } else {
      insert_length(body, size);
    }
  }
  void insert_length(std::size_t body, std::size_t size);
  [[noreturn]] static void throw_too_deep(std::uint32_t number);

  std::string& out_;
  FieldSelection which_;
  int depth_;
};

}  // namespace pv2

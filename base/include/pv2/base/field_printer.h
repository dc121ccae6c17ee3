// SPDX-License-Identifier: Apache-2.0
//
// FieldPrinter: the visitor that shows fields to people, as JSON with the names as keys. Durations
// carry their unit, times are UTC, enums have a name if there is a to_string() for them, bytes that
// are not UTF-8 appear in hex. Nothing reads this form back. It throws only what the class's own
// fields() and to_string() throw.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pv2/base/field_types.h"
#include "pv2/base/json_writer.h"

namespace pv2 {

namespace internal {

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  { to_string(value) } -> std::convertible_to<std::string_view>;
};

/// "2026-01-02T03:04:05.000006Z".
[[nodiscard]] std::string format_time(WallTime time);

/// "1500ms"; a period without a name of its own counts in fractions of a second: "3[1/30]s".
[[nodiscard]] std::string format_duration(std::string count, std::intmax_t num, std::intmax_t den);

}  // namespace internal

/// Appends the fields that it visits to the JSON object that is open in the writer. Owned by one
/// thread.
class FieldPrinter {
 public:
  explicit FieldPrinter(JsonWriter& json) noexcept : json_(json) {}

  template <class T>
  void arg(std::uint32_t number, std::string_view name, T& value) {
    (*this)(number, name, value);
  }
  template <class T>
  void operator()(std::uint32_t /*number*/, std::string_view name, T& value) {
    internal::require_field_type<T>();
    json_.key(name);
    if constexpr (internal::kCanBeField<T>) print(value);
  }

 private:
  template <class T>
  void print(T& value) {
    if constexpr (internal::FieldScalar<T>) {
      print_scalar(value);
    } else if constexpr (internal::FieldBytes<T>) {
      json_.string(value);
    } else if constexpr (internal::FieldMessage<T>) {
      json_.begin_object();
      internal::visit_fields(value, *this);
      json_.end_object();
    } else if constexpr (internal::kIsOptional<T>) {
      if (value) {
        print(*value);
      } else {
        json_.null();
      }
    } else if constexpr (internal::kIsMap<T>) {
      print_map(value);
    } else {
      json_.begin_array();
      if constexpr (internal::FieldScalar<typename T::value_type>) {
        for (const typename T::value_type element : value) print_scalar(element);
      } else {
        for (auto& element : value) print(element);
      }
      json_.end_array();
    }
  }

  template <class T>
  void print_scalar(T value) {
    if constexpr (std::same_as<T, bool>) {
      json_.boolean(value);
    } else if constexpr (std::floating_point<T>) {
      json_.number(value);
    } else if constexpr (std::is_enum_v<T>) {
      if constexpr (internal::NamedEnum<T>) {
        json_.string(to_string(value));
      } else {
        print_scalar(static_cast<std::underlying_type_t<T>>(value));
      }
    } else if constexpr (internal::kIsDuration<T>) {
      json_.string(
          internal::format_duration(std::to_string(value.count()), T::period::num, T::period::den));
    } else if constexpr (std::same_as<T, WallTime>) {
      json_.string(internal::format_time(value));
    } else if constexpr (internal::FieldId<T>) {
      json_.number(value.value);
    } else if constexpr (std::is_signed_v<T>) {
      json_.number(static_cast<std::int64_t>(value));
    } else {
      json_.number(static_cast<std::uint64_t>(value));
    }
  }

  /// Keys in JSON are text, so a map with other keys is shown as a list of pairs.
  template <class K, class V>
  void print_map(std::map<K, V>& map) {
    constexpr bool kTextKeys = internal::FieldBytes<K>;
    kTextKeys ? json_.begin_object() : json_.begin_array();
    for (auto& [key, mapped] : map) {
      if constexpr (kTextKeys) {
        json_.key(key);
        print(mapped);
      } else {
        json_.begin_object().key("key");
        print(const_cast<K&>(key));  // NOLINT(cppcoreguidelines-pro-type-const-cast): only read
        json_.key("value");
        print(mapped);
        json_.end_object();
      }
    }
    kTextKeys ? json_.end_object() : json_.end_array();
  }

  JsonWriter& json_;
};

}  // namespace pv2

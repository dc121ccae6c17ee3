// SPDX-License-Identifier: Apache-2.0
//
// Which C++ types can be fields, and how each scalar is encoded. The table for people is
// docs/fields.md; this file is the same table for the compiler. The encoder, decoder, printer and
// checker all use it, so they agree.

#pragma once

#include <bit>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pv2/base/ids.h"
#include "pv2/base/time.h"
#include "pv2/base/wire.h"

namespace pv2 {

/// Which fields of an object are meant: those declared with f.arg(...), those with f(...), or both.
enum class FieldSelection : std::uint8_t { kArguments = 1, kState = 2, kAll = 3 };

/// Field numbers go from 1 to this.
inline constexpr std::uint32_t kFieldNumberMax = 2046;
/// The field of every message that lists the numbers of its empty lists, maps and optionals,
/// because protobuf has no other way to tell "empty" from "not written". 2047 is the last number
/// whose tag takes two bytes.
inline constexpr std::uint32_t kEmptyFieldsNumber = 2047;
/// How deeply messages may be nested, counting the object itself. Protobuf's readers accept the
/// same depth.
inline constexpr int kFieldDepthMax = 100;

namespace internal {

/// The visitor that HasFields tests with; any visitor would do.
struct FieldProbe {
  FieldProbe() = default;
  FieldProbe(const FieldProbe&) = delete;  // like the real visitors: `fields(auto f)` would copy
                                           // them
  FieldProbe& operator=(const FieldProbe&) = delete;
  template <class T>
  void arg(std::uint32_t, std::string_view, T&) {}
  template <class T>
  void operator()(std::uint32_t, std::string_view, T&) {}
};

}  // namespace internal

/// A class that describes its fields: a public `void fields(auto& f)`.
template <class T>
concept HasFields = requires(T& object, internal::FieldProbe& probe) {
  object.fields(probe);
};

namespace internal {

template <class T>
inline constexpr bool kIsDuration = false;
template <class Rep, class Period>
inline constexpr bool kIsDuration<std::chrono::duration<Rep, Period>> = std::integral<Rep>;

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
inline constexpr bool kIsMap = false;
template <class K, class V>
inline constexpr bool kIsMap<std::map<K, V>> = true;

template <class T>
inline constexpr bool kIsPair = false;
template <class A, class B>
inline constexpr bool kIsPair<std::pair<A, B>> = true;

/// Without char and its relatives: they differ between platforms and mean text, which is a
/// std::string.
template <class T>
concept FieldInteger = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                       !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                       !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

template <class T>
concept FieldId = std::same_as<T, ProcedureId> || std::same_as<T, CommitSequence>;

template <class T>
concept FieldScalar =
    std::same_as<T, bool> || FieldInteger<T> || std::is_enum_v<T> || std::same_as<T, float> ||
    std::same_as<T, double> || kIsDuration<T> || std::same_as<T, WallTime> || FieldId<T>;
template <class T>
concept FieldBytes = std::same_as<T, std::string>;
template <class T>
concept FieldMessage = HasFields<T> || kIsPair<T>;
/// A type that can be an element of a list, or the content of an optional.
template <class T>
concept FieldSingle = FieldScalar<T> || FieldBytes<T> || FieldMessage<T>;

template <class T>
struct FieldElement {
  static constexpr bool kSupported = false;
};
template <class T>
requires(kIsOptional<T> || kIsVector<T>) struct FieldElement<T> {
  static constexpr bool kSupported = FieldSingle<typename T::value_type>;
};

template <class T>
concept FieldType = FieldSingle<T> || kIsMap<T> || FieldElement<T>::kSupported;

/// Whether a member of type T can be a field. Where it cannot, the visitors look no further, so
/// that the message below is the only error.
template <class T>
inline constexpr bool kCanBeField = !std::is_const_v<T> && FieldType<T>;

/// The one error message for a type that cannot be a field.
template <class T>
constexpr void require_field_type() {
  // A constant, because for a failed concept the compiler would list every part that does not hold.
  constexpr bool kIsType = FieldType<std::remove_const_t<T>>;
  static_assert(!std::is_const_v<T>, "pv2: a field must not be const: reading it back assigns it");
  static_assert(
      kIsType,
      "pv2: this type cannot be a field. Use bool, a fixed-width integer, an enum, float, "
      "double, std::string, an integral std::chrono::duration, WallTime, ProcedureId, a class "
      "with a public `void fields(auto& f)`, std::pair, std::map, or std::optional or "
      "std::vector of one of these (a list of lists needs a class in between)");
}

// How a scalar is encoded: as one raw number with a wire type.

template <FieldScalar T>
consteval WireType scalar_wire_type() {
  if constexpr (std::same_as<T, double>) return WireType::kFixed64;
  if constexpr (std::same_as<T, float>) return WireType::kFixed32;
  return WireType::kVarint;
}

template <FieldScalar T>
constexpr std::uint64_t scalar_to_raw(T value) noexcept {
  if constexpr (std::same_as<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else if constexpr (std::same_as<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_enum_v<T>) {
    // Not zigzag: protobuf sign-extends its own enums, and a .proto file may declare the field as
    // an enum.
    return static_cast<std::uint64_t>(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (kIsDuration<T>) {
    return scalar_to_raw(value.count());
  } else if constexpr (std::same_as<T, WallTime>) {
    return scalar_to_raw(value.time_since_epoch().count());
  } else if constexpr (FieldId<T>) {
    return value.value;
  } else if constexpr (std::is_signed_v<T>) {
    return zigzag(value);
  } else {
    return value;
  }
}

/// Empty when the number does not fit T.
template <FieldScalar T>
constexpr std::optional<T> scalar_from_raw(std::uint64_t raw) noexcept {
  if constexpr (std::same_as<T, double>) {
    return std::bit_cast<double>(raw);
  } else if constexpr (std::same_as<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(raw));
  } else if constexpr (std::is_enum_v<T>) {
    using Underlying = std::underlying_type_t<T>;
    const auto value = static_cast<Underlying>(raw);
    if (static_cast<std::uint64_t>(value) != raw) return std::nullopt;
    return static_cast<T>(value);
  } else if constexpr (kIsDuration<T>) {
    const auto count = scalar_from_raw<typename T::rep>(raw);
    return count ? std::optional<T>(T(*count)) : std::nullopt;
  } else if constexpr (std::same_as<T, WallTime>) {
    const auto count = scalar_from_raw<Duration::rep>(raw);
    return count ? std::optional<T>(T(Duration(*count))) : std::nullopt;
  } else if constexpr (FieldId<T>) {
    return T{raw};
  } else if constexpr (std::is_signed_v<T>) {
    const std::int64_t value = unzigzag(raw);
    if (!std::in_range<T>(value)) return std::nullopt;
    return static_cast<T>(value);
  } else if constexpr (std::same_as<T, bool>) {
    if (raw > 1) return std::nullopt;
    return raw == 1;
  } else {
    if (!std::in_range<T>(raw)) return std::nullopt;
    return static_cast<T>(raw);
  }
}

/// Lets a visitor visit the fields of a message; a pair is a message with two fields.
template <FieldMessage T, class Visitor>
void visit_fields(T& message, Visitor& visitor) {
  if constexpr (kIsPair<T>) {
    visitor(1, "first", message.first);
    visitor(2, "second", message.second);
  } else {
    message.fields(visitor);
  }
}

}  // namespace internal
}  // namespace pv2

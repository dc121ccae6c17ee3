// SPDX-License-Identifier: Apache-2.0
//
// FieldSchema: what the field numbers of a class mean, found by visiting its fields() once. It
// serves to compare what another version of the class has written with what this version means by
// the same numbers, and to keep the fields that this version does not know when it writes the
// others. Works on bytes; the only user code that runs is fields().

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/base/field_printer.h"
#include "pv2/base/field_types.h"

namespace pv2 {

/// How the value of a field is encoded, and how its bits are interpreted. Persisted. Types that may
/// replace each other under the same number have the same kind (docs/fields.md).
enum class FieldKind : std::uint8_t {
  kUnsigned = 1,  ///< A varint: unsigned integers, bool, enums over them, ids.
  kSigned = 2,    ///< A zigzag varint: signed integers.
  kEnum = 3,      ///< A varint, sign-extended: enums over signed integers.
  kFloat = 4,
  kDouble = 5,
  kBytes = 6,
  kMessage = 7,  ///< A class with fields(), a pair, the entry of a map.
};

/// What one field number means.
struct FieldMeaning {
  FieldKind kind = FieldKind::kUnsigned;
  bool repeated = false;  ///< A list, or a map, which is a list of entries.
  std::string unit;       ///< "ms", "us since 1970"; empty for a plain number.

  friend bool operator==(const FieldMeaning&, const FieldMeaning&) = default;
};

/// "a signed integer", "a list of bytes", "a signed number of ms".
[[nodiscard]] std::string to_string(const FieldMeaning& meaning);

/// A class and the classes of its members, at any depth. Immutable once made; const methods may be
/// called concurrently.
struct FieldSchema {
  static constexpr std::size_t kNoMessage = SIZE_MAX;

  struct Field {
    std::uint32_t number = 0;
    std::string name{};
    bool argument = false;  ///< Of the outermost class: declared with f.arg(...).
    bool map = false;       ///< Its messages are entries, found by their key.
    FieldMeaning meaning{};
    std::size_t message = kNoMessage;  ///< If a message: the index of its class in `messages`.
  };
  struct Message {
    std::vector<Field> fields;
    [[nodiscard]] const Field* find(std::uint32_t number) const noexcept;
  };
  /// The first is the class itself. A class that occurs several times, or within itself, is listed
  /// once.
  std::vector<Message> messages;
};

/// Whether `bytes`, which the class of `schema` has decoded, contain fields that the class does not
/// know, at any depth.
[[nodiscard]] bool has_unknown_fields(const FieldSchema& schema, FieldSelection which,
                                      std::string_view bytes);

/// Returns `after`, the fields as this version encodes them, with the unknown fields of `before`,
/// byte for byte, behind the known fields of the same message. An element of a list that is
/// unchanged, or was changed in place, keeps its unknown fields; entries of a map are matched by
/// key. What was removed from a list, map or optional takes its unknown fields along.
[[nodiscard]] std::string with_unknown_fields(const FieldSchema& schema, FieldSelection which,
                                              std::string_view before, std::string_view after);

/// The visitor that builds a schema. Owned by one thread.
class FieldSchemaMaker {
 public:
  template <class T>
  void arg(std::uint32_t number, std::string_view name, T& value) {
    add(number, name, value, true);
  }
  template <class T>
  void operator()(std::uint32_t number, std::string_view name, T& value) {
    add(number, name, value, false);
  }

  template <HasFields T>
  static FieldSchema make(T& object) {
    FieldSchema schema;
    std::vector<const void*> classes;
    add_class(schema, classes, object);
    return schema;
  }

 private:
  FieldSchemaMaker(FieldSchema& schema, std::vector<const void*>& classes, std::size_t message)
      : schema_(schema), classes_(classes), message_(message) {}
  FieldSchemaMaker(const FieldSchemaMaker&) = delete;
  FieldSchemaMaker& operator=(const FieldSchemaMaker&) = delete;

  template <class T>
  static const void* tag_of() {
    static const char tag = 0;
    return &tag;
  }

  template <class T>
  static std::size_t add_class(FieldSchema& schema, std::vector<const void*>& classes, T& object) {
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if (classes[i] == tag_of<T>()) return i;
    }
    const std::size_t message = classes.size();
    classes.push_back(tag_of<T>());
    schema.messages.emplace_back();
    FieldSchemaMaker maker(schema, classes, message);
    if constexpr (internal::kIsMap<T>) {
      typename T::key_type key{};
      typename T::mapped_type mapped{};
      maker(1, "key", key);
      maker(2, "value", mapped);
    } else {
      internal::visit_fields(object, maker);
    }
    return message;
  }

  template <class T>
  void add(std::uint32_t number, std::string_view name, T& value, bool argument) {
    internal::require_field_type<T>();
    if constexpr (internal::kCanBeField<T>) {
      FieldSchema::Field field;
      field.number = number;
      field.name = name;
      field.argument = argument;
      describe(field, value);
      schema_.messages[message_].fields.push_back(std::move(field));
    }
  }

  template <class T>
  void describe(FieldSchema::Field& field, T& value) {
    if constexpr (internal::kIsMap<T>) {
      field.map = true;
      field.meaning = {FieldKind::kMessage, true, {}};
      field.message = add_class(schema_, classes_, value);
    } else if constexpr (internal::FieldMessage<T>) {
      field.meaning.kind = FieldKind::kMessage;
      field.message = add_class(schema_, classes_, value);
    } else if constexpr (internal::kIsVector<T> || internal::kIsOptional<T>) {
      typename T::value_type element{};
      describe(field, element);
      field.meaning.repeated = internal::kIsVector<T>;
    } else if constexpr (internal::FieldBytes<T>) {
      field.meaning.kind = FieldKind::kBytes;
    } else {
      field.meaning.kind = kind_of_scalar<T>();
      if constexpr (std::same_as<T, WallTime>) {
        field.meaning.unit = "us since 1970";
      } else if constexpr (internal::kIsDuration<T>) {
        field.meaning.unit = internal::format_duration({}, T::period::num, T::period::den);
      }
    }
  }

  template <class T>
  static consteval FieldKind kind_of_scalar() {
    if constexpr (std::same_as<T, double>) return FieldKind::kDouble;
    if constexpr (std::same_as<T, float>) return FieldKind::kFloat;
    if constexpr (std::is_enum_v<T>) {
      return std::is_signed_v<std::underlying_type_t<T>> ? FieldKind::kEnum : FieldKind::kUnsigned;
    }
    if constexpr (internal::kIsDuration<T>) return kind_of_scalar<typename T::rep>();
    if constexpr (std::same_as<T, WallTime>) return kind_of_scalar<Duration::rep>();
    return std::is_signed_v<T> ? FieldKind::kSigned : FieldKind::kUnsigned;
  }

  FieldSchema& schema_;
  std::vector<const void*>& classes_;
  std::size_t message_;
};

/// The schema of a class; `object` is visited, not changed.
template <HasFields T>
[[nodiscard]] FieldSchema schema_of(T& object) {
  return FieldSchemaMaker::make(object);
}

}  // namespace pv2

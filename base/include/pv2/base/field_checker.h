// SPDX-License-Identifier: Apache-2.0
//
// FieldChecker: the visitor that finds mistakes in a fields() description before anything is stored
// with it: numbers that are zero, too large or used twice, names that are missing or used twice. It
// also checks the classes of members. It cannot find a number that an earlier version of the class
// has used for something else.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/base/field_types.h"
#include "pv2/base/status.h"

namespace pv2 {

/// Keeps the first mistake among the fields that it visits. Owned by one thread.
class FieldChecker {
 public:
  FieldChecker() = default;

  template <class T>
  void arg(std::uint32_t number, std::string_view name, T& value) {
    (*this)(number, name, value);
  }
  template <class T>
  void operator()(std::uint32_t number, std::string_view name, T& value) {
    internal::require_field_type<T>();
    check(number, name);
    if constexpr (internal::kCanBeField<T>) {
      if (status_.ok()) check_within(number, name, value);
    }
  }

  /// OK, or kInvalidArgument with the mistake.
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  struct Known {
    std::uint32_t number;
    std::string name;
  };
  using TypeTag = const void*;

  /// `outer` are the classes around this one: a class that contains itself is checked once.
  explicit FieldChecker(std::vector<TypeTag> outer) : outer_(std::move(outer)) {}

  template <class T>
  static TypeTag tag_of() {
    static const char tag = 0;
    return &tag;
  }

  template <class T>
  void check_within(std::uint32_t number, std::string_view name, T& value) {
    if constexpr (internal::FieldMessage<T>) {
      check_message(number, name, value);
    } else if constexpr (internal::kIsMap<T>) {
      check_fresh<typename T::key_type>(number, name);
      check_fresh<typename T::mapped_type>(number, name);
    } else if constexpr (internal::kIsOptional<T> || internal::kIsVector<T>) {
      check_fresh<typename T::value_type>(number, name);
    }
  }

  template <class T>
  void check_fresh(std::uint32_t number, std::string_view name) {
    internal::require_field_type<T>();
    if constexpr (!internal::FieldScalar<T> && !internal::FieldBytes<T>) {
      if (!has_seen(tag_of<T>())) {
        T value{};
        check_within(number, name, value);
      }
    }
  }

  template <class T>
  void check_message(std::uint32_t number, std::string_view name, T& value) {
    if (has_seen(tag_of<T>())) return;
    std::vector<TypeTag> outer = outer_;
    outer.push_back(tag_of<T>());
    FieldChecker inner(std::move(outer));
    internal::visit_fields(value, inner);
    if (!inner.status().ok()) fail_within(number, name, inner.status());
  }

  [[nodiscard]] bool has_seen(TypeTag tag) const noexcept;
  void check(std::uint32_t number, std::string_view name);
  void fail_within(std::uint32_t number, std::string_view name, const Status& status);

  std::vector<Known> known_;
  std::vector<TypeTag> outer_;
  Status status_;
};

}  // namespace pv2

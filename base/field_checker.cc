// SPDX-License-Identifier: Apache-2.0
//
// The rules for field numbers and field names.

#include "pv2/base/field_checker.h"

#include <algorithm>

namespace pv2 {
namespace {

std::string describe(std::uint32_t number, std::string_view name) {
  std::string text = "field " + std::to_string(number) + " \"";
  text += name;
  return text + '"';
}

std::string mistake_in(std::uint32_t number, std::string_view name) {
  if (number == 0) return "numbers begin at 1";
  if (number > kFieldNumberMax) return "numbers end at " + std::to_string(kFieldNumberMax);
  if (name.empty()) return "it needs a name for listings";
  return {};
}

}  // namespace

void FieldChecker::check(std::uint32_t number, std::string_view name) {
  if (!status_.ok()) return;
  std::string mistake = mistake_in(number, name);
  for (const Known& other : known_) {
    if (!mistake.empty()) break;
    if (other.number == number) mistake = "its number already belongs to \"" + other.name + '"';
    if (other.name == name) mistake = "its name already belongs to " + describe(other.number, name);
  }
  if (mistake.empty()) {
    known_.push_back({number, std::string(name)});
  } else {
    status_ = Status(StatusCode::kInvalidArgument, describe(number, name) + ": " + mistake);
  }
}

bool FieldChecker::has_seen(TypeTag tag) const noexcept {
  return std::find(outer_.begin(), outer_.end(), tag) != outer_.end();
}

void FieldChecker::fail_within(std::uint32_t number, std::string_view name, const Status& status) {
  status_ = status.with_context(describe(number, name));
}

}  // namespace pv2

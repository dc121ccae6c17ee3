// SPDX-License-Identifier: Apache-2.0
//
// Statements as text. What is written here is what parse() reads, so an answer can tell its user
// which statement to write next.

#include "language/statement.h"

#include "language/escape.h"

namespace pv2::shell {

const Value* Value::find(std::string_view key) const noexcept {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return &items[i];
  }
  return nullptr;
}

std::string_view name_of(Value::Kind kind) noexcept {
  switch (kind) {
    case Value::Kind::kText:
      return "a text";
    case Value::Kind::kNumber:
      return "a number";
    case Value::Kind::kWord:
      return "a word";
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kMap:
      return "a map";
  }
  return "nothing";
}

std::string to_text(const Value& value) {
  std::string out;
  switch (value.kind) {
    case Value::Kind::kText:
      return in_quotes(value.text);
    case Value::Kind::kNumber:
      return std::to_string(value.number);
    case Value::Kind::kWord:
      return value.text;
    case Value::Kind::kList:
      for (const Value& item : value.items) out += (out.empty() ? "" : ", ") + to_text(item);
      return '[' + out + ']';
    case Value::Kind::kMap:
      for (std::size_t i = 0; i < value.keys.size(); ++i) {
        out += (out.empty() ? "" : ", ") + value.keys[i] + " => " + to_text(value.items[i]);
      }
      return '{' + out + '}';
  }
  return out;
}

std::string to_text(const Statement& statement) {
  std::string out = statement.command;
  std::string_view before = " ";
  for (const Value& argument : statement.arguments) {
    out += before;
    out += to_text(argument);
    before = ", ";
  }
  for (const Option& option : statement.options) {
    out += before;
    out += option.name + " => " + to_text(option.value);
    before = ", ";
  }
  return out;
}

}  // namespace pv2::shell

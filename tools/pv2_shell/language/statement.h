// SPDX-License-Identifier: Apache-2.0
//
// Statement: one line of the shell's language, as a value. It knows nothing of commands: which
// arguments a command takes is in the table of commands.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pv2::shell {

/// What an argument can be. A plain value.
struct Value {
  enum class Kind : std::uint8_t {
    kText,    ///< 'row' or "row": any bytes.
    kNumber,  ///< 5 or -5.
    kWord,    ///< ALL: a bare name.
    kList,    ///< ['a', 'b']: `items`.
    kMap,     ///< {NAME => 'f'}: `keys`, and the value of each in `items`.
  };

  Kind kind = Kind::kText;
  std::string text{};  ///< Of kText and kWord.
  std::int64_t number = 0;
  std::vector<Value> items{};
  std::vector<std::string> keys{};
  std::size_t column = 0;  ///< Where it begins, from 1; not compared.

  [[nodiscard]] const Value* find(std::string_view key) const noexcept;
  friend bool operator==(const Value& a, const Value& b) {
    return a.kind == b.kind && a.text == b.text && a.number == b.number && a.items == b.items &&
           a.keys == b.keys;
  }
};

/// A value with a name: LIMIT => 10.
struct Option {
  std::string name{};
  Value value{};
  std::size_t column = 0;  ///< Of the name; not compared.

  friend bool operator==(const Option& a, const Option& b) {
    return a.name == b.name && a.value == b.value;
  }
};

/// One line: a command, its arguments, and its options.
struct Statement {
  std::string command{};  ///< Empty: the line is blank, or a comment.
  std::size_t column = 0;
  std::vector<Value> arguments{};
  std::vector<Option> options{};

  [[nodiscard]] bool empty() const noexcept { return command.empty(); }
  friend bool operator==(const Statement& a, const Statement& b) {
    return a.command == b.command && a.arguments == b.arguments && a.options == b.options;
  }
};

/// As the language writes it; parse() of it is the same value again.
[[nodiscard]] std::string to_text(const Value& value);
[[nodiscard]] std::string to_text(const Statement& statement);

/// "a text", "a list": for messages.
[[nodiscard]] std::string_view name_of(Value::Kind kind) noexcept;

}  // namespace pv2::shell

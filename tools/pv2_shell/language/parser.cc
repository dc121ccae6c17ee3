// SPDX-License-Identifier: Apache-2.0
//
// One function per rule of the grammar, over a position in the line.

#include "language/parser.h"

#include <charconv>
#include <string>
#include <utility>

#include "language/escape.h"

namespace pv2::shell {
namespace {

constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

constexpr int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Owned by one thread. A rule that fails leaves `why_` and returns false.
class Parser {
 public:
  explicit Parser(std::string_view line) : line_(line) {}

  Result<Statement> statement() {
    Statement statement;
    skip_blanks();
    if (at_end()) return statement;
    statement.column = column();
    if (!is_letter(peek())) {
      fail("a statement begins with a command", "list");
      return why_;
    }
    statement.command = word();
    skip_blanks();
    if (!at_end() && peek() == ',') {
      fail("no comma between a command and its first argument", statement.command + " 't'");
      return why_;
    }
    while (!at_end()) {
      if (!argument(statement)) return why_;
      skip_blanks();
      if (at_end()) break;
      if (peek() != ',') {
        fail("arguments are separated by commas", statement.command + " 'a', 'b'");
        return why_;
      }
      ++at_;
      skip_blanks();
      if (at_end()) {
        fail("an argument follows after a comma", statement.command + " 'a', 'b'");
        return why_;
      }
    }
    return statement;
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ == line_.size() || line_[at_] == '#'; }
  [[nodiscard]] char peek() const { return at_ < line_.size() ? line_[at_] : '\0'; }
  [[nodiscard]] std::size_t column() const { return at_ + 1; }
  [[nodiscard]] bool at_arrow() const { return line_.substr(at_, 2) == "=>"; }

  void skip_blanks() {
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
  }

  bool fail(const std::string& what, const std::string& example) {
    return fail(column(), what, example);
  }
  bool fail(std::size_t column, const std::string& what, const std::string& example) {
    why_ = Status(StatusCode::kInvalidArgument, "column " + std::to_string(column) + ": " + what +
                                                    "; for example: " + printable(example));
    return false;
  }

  std::string word() {
    const std::size_t begin = at_;
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    return std::string(line_.substr(begin, at_ - begin));
  }

  bool argument(Statement& statement) {
    const std::size_t begin = column();
    Value value;
    if (!this->value(value, 0)) return false;
    skip_blanks();
    if (!at_arrow()) {
      statement.arguments.push_back(std::move(value));
      return true;
    }
    if (value.kind != Value::Kind::kWord) {
      return fail(begin, "the name of an option is a word", "LIMIT => 10");
    }
    if (statement.options.size() == kKeysMax) {
      return fail(begin, "a statement has " + std::to_string(kKeysMax) + " options at most",
                  "LIMIT => 10");
    }
    for (const Option& before : statement.options) {
      if (before.name == value.text) {
        return fail(begin, "option " + value.text + " was given before", value.text + " => ...");
      }
    }
    Option option{.name = std::move(value.text), .value = {}, .column = begin};
    if (!arrow_and_value(option.name, option.value, 0)) return false;
    statement.options.push_back(std::move(option));
    return true;
  }

  bool arrow_and_value(const std::string& name, Value& value, std::size_t depth) {
    at_ += 2;
    skip_blanks();
    if (at_end()) return fail("a value follows after '=>'", name + " => 10");
    return this->value(value, depth);
  }

  bool value(Value& value, std::size_t depth) {
    value.column = column();
    const char first = peek();
    if (first == '\'' || first == '"') return text(value);
    if (is_digit(first) || first == '-') return number(value);
    if (first == '[') return list(value, depth + 1);
    if (first == '{') return map(value, depth + 1);
    if (is_letter(first)) {
      value.kind = Value::Kind::kWord;
      value.text = word();
      return true;
    }
    return fail("'" + printable(line_.substr(at_, 1)) + "' begins no value",
                "'text', 5, ['a', 'b']");
  }

  bool text(Value& value) {
    value.kind = Value::Kind::kText;
    const char quote = peek();
    const std::size_t begin = column();
    ++at_;
    while (at_ < line_.size()) {
      const char c = line_[at_];
      if (c == quote) {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (!escape(value.text)) return false;
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20 && c != '\t') {
        return fail("a control character; write " + printable(line_.substr(at_, 1)),
                    "'" + printable(line_.substr(at_, 1)) + "'");
      }
      value.text += c;
      ++at_;
    }
    return fail(begin, std::string("the text has no ") + quote + " at its end", "'row-1'");
  }

  // At a backslash.
  bool escape(std::string& out) {
    const std::size_t begin = column();
    const char kind = at_ + 1 < line_.size() ? line_[at_ + 1] : '\0';
    switch (kind) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case '\\':
      case '\'':
      case '"':
        out += kind;
        break;
      case 'x': {
        const int high = at_ + 2 < line_.size() ? hex_digit(line_[at_ + 2]) : -1;
        const int low = at_ + 3 < line_.size() ? hex_digit(line_[at_ + 3]) : -1;
        if (high < 0 || low < 0) {
          return fail(begin, "two hexadecimal digits follow after \\x", "'\\x00\\xff'");
        }
        out += static_cast<char>(high * 16 + low);
        at_ += 2;
        break;
      }
      default:
        return fail(begin, "the escapes are \\n \\t \\r \\\\ \\' \\\" and \\xNN", "'a\\x00b'");
    }
    at_ += 2;
    return true;
  }

  bool number(Value& value) {
    value.kind = Value::Kind::kNumber;
    const char* const end = line_.data() + line_.size();
    const auto [stop, error] = std::from_chars(line_.data() + at_, end, value.number);
    if (error == std::errc::result_out_of_range) {
      return fail("the number does not fit into 64 bits", "5");
    }
    const bool goes_on = stop != end && (is_letter(*stop) || *stop == '.');
    if (error != std::errc() || goes_on) {
      return fail("not a whole number; text is written in quotes", "5, or '5a'");
    }
    at_ = static_cast<std::size_t>(stop - line_.data());
    return true;
  }

  bool is_too_deep(std::size_t depth) {
    return depth > kNestingMax &&
           !fail("lists and maps nest " + std::to_string(kNestingMax) + " deep at most", "['a']");
  }

  bool list(Value& value, std::size_t depth) {
    value.kind = Value::Kind::kList;
    if (is_too_deep(depth)) return false;
    const std::size_t begin = column();
    ++at_;
    skip_blanks();
    while (peek() != ']') {
      if (at_end()) return fail(begin, "the list has no ] at its end", "['a', 'b']");
      Value item;
      if (!this->value(item, depth)) return false;
      value.items.push_back(std::move(item));
      if (!comma_or(']', "the list", "['a', 'b']")) return false;
    }
    ++at_;
    return true;
  }

  bool map(Value& value, std::size_t depth) {
    value.kind = Value::Kind::kMap;
    if (is_too_deep(depth)) return false;
    const std::size_t begin = column();
    ++at_;
    skip_blanks();
    while (peek() != '}') {
      if (at_end()) return fail(begin, "the map has no } at its end", "{LIMIT => 10}");
      const std::size_t key_column = column();
      if (!is_letter(peek())) return fail("the key of a map is a word", "{LIMIT => 10}");
      std::string key = word();
      if (value.keys.size() == kKeysMax) {
        return fail(key_column, "a map has " + std::to_string(kKeysMax) + " keys at most",
                    "{LIMIT => 10}");
      }
      if (value.find(key) != nullptr) {
        return fail(key_column, "key " + key + " was given before", "{" + key + " => ...}");
      }
      skip_blanks();
      if (!at_arrow()) return fail("=> follows after a key", "{" + key + " => 'a'}");
      Value item;
      if (!arrow_and_value(key, item, depth)) return false;
      value.keys.push_back(std::move(key));
      value.items.push_back(std::move(item));
      if (!comma_or('}', "the map", "{LIMIT => 10, STARTROW => 'a'}")) return false;
    }
    ++at_;
    return true;
  }

  // Between two items: a comma, or the closing bracket, which is left where it is.
  bool comma_or(char close, const std::string& what, const std::string& example) {
    skip_blanks();
    if (peek() == close) return true;
    if (at_end() || peek() != ',') {
      return fail(what + " goes on with a comma or ends with " + close, example);
    }
    ++at_;
    skip_blanks();
    if (peek() == close) return fail("an item follows after a comma", example);
    return true;
  }

  const std::string_view line_;
  std::size_t at_ = 0;
  Status why_;
};

}  // namespace

Result<Statement> parse(std::string_view line) {
  if (line.size() > kLineBytesMax) {
    return Status(StatusCode::kInvalidArgument,
                  "column " + std::to_string(kLineBytesMax + 1) +
                      ": the line is too long; a value has at most 1 MiB; for example: list");
  }
  return Parser(line).statement();
}

}  // namespace pv2::shell

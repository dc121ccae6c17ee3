// SPDX-License-Identifier: Apache-2.0
//
// What a bound statement has, for commands: they ask for arguments that bind() has checked, so
// nothing here can fail for a reason that a user could mend.

#include "commands/call.h"

#include <fmt/format.h>
#include <pv2/base/assert.h>
#include <pv2/base/hash128.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "language/escape.h"
#include "session/shell.h"

namespace pv2::shell {

const std::string& Call::text(std::size_t index) const {
  PV2_ASSERT(has(index), "a command asks for an argument that its entry does not have");
  return arguments[index].text;
}

std::int64_t Call::number(std::size_t index) const {
  PV2_ASSERT(has(index), "a command asks for an argument that its entry does not have");
  return arguments[index].number;
}

ProcedureId Call::procedure(std::size_t index) const {
  return {static_cast<std::uint64_t>(number(index))};
}

const Value* Call::option(std::string_view name) const {
  const auto found = std::ranges::find(options, name, &Option::name);
  return found == options.end() ? nullptr : &found->value;
}

std::string Call::option_text(std::string_view name, std::string otherwise) const {
  const Value* const value = option(name);
  if (value == nullptr) return otherwise;
  return value->text;
}

std::uint64_t Call::option_number(std::string_view name, std::uint64_t otherwise) const {
  const Value* const value = option(name);
  return value == nullptr ? otherwise : static_cast<std::uint64_t>(value->number);
}

std::vector<std::string> Call::option_texts(std::string_view name) const {
  const Value* const value = option(name);
  if (value == nullptr) return {};
  if (value->kind == Value::Kind::kText) return {value->text};
  std::vector<std::string> texts;
  for (const Value& item : value->items) texts.push_back(item.text);
  return texts;
}

bool Call::flag(std::string_view name) const {
  const Value* const value = option(name);
  return value != nullptr && value->text == "true";
}

Duration Call::timeout(Duration otherwise) const {
  const Value* const value = option("TIMEOUT");
  if (value == nullptr) return otherwise;
  constexpr std::int64_t kMax =
      std::chrono::duration_cast<std::chrono::seconds>(Shell::kTimeMax).count();
  return std::chrono::seconds(std::min<std::int64_t>(value->number, kMax));
}

Statement Call::content() const {
  Statement content{.command = statement.command, .arguments = arguments, .options = options};
  std::erase_if(content.options, [](const Option& option) {
    return option.name == "NONCE" || option.name == "RESUME";
  });
  return content;
}

std::string Call::mark() const {
  Statement compared = content();
  std::erase_if(compared.options, [](const Option& option) {
    return option.name == "TIMEOUT" || option.name == "ASYNC";
  });
  std::ranges::sort(compared.options, {}, &Option::name);
  return fmt::format("s{:016x}", hash128(to_text(compared)).first);
}

std::string Call::resume(const Nonce& nonce, std::optional<WallTime> expires_at) const {
  Statement again = content();
  again.options.push_back(
      {.name = "RESUME",
       .value = {.kind = Value::Kind::kText, .text = to_string(nonce, expires_at, mark())}});
  return to_text(again);
}

namespace {

bool is_mark(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return text.size() == 17 && text.front() == 's' &&
         text.find_first_not_of(kDigits, 1) == std::string_view::npos;
}

// Hexadecimal numbers with dashes between them, at most three; nullopt: it is something else.
std::optional<std::vector<std::uint64_t>> parse_numbers(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  while (true) {
    const std::size_t dash = text.find('-');
    const std::string_view part = text.substr(0, dash);
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), number, 16);
    if (error != std::errc() || stop != part.data() + part.size()) return std::nullopt;
    numbers.push_back(number);
    if (numbers.size() > 3) return std::nullopt;
    if (dash == std::string_view::npos) return numbers;
    text.remove_prefix(dash + 1);
  }
}

}  // namespace

std::optional<Identity> parse_identity(std::string_view text) {
  Identity identity;
  if (const std::size_t last = text.rfind('-');
      last != std::string_view::npos && is_mark(text.substr(last + 1))) {
    identity.mark = text.substr(last + 1);
    text = text.substr(0, last);
  }
  const auto numbers = parse_numbers(text);
  if (!numbers || numbers->size() < 2 || (*numbers)[1] == 0) return std::nullopt;
  identity.nonce = {(*numbers)[0], (*numbers)[1]};
  if (numbers->size() == 3) {
    if ((*numbers)[2] > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    identity.expires_at = WallTime(Duration(static_cast<std::int64_t>((*numbers)[2])));
  }
  return identity;
}

}  // namespace pv2::shell

// SPDX-License-Identifier: Apache-2.0
//
// What a bound statement has, for commands: they ask for arguments that bind() has checked, so
// nothing here can fail for a reason that a user could mend.

#include "commands/call.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "language/escape.h"

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
  constexpr std::int64_t kMax = 7L * 24 * 3600;  // seconds
  return std::chrono::seconds(std::min(value->number, kMax));
}

std::string Call::resume(const Nonce& nonce, std::optional<WallTime> expires_at) const {
  Statement again = statement;
  std::erase_if(again.options, [](const Option& option) {
    return option.name == "NONCE" || option.name == "RESUME";
  });
  again.options.push_back(
      {.name = "RESUME",
       .value = {.kind = Value::Kind::kText, .text = to_string(nonce, expires_at)}});
  return to_text(again);
}

std::optional<Identity> parse_identity(std::string_view text) {
  std::vector<std::uint64_t> parts;
  while (true) {
    const std::size_t dash = text.find('-');
    const std::string_view part = text.substr(0, dash);
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), number, 16);
    if (error != std::errc() || stop != part.data() + part.size()) return std::nullopt;
    parts.push_back(number);
    if (dash == std::string_view::npos || parts.size() > 3) break;
    text.remove_prefix(dash + 1);
  }
  if (parts.size() < 2 || parts.size() > 3 || parts[1] == 0) return std::nullopt;
  Identity identity{.nonce = {parts[0], parts[1]}};
  if (parts.size() == 3) {
    if (parts[2] > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    identity.expires_at = WallTime(Duration(static_cast<std::int64_t>(parts[2])));
  }
  return identity;
}

}  // namespace pv2::shell

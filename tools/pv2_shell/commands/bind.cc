// SPDX-License-Identifier: Apache-2.0
//
// Holds a statement against the entry of its command. Every refusal names the column, what is wrong
// there, and the example of the command.

#include <fmt/format.h>
#include <pv2/procedures/table.h>

#include <algorithm>
#include <utility>

#include "commands/call.h"
#include "language/escape.h"

namespace pv2::shell {
namespace {

using Shape = OptionSpec::Shape;
using Kind = Value::Kind;

std::string_view count_in_words(Argument::Count count) {
  switch (count) {
    case Argument::Count::kOne:
      return "";
    case Argument::Count::kOptional:
      return " (optional)";
    case Argument::Count::kMany:
      return ", ...";
  }
  return "";
}

/// Owned by one thread.
class Binder {
 public:
  Binder(const Command& command, const Statement& statement)
      : command_(command), statement_(statement), specs_(options_of(command)) {
    call_.command = &command;
    call_.statement = statement;
  }

  Result<Call> bind() {
    for (const Value& value : statement_.arguments) {
      if (Status bad = take(value); !bad.ok()) return bad;
    }
    for (const Option& option : statement_.options) {
      if (Status bad = take_option(option.name, option.value, option.column); !bad.ok()) return bad;
    }
    if (Status bad = check_count(); !bad.ok()) return bad;
    if (Status bad = take_identity(); !bad.ok()) return bad;
    return std::move(call_);
  }

 private:
  Status wrong(std::size_t column, const std::string& what) const {
    return {StatusCode::kInvalidArgument,
            fmt::format("column {}: {}; for example: {}", column, what, command_.example)};
  }

  // A map without NAME holds options, a bare word is a flag; all else has a place.
  Status take(const Value& value) {
    if (value.kind == Kind::kMap && value.find("NAME") == nullptr) {
      for (std::size_t i = 0; i < value.keys.size(); ++i) {
        Status bad = take_option(value.keys[i], value.items[i], value.items[i].column);
        if (!bad.ok()) return bad;
      }
      return {};
    }
    if (value.kind == Kind::kWord) {
      const OptionSpec* const spec = find_spec(value.text);
      if (spec == nullptr || spec->shape != Shape::kFlag) {
        return wrong(value.column, fmt::format("{0} is not in quotes; text is written '{0}'",
                                               printable(value.text)));
      }
      return take_option(value.text, {.kind = Kind::kWord, .text = "true"}, value.column);
    }
    return take_argument(value);
  }

  Status take_argument(const Value& value) {
    const std::size_t index = call_.arguments.size();
    const auto& places = command_.arguments;
    const bool many = !places.empty() && places.back().count == Argument::Count::kMany;
    if (index >= places.size() && !many) {
      return wrong(value.column,
                   fmt::format("more than {} takes: {}", command_.name, usage_of(command_)));
    }
    const Argument& place = places[std::min(index, places.size() - 1)];
    if (Status bad = check(place, value); !bad.ok()) return bad;
    call_.arguments.push_back(value);
    return {};
  }

  Status check(const Argument& place, const Value& value) const {
    const bool number = place.takes == Takes::kNumber || place.takes == Takes::kProcedure;
    if (place.takes == Takes::kFamily && value.kind == Kind::kMap) return check_family(value);
    if (value.kind != (number ? Kind::kNumber : Kind::kText)) {
      return wrong(value.column,
                   fmt::format("{} is {}, and {} was written", place.name,
                               number ? "a number" : "a text in quotes", name_of(value.kind)));
    }
    if (place.takes == Takes::kProcedure && value.number <= 0) {
      return wrong(value.column, "the numbers of procedures begin with 1");
    }
    if (place.takes == Takes::kColumn && value.text.find(':') == std::string::npos) {
      return wrong(value.column, "a column is 'family:qualifier'");
    }
    if (place.takes == Takes::kTable) return check_table(value);
    return {};
  }

  Status check_table(const Value& value) const {
    const TableName name = parse_table_name(value.text);
    Status bad = check_name("table", name.table, true);
    if (bad.ok()) bad = check_name("namespace", name.name_space, false);
    if (bad.ok()) return {};
    return wrong(value.column, std::string(bad.message()));
  }

  Status check_family(const Value& map) const {
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      const Value& item = map.items[i];
      if (map.keys[i] == "NAME" && item.kind == Kind::kText) continue;
      if (map.keys[i] == "METHOD" && command_.name == "alter" && item.text == "delete") continue;
      return wrong(item.column, command_.name == "alter"
                                    ? "a family is 'f', or {NAME => 'f', METHOD => 'delete'}"
                                    : "a family is 'f', or {NAME => 'f'}");
    }
    return {};
  }

  [[nodiscard]] const OptionSpec* find_spec(std::string_view name) const {
    const auto found = std::ranges::find(specs_, name, &OptionSpec::name);
    return found == specs_.end() ? nullptr : &*found;
  }

  Status take_option(const std::string& name, const Value& value, std::size_t column) {
    const OptionSpec* const spec = find_spec(name);
    if (spec == nullptr && command_.effect == Effect::kTwice &&
        (name == "NONCE" || name == "RESUME")) {
      return wrong(column, fmt::format("{0} takes no {1}, because {0} given twice does the same as "
                                       "given once: to ask again, write it as it was",
                                       command_.name, name));
    }
    if (spec == nullptr) {
      std::string names;
      for (const OptionSpec& each : specs_) {
        names += names.empty() ? "" : ", ";
        names += each.name;
      }
      return wrong(column, fmt::format("{} has no option {}; it has {}", command_.name,
                                       printable(name), names));
    }
    if (call_.has_option(name)) return wrong(column, "option " + name + " was given before");
    if (Status bad = check_shape(*spec, value); !bad.ok()) return bad;
    call_.options.push_back({.name = name, .value = value, .column = column});
    return {};
  }

  Status check_shape(const OptionSpec& spec, const Value& value) const {
    const auto needs = [&](std::string_view what) {
      return wrong(value.column, fmt::format("option {} is {}, and {} was written", spec.name, what,
                                             name_of(value.kind)));
    };
    switch (spec.shape) {
      case Shape::kText:
        if (value.kind != Kind::kText) return needs("a text in quotes");
        break;
      case Shape::kNumber:
        if (value.kind != Kind::kNumber) return needs("a number");
        if (value.number < 0) return wrong(value.column, "the number must not be negative");
        if (static_cast<std::uint64_t>(value.number) > spec.number_max) {
          return wrong(value.column,
                       fmt::format("option {} is at most {}", spec.name, spec.number_max));
        }
        break;
      case Shape::kTexts: {
        const bool texts =
            value.kind == Kind::kList && std::ranges::all_of(value.items, [](const Value& item) {
              return item.kind == Kind::kText;
            });
        if (!texts && value.kind != Kind::kText) return needs("a list of texts in quotes");
        break;
      }
      case Shape::kFlag:
        if (value.kind != Kind::kWord || (value.text != "true" && value.text != "false")) {
          return needs("true or false");
        }
        break;
    }
    if (spec.choices.empty() || std::ranges::find(spec.choices, value.text) != spec.choices.end()) {
      return {};
    }
    return wrong(value.column,
                 fmt::format("option {} is one of {}", spec.name, fmt::join(spec.choices, ", ")));
  }

  Status check_count() const {
    std::size_t needed = 0;
    for (const Argument& place : command_.arguments) {
      needed += place.count == Argument::Count::kOptional ? 0 : 1;
    }
    if (call_.arguments.size() >= needed) return {};
    const Argument& missing = command_.arguments[call_.arguments.size()];
    return wrong(statement_.column + statement_.command.size(),
                 fmt::format("{} is missing: {}", missing.name, usage_of(command_)));
  }

  Status take_identity() {
    const Value* const chosen = call_.option("NONCE");
    const Value* const resumed = call_.option("RESUME");
    if (chosen == nullptr && resumed == nullptr) return {};
    const Value& value = resumed != nullptr ? *resumed : *chosen;
    if (chosen != nullptr && resumed != nullptr) {
      return wrong(value.column, "NONCE is for the first time, and RESUME for every later one");
    }
    const auto identity = parse_identity(value.text);
    const bool rows = command_.effect == Effect::kRows;
    const bool ends = identity && identity->expires_at;
    if (resumed == nullptr && (!identity || (ends && !rows))) {
      return wrong(value.column, "a nonce is two hexadecimal numbers: NONCE => '1f-2a'");
    }
    if (resumed != nullptr && (!identity || ends != rows)) {
      return wrong(value.column, "write RESUME as the answer to the first time has it");
    }
    call_.identity = *identity;
    call_.identity.resumed = resumed != nullptr;
    return check_mark(value);
  }

  // A nonce that was given to another statement says nothing about this one.
  Status check_mark(const Value& value) const {
    const std::string mark = call_.mark();
    if (call_.identity.mark.empty() || call_.identity.mark == mark) return {};
    return {StatusCode::kKeyReused,
            fmt::format("column {}: {} was given to another statement than {} (which is {}); send "
                        "the statement as the answer has it, or without the nonce",
                        value.column, printable(value.text), printable(to_text(call_.content())),
                        mark)};
  }

  const Command& command_;
  const Statement& statement_;
  const std::vector<OptionSpec> specs_;
  Call call_;
};

}  // namespace

std::string usage_of(const Command& command) {
  std::string usage(command.name);
  std::string_view before = " ";
  for (const Argument& place : command.arguments) {
    const bool number = place.takes == Takes::kNumber || place.takes == Takes::kProcedure;
    usage += fmt::format("{0}{1}{2}{1}{3}", before, number ? "" : "'", place.name,
                         count_in_words(place.count));
    before = ", ";
  }
  return usage;
}

Result<Call> bind(const Statement& statement) {
  const Command* const command = find_command(statement.command);
  if (command != nullptr) return Binder(*command, statement).bind();
  const std::string_view nearest = nearest_command(statement.command);
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format(
          "column {}: there is no command {}; {}", statement.column, printable(statement.command),
          nearest.empty() ? "help lists them all" : fmt::format("did you mean {}?", nearest)));
}

}  // namespace pv2::shell

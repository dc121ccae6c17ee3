// SPDX-License-Identifier: Apache-2.0
//
// help reads the table of commands; exit ends the shell.

#include <fmt/format.h>

#include "commands/call.h"
#include "commands/subjects.h"
#include "language/escape.h"
#include "session/shell.h"

namespace pv2::shell {
namespace {

using Shape = OptionSpec::Shape;

std::string_view shape_in_words(Shape shape) {
  switch (shape) {
    case Shape::kText:
      return "'text'";
    case Shape::kNumber:
      return "number";
    case Shape::kTexts:
      return "['text', ...]";
    case Shape::kFlag:
      return "true";
  }
  return "";
}

Answer help_of(const Command& command) {
  Answer answer;
  answer.note(usage_of(command));
  answer.note(fmt::format("    {}", command.summary));
  answer.note(fmt::format("    for example: {}", command.example));
  for (const OptionSpec& option : options_of(command)) {
    std::string line =
        fmt::format("    {} => {}: {}", option.name, shape_in_words(option.shape), option.help);
    if (!option.choices.empty()) {
      line += fmt::format(" (one of {})", fmt::join(option.choices, ", "));
    }
    answer.note(std::move(line));
  }
  return answer;
}

Answer help(Shell& /*shell*/, const Call& call) {
  if (call.has(0)) {
    const Command* const command = find_command(call.text(0));
    if (command != nullptr) return help_of(*command);
    const std::string_view nearest = nearest_command(call.text(0));
    return Status(StatusCode::kNotFound,
                  fmt::format("there is no command {}{}", in_quotes(call.text(0)),
                              nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
  }
  Answer answer;
  answer.columns = {"SUBJECT", "COMMAND", "SUMMARY"};
  for (const Command& command : commands()) {
    answer.add_row(
        {std::string(command.group), std::string(command.name), std::string(command.summary)});
  }
  answer.note("help 'create' says more about one. A line is a statement, and # begins a comment.");
  return answer;
}

Answer exit(Shell& shell, const Call& /*call*/) {
  shell.end();
  return {};
}

}  // namespace

void add_help_commands(std::vector<Command>& table) {
  table.push_back({.name = "help",
                   .group = "shell",
                   .summary = "Lists the commands, or says what one takes.",
                   .example = "help 'create'",
                   .arguments = {{"command", Takes::kCommand, Argument::Count::kOptional}},
                   .run = help});
  table.push_back({.name = "exit",
                   .group = "shell",
                   .summary = "Ends the shell, and the cluster that it has started.",
                   .example = "exit",
                   .run = exit});
  table.push_back(
      {.name = "quit", .group = "shell", .summary = "As exit.", .example = "quit", .run = exit});
}

}  // namespace pv2::shell

// SPDX-License-Identifier: Apache-2.0
//
// The table of all commands, put together from those of each subject.

#include <algorithm>
#include <string>

#include "commands/command.h"
#include "commands/subjects.h"

namespace pv2::shell {
namespace {

std::vector<Command> all_commands() {
  std::vector<Command> table;
  add_row_commands(table);
  add_row_reading_commands(table);
  add_table_commands(table);
  add_region_commands(table);
  add_namespace_commands(table);
  add_peer_commands(table);
  add_procedure_commands(table);
  add_procedure_detail_commands(table);
  add_repair_commands(table);
  add_lock_commands(table);
  add_server_commands(table);
  add_process_commands(table);
  add_help_commands(table);
  return table;
}

// How many letters have to be changed, added or taken away.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const Command> commands() {
  static const std::vector<Command> kTable = all_commands();
  return kTable;
}

const Command* find_command(std::string_view name) {
  const auto table = commands();
  const auto found = std::ranges::find(table, name, &Command::name);
  return found == table.end() ? nullptr : &*found;
}

std::string_view nearest_command(std::string_view name) {
  constexpr std::size_t kNameMax = 64;  // a longer word is no slip of the fingers
  if (name.size() > kNameMax) return {};
  std::string_view nearest;
  std::size_t least = 1 + name.size() / 3;
  for (const Command& command : commands()) {
    const std::size_t far = distance(name, command.name);
    if (far < least || (far == least && nearest.empty())) {
      least = far;
      nearest = command.name;
    }
  }
  return nearest;
}

std::vector<OptionSpec> options_of(const Command& command) {
  using Shape = OptionSpec::Shape;
  std::vector<OptionSpec> options = command.options;
  options.push_back({"TIMEOUT", Shape::kNumber, "how many seconds the shell waits for the answer"});
  if (command.effect == Effect::kNone || command.effect == Effect::kTwice) return options;
  options.push_back({"NONCE", Shape::kText, "the name of this change, instead of a new one"});
  options.push_back({"RESUME", Shape::kText, "asks again for a change whose outcome is unknown"});
  if (command.effect == Effect::kProcedure && command.waits_for_end) {
    options.push_back({"ASYNC", Shape::kFlag, "does not wait until the procedure has ended"});
  }
  return options;
}

}  // namespace pv2::shell

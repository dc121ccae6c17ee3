// SPDX-License-Identifier: Apache-2.0
//
// Commands about tables: each change is a procedure of the master.

#include <fmt/format.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/delete_table.h>
#include <pv2/procedures/disable_table.h>
#include <pv2/procedures/enable_table.h>
#include <pv2/procedures/modify_table.h>
#include <pv2/procedures/truncate_table.h>

#include <algorithm>

#include "commands/call.h"
#include "commands/catalogue_reads.h"
#include "commands/procedure_run.h"
#include "commands/subjects.h"
#include "language/escape.h"

namespace pv2::shell {
namespace {

using Count = Argument::Count;

// As many as even_split_keys() can make.
constexpr std::uint64_t kRegionsMax = 65'536;

/// The name in an argument that is a family.
std::string family_of(const Value& value) {
  const Value* const name = value.find("NAME");
  return name == nullptr ? value.text : name->text;
}

bool is_removed(const Value& value) { return value.find("METHOD") != nullptr; }

Answer create(Shell& shell, const Call& call) {
  TableDescriptor descriptor{.name = parse_table_name(call.text(0)), .families = {}};
  for (std::size_t i = 1; call.has(i); ++i) {
    descriptor.families.push_back(family_of(call.arguments[i]));
  }
  if (call.has_option("SPLITS") && call.has_option("NUMREGIONS")) {
    return Status(StatusCode::kInvalidArgument,
                  "SPLITS and NUMREGIONS both say where the regions end; give one of them");
  }
  std::vector<std::string> keys = call.option_texts("SPLITS");
  if (call.has_option("NUMREGIONS")) {
    const std::uint64_t regions = call.option_number("NUMREGIONS", 1);
    if (regions == 0 || regions > kRegionsMax) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("a table has 1 to {} regions, and not {}", kRegionsMax, regions));
    }
    keys = even_split_keys(regions);
  }
  return run_procedure(
      shell, call,
      submission_of(CreateTable(ports_elsewhere(), std::move(descriptor), std::move(keys))));
}

Answer alter(Shell& shell, const Call& call) {
  const Result<TableRow> row = read_table(shell, call, parse_table_name(call.text(0)));
  if (!row.ok()) return row.status();
  TableDescriptor descriptor = row->descriptor;
  auto& families = descriptor.families;
  for (std::size_t i = 1; call.has(i); ++i) {
    const Value& value = call.arguments[i];
    const std::string name = family_of(value);
    const auto found = std::ranges::find(families, name);
    const bool exists = found != families.end();
    if (exists != is_removed(value)) {
      return Status(exists ? StatusCode::kAlreadyExists : StatusCode::kNotFound,
                    fmt::format("table {} has {}family {}", call.text(0), exists ? "" : "no ",
                                in_quotes(name)));
    }
    if (exists) {
      families.erase(found);
    } else {
      families.push_back(name);
    }
  }
  return run_procedure(
      shell, call,
      submission_of(ModifyTable(ports_elsewhere(), std::move(descriptor), row->descriptor)));
}

template <class P>
Answer change_table(Shell& shell, const Call& call) {
  return run_procedure(shell, call,
                       submission_of(P(ports_elsewhere(), parse_table_name(call.text(0)))));
}

template <TruncateSplits kSplits>
Answer truncate(Shell& shell, const Call& call) {
  return run_procedure(
      shell, call,
      submission_of(TruncateTable(ports_elsewhere(), parse_table_name(call.text(0)), kSplits)));
}

Answer describe(Shell& shell, const Call& call) {
  const TableName name = parse_table_name(call.text(0));
  const Result<TableRow> row = read_table(shell, call, name);
  if (!row.ok()) return row.status();
  const auto regions = read_regions(shell, call, name);
  if (!regions.ok()) return regions.status();
  Answer answer;
  answer.columns = {"FAMILY"};
  for (const std::string& family : row->descriptor.families) answer.add_row({family});
  answer.note(fmt::format("table {} is {}, with {} and {}", to_string(name), to_string(row->state),
                          row->descriptor.families.size() == 1
                              ? "one family"
                              : fmt::format("{} families", row->descriptor.families.size()),
                          counted(regions->size(), "region")));
  return answer;
}

// A name with '*' for any text: only the last star is ever tried again, so the time is at most the
// product of the lengths.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Answer list(Shell& shell, const Call& call) {
  const auto tables = read_tables(shell, call);
  if (!tables.ok()) return tables.status();
  const std::string pattern = call.has(0) ? call.text(0) : "*";
  Answer answer;
  answer.columns = {"TABLE", "STATE", "FAMILIES"};
  for (const TableRow& row : *tables) {
    const std::string name = to_string(row.descriptor.name);
    const bool is_default = row.descriptor.name.name_space == kDefaultNamespace;
    if (!matches(pattern, name) && !(is_default && matches(pattern, row.descriptor.name.table))) {
      continue;
    }
    answer.add_row({name, std::string(to_string(row.state)),
                    fmt::format("{}", fmt::join(row.descriptor.families, ", "))});
  }
  answer.note(counted(answer.rows.size(), "table"));
  return answer;
}

Command change(std::string_view name, std::string_view summary, std::string_view example,
               Answer (*run)(Shell&, const Call&)) {
  return {.name = name,
          .group = "tables",
          .summary = summary,
          .example = example,
          .arguments = {{"table", Takes::kTable}},
          .effect = Effect::kProcedure,
          .run = run};
}

}  // namespace

void add_table_commands(std::vector<Command>& table) {
  using Shape = OptionSpec::Shape;
  const Argument of_table{"table", Takes::kTable};
  table.push_back(
      {.name = "create",
       .group = "tables",
       .summary = "Makes a table with these families, in one region or in several.",
       .example = "create 't', 'f1', {SPLITS => ['a', 'm']}",
       .arguments = {of_table, {"family", Takes::kFamily, Count::kMany}},
       .options = {{"SPLITS", Shape::kTexts, "the keys at which the regions meet"},
                   {"NUMREGIONS", Shape::kNumber, "how many regions, of even shares of the keys"}},
       .effect = Effect::kProcedure,
       .run = create});
  table.push_back({.name = "describe",
                   .group = "tables",
                   .summary = "Prints the families of a table, its state and how many regions.",
                   .example = "describe 't'",
                   .arguments = {of_table},
                   .run = describe});
  table.push_back({.name = "list",
                   .group = "tables",
                   .summary = "Lists tables: all, or those whose name fits a pattern with '*'.",
                   .example = "list 'shop*'",
                   .arguments = {{"pattern", Takes::kBytes, Count::kOptional}},
                   .run = list});
  table.push_back({.name = "alter",
                   .group = "tables",
                   .summary = "Adds families to a table, or removes them.",
                   .example = "alter 't', 'f2', {NAME => 'f1', METHOD => 'delete'}",
                   .arguments = {of_table, {"family", Takes::kFamily, Count::kMany}},
                   .effect = Effect::kProcedure,
                   .run = alter});
  table.push_back(change("disable", "Closes all regions of a table.", "disable 't'",
                         change_table<DisableTable>));
  table.push_back(
      change("enable", "Opens all regions of a table.", "enable 't'", change_table<EnableTable>));
  table.push_back(change("drop", "Removes a table that is disabled, and its rows.", "drop 't'",
                         change_table<DeleteTable>));
  table.push_back(change("truncate",
                         "Removes all rows of a table that is disabled; it has one region then.",
                         "truncate 't'", truncate<TruncateSplits::kDrop>));
  table.push_back(change("truncate_preserve",
                         "Removes all rows of a table that is disabled; its regions stay divided "
                         "where they are.",
                         "truncate_preserve 't'", truncate<TruncateSplits::kPreserve>));
}

}  // namespace pv2::shell

// SPDX-License-Identifier: Apache-2.0
//
// Commands that read the rows of a table. A scan asks page by page, so Ctrl-C ends it between two
// pages too, and what it collects is bounded.

#include <fmt/format.h>
#include <pv2/cluster/cell.h>

#include <algorithm>
#include <set>

#include "commands/call.h"
#include "commands/row_write.h"
#include "commands/subjects.h"
#include "language/escape.h"
#include "session/shell.h"

namespace pv2::shell {

namespace {

using cluster::Cell;
using cluster::Scan;
using cluster::ScanPage;

// Rows of a scan without LIMIT: a few screens, and no memory to speak of.
constexpr std::uint64_t kRowsUsual = 1000;
// An answer is in memory as a whole.
constexpr std::size_t kAnswerBytesMax = std::size_t{64} << 20;

/// Which columns a reader wants: whole families, or single cells of them.
class ColumnChoice {
 public:
  explicit ColumnChoice(const std::vector<std::string>& columns) {
    std::set<std::string> families;
    for (const std::string& column : columns) {
      auto [family, qualifier] = parse_column(column);
      families.insert(family);
      if (column.find(':') == std::string::npos) {
        whole_.insert(family);
      } else {
        cells_.insert({family, qualifier});
      }
    }
    families_.assign(families.begin(), families.end());
  }

  [[nodiscard]] const std::vector<std::string>& families() const { return families_; }
  [[nodiscard]] bool wants(const Cell& cell) const {
    return families_.empty() || whole_.contains(cell.family) ||
           cells_.contains({cell.family, cell.qualifier});
  }

 private:
  std::vector<std::string> families_;
  std::set<std::string> whole_;
  std::set<std::pair<std::string, std::string>> cells_;
};

Result<ScanPage> read_page(Shell& shell, const Call& call, const TableName& table,
                           const Scan& range) {
  const Duration timeout = call.timeout(Shell::kCallTime);
  return shell.ask<ScanPage>(
      [&](auto done) {
        shell.client().scan(table, range, std::move(done), Shell::beyond(timeout));
      },
      timeout);
}

void add_cell(const Cell& cell, Answer& answer) {
  answer.add_row({Bytes{cell.row}, Bytes{cell.family + ':' + cell.qualifier}, Bytes{cell.value}});
}

std::size_t size_of(const Cell& cell) {
  return cell.row.size() + cell.family.size() + cell.qualifier.size() + cell.value.size();
}

Answer get(Shell& shell, const Call& call) {
  const ColumnChoice choice(call.option_texts("COLUMNS"));
  const Duration timeout = call.timeout(Shell::kCallTime);
  const Result<std::vector<Cell>> cells = shell.ask<std::vector<Cell>>(
      [&](auto done) {
        shell.client().get(parse_table_name(call.text(0)), call.text(1), choice.families(),
                           std::move(done), Shell::beyond(timeout));
      },
      timeout);
  if (!cells.ok()) return cells.status();
  Answer answer;
  answer.columns = {"COLUMN", "VALUE"};
  for (const Cell& cell : *cells) {
    if (!choice.wants(cell)) continue;
    answer.add_row({Bytes{cell.family + ':' + cell.qualifier}, Bytes{cell.value}});
  }
  answer.note(counted(answer.rows.size(), "cell"));
  return answer;
}

Answer scan(Shell& shell, const Call& call) {
  const TableName table = parse_table_name(call.text(0));
  const ColumnChoice choice(call.option_texts("COLUMNS"));
  const std::uint64_t limit = call.option_number("LIMIT", kRowsUsual);
  Scan range{.start_row = call.option_text("STARTROW"),
             .end_row = call.option_text("STOPROW"),
             .families = choice.families()};
  Answer answer;
  answer.columns = {"ROW", "COLUMN", "VALUE"};
  std::uint64_t rows = 0;
  std::size_t bytes = 0;
  std::string last;
  bool is_more = true;
  bool is_within_row = false;
  // A row that is divided is shown to its end.
  while (is_more && (rows < limit || is_within_row) && bytes < kAnswerBytesMax) {
    range.rows_max = std::clamp<std::uint64_t>(limit - rows, 1, kRowsUsual);
    const Result<ScanPage> page = read_page(shell, call, table, range);
    if (!page.ok()) return page.status();
    for (const Cell& cell : page->cells) {
      if (!choice.wants(cell)) continue;
      if (rows == 0 || cell.row != last) ++rows;
      last = cell.row;
      bytes += size_of(cell);
      add_cell(cell, answer);
    }
    is_more = page->next_row.has_value();
    is_within_row = page->divides_row() && *page->next_row == last;
    if (is_more) range = rest_of(std::move(range), *page);
  }
  answer.note(counted(rows, "row"));
  if (is_more) {
    answer.note(fmt::format("there may be more: STARTROW => {}", in_quotes(range.start_row)));
  }
  return answer;
}

Answer count(Shell& shell, const Call& call) {
  const TableName table = parse_table_name(call.text(0));
  Scan range{.start_row = call.option_text("STARTROW"), .end_row = call.option_text("STOPROW")};
  std::uint64_t rows = 0;
  std::string last;
  while (true) {
    const Result<ScanPage> page = read_page(shell, call, table, range);
    if (!page.ok()) return page.status();
    for (const Cell& cell : page->cells) {
      if (rows == 0 || cell.row != last) ++rows;
      last = cell.row;
    }
    if (!page->next_row) break;
    range = rest_of(std::move(range), *page);
    shell.progress().show(fmt::format("{} so far", counted(rows, "row")));
  }
  Answer answer;
  answer.columns = {"ROWS"};
  answer.add_row({rows});
  return answer;
}

}  // namespace

void add_row_reading_commands(std::vector<Command>& table) {
  using Shape = OptionSpec::Shape;
  const Argument of_table{"table", Takes::kTable};
  const OptionSpec start{"STARTROW", Shape::kText, "the first row"};
  const OptionSpec stop{"STOPROW", Shape::kText, "the row before which it ends"};
  const OptionSpec columns{"COLUMNS", Shape::kTexts, "families 'f', or single columns 'f:q'"};
  table.push_back({.name = "get",
                   .group = "rows",
                   .summary = "Prints the cells of a row.",
                   .example = "get 't', 'row1'",
                   .arguments = {of_table, {"row", Takes::kRow}},
                   .options = {columns},
                   .run = get});
  table.push_back(
      {.name = "scan",
       .group = "rows",
       .summary = "Prints rows in order, 1000 unless LIMIT says otherwise.",
       .example = "scan 't', {STARTROW => 'a', STOPROW => 'm', LIMIT => 10, COLUMNS => ['f:q']}",
       .arguments = {of_table},
       .options = {start, stop, {"LIMIT", Shape::kNumber, "how many rows at most"}, columns},
       .run = scan});
  table.push_back({.name = "count",
                   .group = "rows",
                   .summary = "Counts rows.",
                   .example = "count 't'",
                   .arguments = {of_table},
                   .options = {start, stop},
                   .run = count});
}

}  // namespace pv2::shell

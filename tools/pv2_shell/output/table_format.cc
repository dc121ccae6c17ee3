// SPDX-License-Identifier: Apache-2.0
//
// Columns are as wide as their widest field. The last one is not padded.

#include "output/table_format.h"

#include <algorithm>
#include <string_view>

#include "language/escape.h"

namespace pv2::shell {
namespace {

// A wider field pushes the rest of its row aside, and not those of all other rows.
constexpr std::size_t kWidthMax = 60;

struct AsText {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(const std::string& text) const { return printable(text); }
  std::string operator()(const Bytes& bytes) const { return escape_bytes(bytes.value); }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(std::uint64_t number) const { return std::to_string(number); }
  std::string operator()(bool yes) const { return yes ? "yes" : "no"; }
};

using Line = std::vector<std::string>;

void add_line(const Line& fields, const std::vector<std::size_t>& widths, std::string& out) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    line += fields[i];
    if (i + 1 == fields.size()) break;
    const std::size_t width = widths[i];
    line.append(fields[i].size() < width ? width - fields[i].size() : 0, ' ');
    line += "  ";
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

void add_rows(const Answer& answer, std::string& out) {
  if (answer.rows.empty()) return;
  std::vector<Line> lines;
  if (!answer.columns.empty()) lines.push_back(answer.columns);
  for (std::size_t i = 0; i < answer.rows.size(); ++i) {
    Line line;
    for (const Field& field : answer.rows[i]) line.push_back(as_text(field));
    if (!line.empty() && i < answer.indents.size()) line[0].insert(0, answer.indents[i], ' ');
    lines.push_back(std::move(line));
  }
  std::vector<std::size_t> widths;
  for (const Line& line : lines) {
    if (widths.size() < line.size()) widths.resize(line.size());
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i].size() <= kWidthMax) widths[i] = std::max(widths[i], line[i].size());
    }
  }
  for (const Line& line : lines) add_line(line, widths, out);
}

std::string_view verdict(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return "";
    case Outcome::kFailed:
      return "ERROR ";
    case Outcome::kUnknown:
      return "UNKNOWN, perhaps it was done: ";
    case Outcome::kRunning:
      return "STILL RUNNING: ";
  }
  return "";
}

}  // namespace

std::string as_text(const Field& field) { return std::visit(AsText(), field); }

std::string as_table(const Answer& answer) {
  std::string out;
  add_rows(answer, out);
  for (const std::string& note : answer.notes) out += printable(note) + '\n';
  if (answer.outcome != Outcome::kDone) {
    out += verdict(answer.outcome);
    out += printable(answer.status.to_string()) + '\n';
  }
  if (!answer.again.empty()) {
    out += answer.outcome == Outcome::kUnknown ? "Ask again, nothing is done twice:\n    "
                                               : "To wait for it:\n    ";
    out += printable(answer.again) + '\n';
  }
  return out;
}

}  // namespace pv2::shell

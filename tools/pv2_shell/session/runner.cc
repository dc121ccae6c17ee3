// SPDX-License-Identifier: Apache-2.0
//
// Every answer is flushed: whoever reads it through a pipe gets it before the next statement
// begins.

#include "session/runner.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "language/escape.h"
#include "output/json_format.h"
#include "output/table_format.h"
#include "session/interrupts.h"

namespace pv2::shell {
namespace {

// Which some programs write before a text.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_silent(const Answer& answer) {
  return answer.ok() && answer.rows.empty() && answer.notes.empty() && !answer.nonce;
}

// False: there is no further line. A signal ends the read of a pipe or terminal, perhaps in the
// middle of a line, and looks like the end of the input.
bool read_line(std::istream& script, std::string& line) {
  line.clear();
  std::string part;
  while (true) {
    const bool has_read = static_cast<bool>(std::getline(script, part));
    line += part;
    if (has_read && !script.eof()) return true;
    if (Interrupts::must_end()) return false;
    if (!Interrupts::take()) return has_read || !line.empty();
    script.clear();
    std::clearerr(stdin);
  }
}

}  // namespace

ExitCode exit_code_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kDone:
      return ExitCode::kOk;
    case Outcome::kFailed:
      return ExitCode::kFailed;
    case Outcome::kUnknown:
    case Outcome::kRunning:
      return ExitCode::kUnknown;
  }
  return ExitCode::kFailed;
}

void Runner::write(std::FILE* file, std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (written && std::fflush(file) == 0) return;
  if (output_.ok()) {
    output_ = Status(StatusCode::kIoError,
                     std::string("an answer could not be written: ") + std::strerror(errno));
  }
}

void Runner::print(const std::string& line, const Answer& answer, std::string_view where) {
  if (options_.json) return write(out_, as_json(line, answer) + '\n');
  std::string text;
  if (options_.quiet && answer.ok()) {
    Answer rows = answer;
    rows.notes.clear();
    text = as_table(rows);
  } else {
    text = as_table(answer);
  }
  // A write that has nothing else to say.
  if (text.empty() && answer.ok() && !options_.quiet) text = "done\n";
  if (!answer.ok() && !where.empty()) text = printable(where) + ": " + text;
  write(answer.ok() ? out_ : errors_, text);
}

Outcome Runner::run(const std::string& line, std::string_view where) {
  const Answer answer = shell_.answer(line);
  const bool blank = line.find_first_not_of(" \t\r") == std::string::npos ||
                     line[line.find_first_not_of(" \t\r")] == '#';
  if (!blank && !(is_silent(answer) && shell_.has_ended())) print(line, answer, where);
  return answer.outcome;
}

ExitCode Runner::run_script(std::istream& script, const std::string& name) {
  std::string line;
  ExitCode code = ExitCode::kOk;
  for (std::size_t number = 1; !shell_.has_ended() && read_line(script, line); ++number) {
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    const Outcome outcome = run(line, name + ':' + std::to_string(number));
    if (code == ExitCode::kOk) code = exit_code_of(outcome);
    if (!output_.ok() || (code != ExitCode::kOk && !options_.keep_going)) break;
  }
  return code;
}

void Runner::run_all(const std::function<std::optional<std::string>()>& read) {
  while (!shell_.has_ended()) {
    const std::optional<std::string> line = read();
    if (!line) return;
    run(*line);
  }
}

}  // namespace pv2::shell

// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the language of the shell with arbitrary lines: a line is a statement or is refused, what
// either prints is printable ASCII, and a statement that is written out is read as the same one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "language/escape.h"
#include "language/parser.h"
#include "pv2/base/assert.h"

namespace {

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pv2;
  const std::string_view line(reinterpret_cast<const char*>(data), size);

  PV2_ASSERT(is_printable(shell::escape_bytes(line)), "escaped bytes are printable");
  PV2_ASSERT(is_printable(shell::printable(line)), "a message is printable");
  const auto quoted = shell::parse("a " + shell::in_quotes(line));
  PV2_ASSERT(quoted.ok() && quoted->arguments.at(0).text == line, "a quoted text means its bytes");

  const Result<shell::Statement> statement = shell::parse(line);
  if (!statement.ok()) {
    PV2_ASSERT(is_printable(statement.status().message()), "a refusal is printable");
    return 0;
  }
  const std::string text = shell::to_text(*statement);
  PV2_ASSERT(is_printable(text), "a statement is written in printable characters");
  const Result<shell::Statement> again = shell::parse(text);
  PV2_ASSERT(again.ok(), "a statement that is written out can be read");
  PV2_ASSERT(*again == *statement, "a statement and its copy through text are the same");
  return 0;
}

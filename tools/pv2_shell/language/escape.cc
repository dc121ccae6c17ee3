// SPDX-License-Identifier: Apache-2.0
//
// Byte by byte, so a result says what every byte was, whatever encoding they were meant to be.
// Cannot fail.

#include "language/escape.h"

namespace pv2::shell {
namespace {

constexpr bool is_printable(char byte) { return byte >= ' ' && byte <= '~'; }

void add_hex(std::string& out, char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto value = static_cast<unsigned char>(byte);
  out += "\\x";
  out += kDigits[value >> 4U];
  out += kDigits[value & 15U];
}

void add_escaped(std::string& out, char byte) {
  if (byte == '\\') {
    out += "\\\\";
  } else if (is_printable(byte)) {
    out += byte;
  } else if (byte == '\n') {
    out += "\\n";
  } else if (byte == '\t') {
    out += "\\t";
  } else {
    add_hex(out, byte);
  }
}

}  // namespace

std::string escape_bytes(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) add_escaped(out, byte);
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (is_printable(byte)) {
      out += byte;
    } else {
      add_hex(out, byte);
    }
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char byte : text) {
    if (byte == '\'') out += '\\';
    add_escaped(out, byte);
  }
  return out + '\'';
}

}  // namespace pv2::shell

// SPDX-License-Identifier: Apache-2.0
//
// JSON's escapes and numbers, and the check for UTF-8 that decides between text and hex.

#include "pv2/base/json_writer.h"

#include <charconv>
#include <cmath>

namespace pv2 {
namespace {

/// The length of the well-formed character at the start of `bytes`, or 0.
std::size_t utf8_length(std::string_view bytes) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (lead < 0xC2 || lead > 0xF4 || bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // The second byte also rules out overlong forms, surrogates and what lies beyond U+10FFFF.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

template <class Number>
std::string digits(Number value) {
  char buffer[64];
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

template <class Float>
std::string float_text(Float value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return digits(value);
}

}  // namespace

bool is_utf8(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 0xF];
  }
  return hex;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  if (is_utf8(name)) {
    quote(name);
  } else {
    quote("hex:" + to_hex(name));
  }
  out_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::number(std::uint64_t value) { return text(digits(value)); }
JsonWriter& JsonWriter::number(std::int64_t value) { return text(digits(value)); }
JsonWriter& JsonWriter::number(double value) { return text(float_text(value)); }
JsonWriter& JsonWriter::number(float value) { return text(float_text(value)); }

JsonWriter& JsonWriter::string(std::string_view value) {
  if (!is_utf8(value)) return begin_object().key("hex").string(to_hex(value)).end_object();
  separate();
  quote(value);
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view json) {
  separate();
  out_ += json;
  needs_comma_ = true;
  return *this;
}

void JsonWriter::separate() {
  if (needs_comma_) out_ += ',';
}

void JsonWriter::quote(std::string_view utf8) {
  out_ += '"';
  for (const char c : utf8) {
    switch (c) {
      case '"':
        out_ += "\\\"";
        break;
      case '\\':
        out_ += "\\\\";
        break;
      case '\n':
        out_ += "\\n";
        break;
      case '\r':
        out_ += "\\r";
        break;
      case '\t':
        out_ += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          out_ += "\\u00" + to_hex(std::string_view(&c, 1));
        } else {
          out_ += c;
        }
    }
  }
  out_ += '"';
}

}  // namespace pv2

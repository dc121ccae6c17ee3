// SPDX-License-Identifier: Apache-2.0
//
// JsonWriter: appends JSON text to a string, one value at a time, with commas and escapes. It reads
// nothing and keeps no tree; its caller has to alternate keys and values properly. Cannot fail.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pv2 {

/// Whether `bytes` are well-formed UTF-8 (no surrogates, no overlong forms).
[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;

/// "00ff10".
[[nodiscard]] std::string to_hex(std::string_view bytes);

/// Writes compact JSON, on one line. Owned by one thread.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) noexcept : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  /// The name of the value that comes next, inside an object.
  JsonWriter& key(std::string_view name);

  JsonWriter& number(std::uint64_t value);
  JsonWriter& number(std::int64_t value);
  /// The shortest digits that read back as the same value; "NaN" and the infinities become strings.
  JsonWriter& number(double value);
  JsonWriter& number(float value);
  JsonWriter& boolean(bool value) { return text(value ? "true" : "false"); }
  JsonWriter& null() { return text("null"); }
  /// Text; what is not UTF-8 becomes {"hex":"00ff10"}.
  JsonWriter& string(std::string_view value);

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& text(std::string_view json);
  void separate();
  void quote(std::string_view utf8);

  std::string& out_;
  bool needs_comma_ = false;
};

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Every string goes through escape_bytes() or printable() first: JSON allows characters that a
// terminal obeys.

#include "output/json_format.h"

#include <pv2/base/json_writer.h>

#include <cstddef>

#include "language/escape.h"

namespace pv2::shell {
namespace {

struct Write {
  JsonWriter& json;

  void operator()(std::monostate) const { json.null(); }
  void operator()(const std::string& text) const { json.string(printable(text)); }
  void operator()(const Bytes& bytes) const { json.string(escape_bytes(bytes.value)); }
  void operator()(std::int64_t number) const { json.number(number); }
  void operator()(std::uint64_t number) const { json.number(number); }
  void operator()(bool yes) const { json.boolean(yes); }
};

// "START KEY" is the member start_key.
std::string member_of(std::string_view column) {
  std::string name;
  for (const char c : column) {
    const bool upper = c >= 'A' && c <= 'Z';
    name += c == ' ' ? '_' : static_cast<char>(upper ? c - 'A' + 'a' : c);
  }
  return name;
}

}  // namespace

std::string as_json(std::string_view statement, const Answer& answer) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("statement").string(printable(statement));
  json.key("ok").boolean(answer.ok());
  json.key("outcome").string(to_string(answer.outcome));
  json.key("rows").begin_array();
  for (const auto& row : answer.rows) {
    json.begin_object();
    for (std::size_t i = 0; i < row.size() && i < answer.columns.size(); ++i) {
      json.key(member_of(answer.columns[i]));
      std::visit(Write{json}, row[i]);
    }
    json.end_object();
  }
  json.end_array();
  json.key("notes").begin_array();
  for (const std::string& note : answer.notes) json.string(printable(note));
  json.end_array();
  if (answer.procedure) json.key("procedure").number(answer.procedure.value);
  if (answer.nonce)
    json.key("nonce").string(to_string(*answer.nonce, answer.expires_at, answer.mark));
  if (!answer.again.empty()) json.key("again").string(printable(answer.again));
  if (!answer.status.ok()) {
    json.key("error").begin_object();
    json.key("code").string(pv2::to_string(answer.status.code()));
    json.key("message").string(printable(answer.status.message()));
    json.end_object();
  }
  json.end_object();
  return out;
}

}  // namespace pv2::shell

// SPDX-License-Identifier: Apache-2.0
//
// Answer: what a statement has to say, as data. Commands make answers; how one looks, as a table or
// as JSON, is decided elsewhere.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pv2::shell {

/// What a row of a table holds: printed so that it reads back as the same bytes.
struct Bytes {
  std::string value;
};

/// One field of a row. Nothing: there is none.
using Field = std::variant<std::monostate, std::string, Bytes, std::int64_t, std::uint64_t, bool>;

/// What is known of a statement afterwards. Its names in JSON are stable.
enum class Outcome : std::uint8_t {
  kDone,     ///< "done"
  kFailed,   ///< "failed": it changed nothing, or what it changed was undone.
  kUnknown,  ///< "unknown": perhaps it was done; `again` asks.
  kRunning,  ///< "running": accepted for good, and not at its end; `again` waits for it.
};

[[nodiscard]] std::string_view to_string(Outcome outcome) noexcept;

/// A plain value.
struct Answer {
  Outcome outcome = Outcome::kDone;
  Status status{};  ///< OK if, and only if, `outcome` is kDone.
  std::vector<std::string> columns{};
  std::vector<std::vector<Field>> rows{};
  /// For people: how far the first field of a row is indented. Empty: no row is.
  std::vector<unsigned> indents{};
  std::vector<std::string> notes{};      ///< Sentences that follow the rows.
  std::optional<Nonce> nonce{};          ///< Under which something was changed, or may have been.
  std::optional<WallTime> expires_at{};  ///< Of a write of rows: its nonce goes with this end.
  std::string mark{};                    ///< Of the statement that the nonce belongs to.
  ProcedureId procedure{};
  std::string again{};  ///< The statement that asks again, or waits.

  Answer() = default;
  /// A failure.
  Answer(Status why) : outcome(Outcome::kFailed), status(std::move(why)) {}

  [[nodiscard]] bool ok() const noexcept { return outcome == Outcome::kDone; }

  void add_row(std::vector<Field> row, unsigned indent = 0) {
    rows.push_back(std::move(row));
    indents.push_back(indent);
  }
  void note(std::string sentence) { notes.push_back(std::move(sentence)); }
};

/// An answer of one sentence.
[[nodiscard]] inline Answer said(std::string sentence) {
  Answer answer;
  answer.note(std::move(sentence));
  return answer;
}

/// "3 rows", "1 row".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view what);
/// "1f-2a": the group and the value in hexadecimal, with an end "1f-2a-5", its microseconds, and
/// then the mark of the statement if there is one; the form in which the language takes nonces.
[[nodiscard]] std::string to_string(const Nonce& nonce, std::optional<WallTime> expires_at = {},
                                    std::string_view mark = {});

}  // namespace pv2::shell

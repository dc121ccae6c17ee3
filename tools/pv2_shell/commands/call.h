// SPDX-License-Identifier: Apache-2.0
//
// Call: a statement that fits its command: every argument is there and has the right kind. bind()
// makes one, or says what is wrong, where, and what would be right.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/command.h"
#include "language/statement.h"

namespace pv2::shell {

/// Which submission or write a statement is.
struct Identity {
  Nonce nonce{};  ///< None: one is chosen before the first send.
  /// Until when a write may be sent. All times that it is sent have the same end.
  std::optional<WallTime> expires_at{};
  bool resumed = false;  ///< Something was sent before under this nonce.
  /// Call::mark() of the statement that the nonce was given to; empty: whoever wrote the nonce down
  /// had no answer with the mark, so nothing is compared.
  std::string mark{};
};

/// A plain value. Valid as long as the table of commands.
struct Call {
  const Command* command = nullptr;
  Statement statement{};           ///< As it was written.
  std::vector<Value> arguments{};  ///< Those that have a place.
  std::vector<Option> options{};   ///< All others, those of maps too.
  Identity identity{};

  [[nodiscard]] bool has(std::size_t index) const { return index < arguments.size(); }
  /// The text of an argument that is there.
  [[nodiscard]] const std::string& text(std::size_t index) const;
  [[nodiscard]] std::int64_t number(std::size_t index) const;
  [[nodiscard]] ProcedureId procedure(std::size_t index) const;

  [[nodiscard]] const Value* option(std::string_view name) const;
  [[nodiscard]] bool has_option(std::string_view name) const { return option(name) != nullptr; }
  [[nodiscard]] std::string option_text(std::string_view name, std::string otherwise = {}) const;
  [[nodiscard]] std::uint64_t option_number(std::string_view name, std::uint64_t otherwise) const;
  [[nodiscard]] std::vector<std::string> option_texts(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;
  /// TIMEOUT => seconds.
  [[nodiscard]] Duration timeout(Duration otherwise) const;

  /// What the statement does, without its identity.
  [[nodiscard]] Statement content() const;
  /// Tells statements apart that do different things: "s" and 16 digits, a hash of content()
  /// without what only says how long the shell waits. The same in every version.
  [[nodiscard]] std::string mark() const;
  /// The statement with another identity: `RESUME => '1f-2a-5-s0123456789abcdef'`.
  [[nodiscard]] std::string resume(const Nonce& nonce, std::optional<WallTime> expires_at) const;
};

/// kInvalidArgument: there is no such command, or its arguments are wrong.
[[nodiscard]] Result<Call> bind(const Statement& statement);

/// "put 't', 'row', 'column', 'value'": the place of each argument.
[[nodiscard]] std::string usage_of(const Command& command);

/// "1f-2a", "1f-2a-5" with an end in microseconds, and each with the mark of a statement after it,
/// "1f-2a-s0123456789abcdef"; nullopt: it is none of these.
[[nodiscard]] std::optional<Identity> parse_identity(std::string_view text);

}  // namespace pv2::shell

// SPDX-License-Identifier: Apache-2.0
//
// The client repeats a write under its nonce until the outcome is known or the time is over. A
// later statement goes on with the same three: nonce, end, mutations.

#include "commands/row_write.h"

#include <chrono>

namespace pv2::shell {
namespace {

// As the client's own: servers keep the nonce for longer.
constexpr Duration kWriteKept = std::chrono::minutes(15);

}  // namespace

Written write_rows(Shell& shell, const Call& call, const TableName& table,
                   std::vector<cluster::Mutation> mutations) {
  cluster::WriteOptions options{
      .nonce = call.identity.nonce ? call.identity.nonce : shell.next_nonce(),
      .expires_at = call.identity.expires_at ? *call.identity.expires_at
                                             : later(shell.wall_now(), kWriteKept),
      .resumed = call.identity.resumed,
      .timeout = call.timeout(Shell::kCallTime)};
  Result<cluster::WriteOutcome> outcome = shell.wait_for<cluster::WriteOutcome>(
      [&](auto done) { shell.client().write(table, std::move(mutations), options, done); },
      *options.timeout,
      [&shell] { shell.progress().show("waits for the region to take the write"); });
  Written written;
  written.answer.nonce = options.nonce;
  written.answer.expires_at = options.expires_at;
  if (outcome.ok() && outcome->ok()) {
    written.result = std::move(outcome->result);
    return written;
  }
  // A nonce that names another write never comes to name this one.
  const bool failed = outcome.ok() && (outcome->kind == cluster::WriteOutcome::Kind::kFailed ||
                                       outcome->status.code() == StatusCode::kKeyReused);
  written.answer.status = outcome.ok() ? outcome->status : outcome.status();
  written.answer.outcome = failed ? Outcome::kFailed : Outcome::kUnknown;
  if (!failed) written.answer.again = call.resume(options.nonce, options.expires_at);
  return written;
}

std::pair<std::string, std::string> parse_column(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace pv2::shell

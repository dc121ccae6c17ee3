// SPDX-License-Identifier: Apache-2.0
//
// Caller: how one client has an operation done once: by a nonce, in a session, or as a procedure of
// an engine. Whatever the network does, it asks again until there is an outcome.

#pragma once

#include <pv2/base/status.h>
#include <pv2/rpc/call_outcome.h>
#include <pv2/rpc/rpc_client.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "requests.h"
#include "service.h"

namespace counter {

enum class Way : std::uint8_t { kNonce, kSession, kEngine };
inline constexpr std::array kWays{Way::kNonce, Way::kSession, Way::kEngine};
/// "nonce".
[[nodiscard]] std::string_view to_string(Way way) noexcept;
/// What it means, in one line for a person.
[[nodiscard]] std::string_view meaning(Way way) noexcept;

/// After so long a call of the RPC layer ends as unknown, and the operation is asked for again.
/// Shorter than some restarts of the server, so that this happens.
inline constexpr pv2::Duration kCallTimeout = std::chrono::seconds(2);
/// So long after it has begun with an operation a client may still ask for it; so long, at least,
/// the server remembers its nonce.
inline constexpr pv2::Duration kPromise = std::chrono::minutes(2);

/// Used on the loop's thread of its client.
class Caller {
 public:
  virtual ~Caller() = default;
  /// Has an operation done. kOk: it was, with this answer. kFailed: it was not, because the
  /// service's rules forbid it. kUnknown: given up, which should not happen.
  virtual void add(const AddRequest& request, pv2::CallDone done) = 0;
  virtual void append(const AppendRequest& request, pv2::CallDone done) = 0;
  /// Asks for nothing again from now on.
  virtual void end() { has_ended_ = true; }
  /// How often a call ended as unknown and its operation was asked for again.
  [[nodiscard]] std::uint64_t asked_again() const noexcept { return asked_again_; }

 protected:
  /// Whether the operation is to be asked for again, since this is not its outcome.
  [[nodiscard]] bool has_to_ask_again(const pv2::CallOutcome& outcome);

 private:
  std::uint64_t asked_again_ = 0;
  bool has_ended_ = false;
};

/// `client` outlives it.
[[nodiscard]] pv2::Result<std::unique_ptr<Caller>> make_caller(Way way, Dedup dedup,
                                                               pv2::RpcClient& client);

}  // namespace counter

// SPDX-License-Identifier: Apache-2.0
//
// OutgoingCall: a call of a client, from call() to its outcome.

#pragma once

#include <pv2/base/status.h>

#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "pv2/rpc/rpc_client.h"

namespace pv2 {

class ClientLink;

/// Owned by the ClientCore; in its set of due times until it ends, and in its queue while it waits
/// to be sent.
struct OutgoingCall : boost::intrusive::list_base_hook<>, boost::intrusive::set_base_hook<> {
  enum class Phase : std::uint8_t {
    kQueued,  ///< Waits for a connection with room.
    kSent,    ///< `link` waits for the answer to attempt `id`.
    kPausing  ///< Was refused; is sent again when `due`.
  };

  OutgoingCall(std::string method_of, std::string body_of, CallOptions options_of, CallDone done_of)
      : method(std::move(method_of)),
        body(std::move(body_of)),
        options(std::move(options_of)),
        done(std::move(done_of)) {}

  std::uint64_t ticket = 0;
  std::string method;
  std::string body;
  CallOptions options;
  CallDone done;

  Phase phase = Phase::kQueued;
  SteadyTime deadline;  ///< When to give up.
  SteadyTime due;       ///< When something has to be done: the next attempt, or to give up.
  SteadyTime sent_at;
  std::optional<SteadyTime> first_sent_at;  ///< Of the attempts that may have been run.
  ClientLink* link = nullptr;               ///< While it is sent.
  std::uint64_t id = 0;
  std::uint32_t attempts = 0;
  std::uint32_t retries = 0;  ///< For the length of the pause.
  /// An attempt may have been run whose answer is not known.
  bool may_be_done = false;
  Status last;  ///< Why the last attempt has not led to an outcome.

  /// It may be sent again after an attempt that may have been run.
  [[nodiscard]] bool is_repeatable() const noexcept {
    return static_cast<bool>(options.nonce) || options.read_only || options.session.session != 0;
  }
  [[nodiscard]] bool is_queued() const noexcept { return list_base_hook::is_linked(); }
  [[nodiscard]] bool is_due() const noexcept { return set_base_hook::is_linked(); }
  /// About what it takes.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof(OutgoingCall) + method.size() + body.size();
  }
};

struct EarlierDue {
  bool operator()(const OutgoingCall& a, const OutgoingCall& b) const noexcept {
    return a.due < b.due;
  }
};

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// CallOutcome: what a client knows at the end of a call. There are three answers, not two: done,
// definitely not done, and "it may have been done".

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <string>

namespace pv2 {

struct CallOutcome {
  enum class Kind : std::uint8_t {
    kOk,       ///< Done; `body` is the answer.
    kFailed,   ///< Not done, or undone, for good; `status` says why.
    kUnknown,  ///< Perhaps done. Ask again with `nonce`, in this process or another.
  };

  Kind kind = Kind::kUnknown;
  std::string body{};
  Status status{};             ///< Not OK unless `kind` is kOk.
  Nonce nonce{};               ///< What the call was made under.
  std::uint32_t attempts = 0;  ///< How often it was sent.
  bool was_refused = false;    ///< `status` is a refusal of the server (IncomingCall::refuse).
  /// With an answer: an earlier attempt, perhaps of an earlier process, may have been carried out.
  bool may_be_repeat = false;

  [[nodiscard]] bool ok() const noexcept { return kind == Kind::kOk; }
};

/// "OK", "FAILED: KEY_REUSED: ...", "UNKNOWN (nonce 7:12): ...".
[[nodiscard]] std::string to_string(const CallOutcome& outcome);

}  // namespace pv2

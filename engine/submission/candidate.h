// SPDX-License-Identifier: Apache-2.0
//
// Candidate: a submission of which everything is known that needs no lock. Making one calls the
// user's code and checks what the caller handed in; nothing is reserved yet, so a candidate may be
// dropped at any time.

#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "core/engine_core.h"
#include "submission/fingerprints.h"

namespace pv2 {

/// A value, owned by the thread that submits.
struct Candidate {
  std::unique_ptr<Execution> execution;  ///< Complete, but for its id.
  std::unique_ptr<Procedure> procedure;  ///< The user's object, from which `execution` was made.
  Fingerprints fingerprints;             ///< Set only if there is a nonce.
  std::optional<WallTime> expires_at;    ///< The caller does not send the nonce after this time.
  WallTime now{};                        ///< Compared with `expires_at`: earliest_now().

  [[nodiscard]] const Nonce& nonce() const noexcept { return execution->nonce(); }
};

/// The earliest time that it can be now. The age of the store bounds it from below even when the
/// wall clock was set back.
[[nodiscard]] WallTime earliest_now(const EngineCore& core);

/// Encodes `procedure` and asks it for its locks and its priority. kInvalidArgument: the type is
/// not registered, or something that the caller handed in is out of its bounds; an exception of the
/// user's code comes back as a Status too. Calls user code. Thread-safe.
[[nodiscard]] Result<Candidate> make_candidate(EngineCore& core, std::string_view type,
                                               std::unique_ptr<Procedure> procedure,
                                               const SubmitOptions& options)
    PV2_EXCLUDES(core.state_mutex);

/// Makes an object of the type called `type` from its encoded arguments. kInvalidArgument: there is
/// no such type, or the bytes are not arguments of it, all of them. Calls user code. Thread-safe.
[[nodiscard]] Result<std::unique_ptr<Procedure>> decode_new(EngineCore& core, std::string_view type,
                                                            std::string_view arguments);

}  // namespace pv2

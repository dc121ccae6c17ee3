// SPDX-License-Identifier: Apache-2.0
//
// Fingerprints: what a submission with a nonce is recognised by. A second submission of the nonce
// is a duplicate if its fingerprint matches the recorded one, and a misuse of the nonce if not.

#pragma once

#include <string>

#include "model/identity.h"

namespace pv2 {

/// The fingerprint that this program records of a submission, and the one that an older program
/// recorded of the same submission. A value.
struct Fingerprints {
  Fingerprint exact;
  Fingerprint joined;

  [[nodiscard]] bool match(const Fingerprint& known) const noexcept {
    return known == (known.form == Fingerprint::Form::kJoined ? joined : exact);
  }
};

/// Over type, owner and arguments. `scratch` is overwritten: callers that ask often pass the same
/// string, which keeps its memory.
[[nodiscard]] Fingerprints fingerprints_of(const Identity& identity, std::string& scratch);

}  // namespace pv2

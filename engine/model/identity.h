// SPDX-License-Identifier: Apache-2.0
//
// Identity: what the header row of a procedure says. It is set before the first record and never
// changes. Its id, locks and priority, which the scheduler reads, are in SchedulerEntry.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>

#include <cstdint>
#include <string_view>

#include "model/compact_bytes.h"
#include "model/on_demand.h"
#include "pv2/engine/submit_options.h"

namespace pv2 {

struct ProcedureType;

/// 128 bits over type, arguments and owner of a submission with a nonce.
struct Fingerprint {
  /// How it was made; persisted.
  enum class Form : std::uint8_t {
    kJoined = 1,  ///< By older programs. A zero byte in owner or type makes some submissions equal.
    kExact = 2,   ///< Different submissions are encoded differently.
  };
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  Form form = Form::kExact;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// The nonce of a submission, and what it was used for.
struct NonceUse {
  Nonce nonce;
  Fingerprint fingerprint;
};

/// Names that few procedures have.
struct Names {
  CompactBytes owner;
  CompactBytes type;  ///< Only of a type that this program does not know.
};

struct Identity {
  const ProcedureType* type = nullptr;  ///< nullptr: not known to this program (quarantined).
  OnDemand<Names> names;
  CompactBytes arguments;        ///< The argument fields, encoded.
  OnDemand<NonceUse> nonce_use;  ///< Of a submission with a nonce.
  WallTime submitted{};
  OnFailure on_failure : 4 = OnFailure::kFailTree;  ///< Of a child.
  /// Of a child; kConcurrent: together with siblings.
  UndoOrder undo_order : 4 = UndoOrder::kReverse;

  [[nodiscard]] const Nonce& nonce() const noexcept { return nonce_use->nonce; }
  [[nodiscard]] const Fingerprint& fingerprint() const noexcept { return nonce_use->fingerprint; }
  /// Whether its failure is only reported to its parent, so that the rest of the tree goes on.
  [[nodiscard]] bool reports() const noexcept { return on_failure == OnFailure::kReport; }
  [[nodiscard]] std::string_view owner() const noexcept { return names->owner; }
  void set_owner(std::string_view owner) {
    if (!owner.empty()) names.edit().owner = owner;
  }
  [[nodiscard]] std::string_view name_of_type() const noexcept;
};

}  // namespace pv2

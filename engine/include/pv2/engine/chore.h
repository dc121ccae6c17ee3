// SPDX-License-Identifier: Apache-2.0
//
// Chore: periodic work of a host, for as long as the object lives.

#pragma once

#include <utility>

#include "pv2/engine/registration.h"

namespace pv2 {

/// What ProcedureExecutor::add_chore() returns. The chore ends when this object is destroyed or
/// assigned to ({} ends the chore early): then its work is not called any more. If that happens on
/// a thread of the executor (a chore ends itself), a call that is under way may still be running. A
/// Chore may outlive its executor.
///
/// Owned by one thread at a time. A default-made or moved-from Chore is empty.
class [[nodiscard]] Chore {
 public:
  Chore() = default;

 private:
  friend class ProcedureExecutor;
  explicit Chore(internal::Registration made) : made_(std::move(made)) {}

  internal::Registration made_;
};

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Chore: periodic work of a host, for as long as the object lives.

#pragma once

#include <utility>

#include "pv2/engine/registration.h"

namespace pv2 {

/// What ProcedureExecutor::add_chore() returns. It ends when it is destroyed, or another is
/// assigned to it ({} ends it early): then its work is not called any more. On a thread of the
/// executor (a chore that ends itself) a call that is under way may still be running. It may
/// outlive its executor; then nothing is left to end.
///
/// Owned by one thread at a time. A default-made or moved-from Chore is none.
class [[nodiscard]] Chore {
 public:
  Chore() = default;

 private:
  friend class ProcedureExecutor;
  explicit Chore(internal::Registration made) : made_(std::move(made)) {}

  internal::Registration made_;
};

}  // namespace pv2

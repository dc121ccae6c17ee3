// SPDX-License-Identifier: Apache-2.0
//
// RestartCheck: keeps what an executor knew of everything that it had made durable, and checks that
// the next executor on the same store knows the same. Every persisted field is compared; the first
// that differs is reported in words: the procedure, the field, both values. Which fields there are,
// and what is volatile by design, is in engine/watch/persisted_image.h.

#pragma once

#include <pv2/engine/procedure_executor.h>
#include <pv2/store/commit_request.h>

#include <map>
#include <set>
#include <string>

#include "watch/persisted_image.h"

namespace pv2::testing {

/// Owned by one thread.
class RestartCheck {
 public:
  /// Keeps what `executor` knows now. Its life must be over, or none of its commits may be under
  /// way.
  explicit RestartCheck(const ProcedureExecutor& executor);

  /// `batch` reached the disk, but the process died before the executor got the store's answer: the
  /// trees in it may differ.
  void leave_out(const RowBatch& batch);

  /// What `reloaded`, which has run nothing yet, knows differently; "" if all is the same.
  [[nodiscard]] std::string difference(const ProcedureExecutor& reloaded) const;

 private:
  // What is durable of a procedure, with its fields in readable form.
  struct Known {
    PersistedProcedure image;
    std::string fields;
  };
  using KnownById = std::map<ProcedureId, Known>;

  static KnownById live_of(const PersistedImage& image, const ProcedureExecutor& executor);
  [[nodiscard]] std::set<ProcedureId> left_out(const KnownById& found) const;

  PersistedImage image_;
  KnownById live_;
  std::set<ProcedureId> unheard_;  ///< Procedures with a row in a batch that was left out.
  bool something_else_unheard_ = false;
};

}  // namespace pv2::testing

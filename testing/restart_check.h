// SPDX-License-Identifier: Apache-2.0
//
// RestartCheck: what an executor knew of everything that it had made durable, kept over its end,
// and whether the next one on the same store knows the same. Every persisted field is compared; the
// first that differs is told in words: the procedure, the field, both values. Which fields there
// are, and what is volatile by design, is in engine/persisted_image.h.

#pragma once

#include <pv2/engine/procedure_executor.h>
#include <pv2/store/commit_request.h>

#include <map>
#include <set>
#include <string>

#include "persisted_image.h"

namespace pv2::testing {

/// Owned by one thread.
class RestartCheck {
 public:
  /// What `executor` knows now; its life is over, or nothing of it is on its way to the store.
  explicit RestartCheck(const ProcedureExecutor& executor);

  /// `batch` is on the disk, and nobody heard of it: the trees that it is about may differ.
  void leave_out(const RowBatch& batch);

  /// What `reloaded`, of which nothing has run yet, knows otherwise; "" if all is the same.
  [[nodiscard]] std::string difference(const ProcedureExecutor& reloaded) const;

 private:
  // What is durable of a procedure, with its fields as people read them.
  struct Known {
    PersistedProcedure image;
    std::string fields;
  };
  using KnownById = std::map<ProcedureId, Known>;

  static KnownById live_of(const PersistedImage& image, const ProcedureExecutor& executor);
  [[nodiscard]] std::set<ProcedureId> left_out(const KnownById& found) const;

  PersistedImage image_;
  KnownById live_;
  std::set<ProcedureId> unheard_;  ///< Procedures of whom something is on the disk.
  bool something_else_unheard_ = false;
};

}  // namespace pv2::testing

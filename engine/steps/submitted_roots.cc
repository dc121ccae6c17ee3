// SPDX-License-Identifier: Apache-2.0
//
// Submissions by steps and by the application are admitted by the same code; only the batch
// differs.

#include "steps/submitted_roots.h"

#include <fmt/format.h>

#include <utility>

#include "steps/step_frame.h"
#include "submission/admission.h"

namespace pv2 {

void SubmittedRoots::submit(std::string type, std::unique_ptr<Procedure> object,
                            SubmitOptions options) {
  submitted_.push_back({std::move(type), std::move(object), std::move(options)});
}

Status SubmittedRoots::adopt() {
  for (Submitting& submitting : submitted_) {
    // Shared with the reply, which may come after this function has returned.
    const auto refused = std::make_shared<Status>();
    auto insert = frame_.core.admission->reserve_for_step(
        submitting.type, std::move(submitting.object), std::move(submitting.options),
        {.reply = {[refused](const Result<Submitted>& result) { *refused = result.status(); },
                   ReplyOn::kHere},
         .step = &frame_.execution});
    if (insert) {
      insert->batch.for_each(
          [&](RowOperation, Space space, std::string_view key, std::string_view value) {
            frame_.commit.batch.insert(space, key, value);
          });
      frame_.commit.rare.edit().roots.push_back(insert.release());
    } else if (!refused->ok()) {
      return refused->with_context(
          fmt::format("step {} submits a {}", frame_.name(), submitting.type));
    }
  }
  submitted_.clear();
  return Status();
}

void SubmittedRoots::abandon() {
  submitted_.clear();
  if (!frame_.commit.rare.is_made()) return;
  for (InsertCommit* insert : frame_.commit.rare->roots) {
    frame_.core.admission->withdraw(std::unique_ptr<InsertCommit>(insert));
  }
  frame_.commit.rare.edit().roots.clear();
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// SubmittedRoots: the independent procedures that one run of a step submits. They are kept as
// objects until the step is done; then adopt() has them admitted, in the step's batch. No other
// thread sees them before that batch is durable.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pv2/engine/procedure.h"
#include "pv2/engine/submit_options.h"

namespace pv2 {

struct StepFrame;

/// Owned by the worker that runs the step. adopt() is called once, after the last submit().
/// abandon() may be called at any time, also repeatedly. Both take the state mutex.
class SubmittedRoots {
 public:
  explicit SubmittedRoots(const StepFrame& frame) : frame_(frame) {}

  void submit(std::string type, std::unique_ptr<Procedure> object, SubmitOptions options);
  /// The number of objects that wait for adopt().
  [[nodiscard]] std::size_t size() const noexcept { return submitted_.size(); }

  /// Reserves ids, nonces and locks, and adds the rows to the step's batch. A nonce that is known
  /// inserts nothing. Calls user code. After a failure the caller abandons all the roots.
  Status adopt();
  /// The run does not end its step: takes back all that submit() and adopt() did.
  void abandon();

 private:
  struct Submitting {
    std::string type;
    std::unique_ptr<Procedure> object;
    SubmitOptions options;
  };

  const StepFrame& frame_;
  std::vector<Submitting> submitted_;
};

}  // namespace pv2

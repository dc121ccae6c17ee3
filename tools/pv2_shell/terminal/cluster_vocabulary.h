// SPDX-License-Identifier: Apache-2.0
//
// ClusterVocabulary: the names that a cluster has now, for completion. It asks the cluster each
// time, and not for long: without an answer there is nothing to complete.

#pragma once

#include <string>
#include <vector>

#include "session/shell.h"
#include "terminal/completion.h"

namespace pv2::shell {

/// Owned by the thread of the shell.
class ClusterVocabulary final : public Vocabulary {
 public:
  explicit ClusterVocabulary(Shell& shell) : shell_(shell) {}

  [[nodiscard]] std::vector<std::string> names(Takes takes) override;

 private:
  [[nodiscard]] std::vector<std::string> tables();
  [[nodiscard]] std::vector<std::string> regions();

  Shell& shell_;
};

}  // namespace pv2::shell

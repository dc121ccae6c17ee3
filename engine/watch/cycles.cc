// SPDX-License-Identifier: Apache-2.0
//
// A depth-first search, at most as deep as an explanation has procedures, which are few.

#include "watch/cycles.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pv2 {
namespace {

bool waits_for_others(const Explanation::Procedure& procedure) {
  return std::any_of(
      procedure.reasons.begin(), procedure.reasons.end(),
      [](const WaitReason& reason) { return !reason.on.empty() || reason.more != 0; });
}

class Cycles {
 public:
  explicit Cycles(Explanation& answer) : answer_(answer), marks_(answer.procedures.size()) {}

  void find() {
    for (std::size_t i = 0; i < marks_.size(); ++i) visit(i);
  }

 private:
  enum class Mark : std::uint8_t { kNew, kOnPath, kDone };

  void visit(std::size_t index) {
    if (marks_[index] != Mark::kNew) return;
    marks_[index] = Mark::kOnPath;
    path_.push_back(index);
    for (const WaitReason& reason : answer_.procedures[index].reasons) {
      for (const ProcedureId id : reason.on) {
        const Explanation::Procedure* const next = answer_.find(id);
        if (next == nullptr) continue;
        const auto at = static_cast<std::size_t>(next - answer_.procedures.data());
        if (marks_[at] == Mark::kOnPath) close(at);
        visit(at);
      }
    }
    path_.pop_back();
    marks_[index] = Mark::kDone;
  }

  void close(std::size_t start) {
    auto& cycle = answer_.cycles.emplace_back();
    for (auto at = std::find(path_.begin(), path_.end(), start); at != path_.end(); ++at) {
      cycle.push_back(answer_.procedures[*at].id);
    }
  }

  Explanation& answer_;
  std::vector<Mark> marks_;
  std::vector<std::size_t> path_;
};

}  // namespace

void find_cycles_and_causes(Explanation& explanation) {
  for (const Explanation::Procedure& procedure : explanation.procedures) {
    if (!waits_for_others(procedure)) explanation.root_causes.push_back(procedure.id);
  }
  Cycles(explanation).find();
}

}  // namespace pv2

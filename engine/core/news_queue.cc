// SPDX-License-Identifier: Apache-2.0
//
// What listeners are told of a procedure.

#include "core/news_queue.h"

#include <utility>

#include "model/execution.h"

namespace pv2 {

void NewsQueue::push(ProcedureNews::Kind kind, const Execution& execution, Status error) {
  if (queue_.size() >= ProcedureNews::kWaitingMax) {
    ++missed_;
    return;
  }
  ProcedureNews& news = queue_.emplace_back();
  news.missed = std::exchange(missed_, 0);
  news.kind = kind;
  news.id = execution.id;
  news.root = execution.root()->id;
  news.type = execution.name_of_type();
  // At the end of an undone tree each member counts as undone, whatever its own record says.
  const bool undone = execution.root()->record.state == ProcedureState::kRolledBack;
  news.state = undone ? ProcedureState::kRolledBack : execution.record.state;
  news.error = std::move(error);
}

std::vector<ProcedureNews> NewsQueue::take(std::size_t most) {
  std::vector<ProcedureNews> taken;
  for (; taken.size() < most && !queue_.empty(); queue_.pop_front()) {
    taken.push_back(std::move(queue_.front()));
  }
  return taken;
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// No thread answers a call, or calls the engine, under the mutex.

#include "remote_waits.h"

#include <fmt/format.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/procedure_executor.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "refusal.h"
#include "verb_messages.h"

namespace pv2 {

void RemoteWaits::add(ProcedureId id, std::shared_ptr<IncomingCall> call) {
  std::uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    number = ++last_number_;
    waiters_.emplace(number, Waiter{.id = id, .call = nullptr, .cancelled = {}});
  }
  // Before the call joins the others: from then on another thread may answer it.
  call->on_cancel([weak = weak_from_this(), number](const Status& why) {
    if (const auto self = weak.lock()) self->cancel(number, why);
  });
  Status cancelled;
  std::uint64_t begun = 0;
  {
    const MutexLock lock(mutex_);
    Waiter& waiter = waiters_.at(number);
    cancelled = waiter.cancelled;
    if (cancelled.ok()) {
      waiter.call = call;
      Crowd& crowd = crowds_[id];
      crowd.waiters.insert(number);
      // The last line, so that no crowd has a number that nobody begins.
      if (crowd.number == 0) crowd.number = begun = ++last_number_;
    } else {
      waiters_.erase(number);
    }
  }
  if (!cancelled.ok()) return call->refuse(cancelled);
  if (begun != 0) begin(id, begun);
}

// The answer may come before the ticket, and everybody may leave before it. If the engine throws (a
// store may, and memory may run out), the crowd ends, so that the next wait begins anew.
void RemoteWaits::begin(ProcedureId id, std::uint64_t crowd) {
  WaitTicket ticket;
  try {
    ticket = executor_.async().wait(
        id, [self = shared_from_this(), id, crowd](const Result<ProcedureResult>& result) {
          self->answer(id, crowd, result);
        });
  } catch (const std::exception& thrown) {
    return answer(
        id, crowd,
        Status(StatusCode::kUnavailable,
               fmt::format("a wait for procedure {} did not begin: {}", id.value, thrown.what())));
  } catch (...) {
    return answer(id, crowd,
                  Status(StatusCode::kUnavailable,
                         fmt::format("a wait for procedure {} did not begin", id.value)));
  }
  WaitTicket unused;
  {
    const MutexLock lock(mutex_);
    const auto found = crowds_.find(id);
    if (found == crowds_.end() || found->second.number != crowd) return;
    found->second.ticket = ticket;
    found->second.has_ticket = true;
    unused = end_if_empty(id);
  }
  (void)executor_.async().withdraw(unused);
}

void RemoteWaits::cancel(std::uint64_t number, const Status& why) {
  std::shared_ptr<IncomingCall> call;
  WaitTicket unused;
  {
    const MutexLock lock(mutex_);
    const auto found = waiters_.find(number);
    if (found == waiters_.end()) return;
    if (found->second.call == nullptr) {
      found->second.cancelled = why;
      return;
    }
    call = std::move(found->second.call);
    const ProcedureId id = found->second.id;
    waiters_.erase(found);
    crowds_.at(id).waiters.erase(number);
    unused = end_if_empty(id);
  }
  call->refuse(why);
  (void)executor_.async().withdraw(unused);
}

WaitTicket RemoteWaits::end_if_empty(ProcedureId id) {
  const auto found = crowds_.find(id);
  if (!found->second.waiters.empty() || !found->second.has_ticket) return {};
  const WaitTicket ticket = found->second.ticket;
  crowds_.erase(found);
  return ticket;
}

void RemoteWaits::answer(ProcedureId id, std::uint64_t crowd,
                         const Result<ProcedureResult>& result) {
  std::vector<std::shared_ptr<IncomingCall>> calls;
  {
    const MutexLock lock(mutex_);
    const auto found = crowds_.find(id);
    if (found == crowds_.end() || found->second.number != crowd) return;
    calls.reserve(found->second.waiters.size());  // may throw, and then nothing has changed
    for (const std::uint64_t number : found->second.waiters) {
      const auto waiter = waiters_.find(number);
      calls.push_back(std::move(waiter->second.call));
      waiters_.erase(waiter);
    }
    crowds_.erase(found);
  }
  Status failure = result.status();
  std::string body;
  if (failure.ok()) {
    body = remote::to_bytes(remote::ResultMessage{*result});
    if (body.size() > answer_bytes_max_) {
      failure = Status(StatusCode::kNotSupported,
                       fmt::format("the result of procedure {} takes {} bytes, and an answer at "
                                   "most {} (ExecutorServiceOptions::answer_bytes_max)",
                                   id.value, body.size(), answer_bytes_max_));
    }
  }
  for (const auto& call : calls) {
    failure.ok() ? call->reply(body) : refuse(executor_, *call, failure);
  }
}

std::size_t RemoteWaits::calls() const {
  const MutexLock lock(mutex_);
  return waiters_.size();
}

std::size_t RemoteWaits::procedures() const {
  const MutexLock lock(mutex_);
  return crowds_.size();
}

}  // namespace pv2

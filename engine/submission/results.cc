// SPDX-License-Identifier: Apache-2.0
//
// Where a question about an ended procedure is answered: from memory, from the store, or not at
// all.

#include "submission/results.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/early_wait.h"
#include "core/effects.h"
#include "core/publisher.h"
#include "core/state_lock.h"
#include "model/names.h"
#include "records/inbox_codec.h"
#include "submission/ended_procedure.h"
#include "submission/stored_result.h"
#include "submission/waiters.h"

namespace pv2 {
namespace {

// A nonce has left memory with its result. Submissions of it have to ask the store.
void note_evicted_nonce(EngineCore& core, const Completed& evicted) PV2_REQUIRES(core.state_mutex) {
  core.state.submissions.nonces.remove(evicted.nonce(), evicted.result.id);
  if (!core.keeps_records) return;
  core.state.submissions.store_knows_more_nonces = true;
  ++core.state.submissions.nonces_on_disk_only;
}

// Results beyond the limits leave memory, oldest first. The store still has them, unless it keeps
// none. A large result may displace many small ones; those beyond kAtOnce leave when later results
// come.
void evict_old_results(EngineCore& core) PV2_REQUIRES(core.state_mutex) {
  constexpr int kAtOnce = 16;
  for (int i = 0; i < kAtOnce; ++i) {
    const auto evicted = core.state.submissions.completed.take_surplus();
    if (!evicted) return;
    if (evicted->nonce()) note_evicted_nonce(core, *evicted);
    if (!core.keeps_records) {
      core.state.submissions.retention.gone(evicted->result.id, evicted->ended_age, evicted->bytes);
    }
    ++core.state.submissions.evictions;
  }
}

}  // namespace

void tell_result(EngineCore& core, Execution& root, Effects& effects) {
  ProcedureResult result = result_of(root);
  answer_waiters(core, root, result, effects);
  if (root.is_given_away) {
    core.state.submissions.nonces.remove(root.nonce(), root.id);
    root.nonce_use = {};
    return;
  }
  PV2_ASSERT(root.record.ended_age != Progress::kNotDated, "the end of a root is dated");
  const std::size_t bytes = bytes_of_rows(root);
  core.state.submissions.completed.add(Completed{.result = std::move(result),
                                                 .nonce_use = std::move(root.nonce_use),
                                                 .audited = root.audited,
                                                 .in_place = !root.record.in_results,
                                                 .ended_age = root.record.ended_age,
                                                 .bytes = bytes});
  core.state.submissions.retention.kept(root.id, root.record.ended_age, bytes);
  evict_old_results(core);
}

std::uint64_t Results::wait(ProcedureId id, Reply<Result<ProcedureResult>> reply) {
  Source source;
  {
    StateLock lock(core_, Width::kNarrow);
    source = look_up(id);
    const bool is_early =
        !source.answer && source.live == nullptr && core_.loading.state() == Loading::State::kReads;
    if (source.live != nullptr || is_early) {
      Waiter waiter{std::move(reply), ++core_.state.last_ticket};
      const std::uint64_t ticket = waiter.ticket;
      if (is_early) {
        core_.state.early_waits.push_back({id, std::move(waiter)});
      } else {
        source.live->waiters.add(std::move(waiter));
      }
      return ticket;
    }
  }
  if (!source.answer) {
    auto stored = read_stored(id);
    source.answer.emplace(stored.ok() ? Result<ProcedureResult>(std::move(stored->result))
                                      : Result<ProcedureResult>(stored.status()));
  }
  Effects effects;
  effects.reply(std::move(reply), *std::move(source.answer));
  publisher_.perform(effects);
  return 0;
}

// In the order in which they came. A wait that was handled stays in the list without its reply
// until all were handled, because withdraw() searches the list by ticket.
void Results::admit_early_waits() {
  std::size_t handled = 0;
  for (bool more = true; more;) {
    Effects effects;
    {
      StateLock lock(core_, Width::kNarrow);
      auto& early = core_.state.early_waits;
      const std::size_t end = std::min(early.size(), handled + kLoadSection);
      for (; handled < end; ++handled) admit(early[handled], effects);
      more = handled < early.size();
      if (!more) early.clear();
    }
    publisher_.perform(effects);
  }
}

void Results::admit(EarlyWait& wait, Effects& effects) {
  auto reply = std::exchange(wait.waiter.reply, {});
  if (!reply) return;  // it was withdrawn
  Source source = look_up(wait.id);
  if (source.live != nullptr) {
    source.live->waiters.add({std::move(reply), wait.waiter.ticket});
  } else if (source.answer) {
    effects.reply(std::move(reply), *std::move(source.answer));
  } else {
    effects.answers.push_back([this, id = wait.id, reply = std::move(reply)]() mutable {
      this->wait(id, std::move(reply));  // reads the store
    });
  }
}

Reply<Result<ProcedureResult>> Results::forgetting(Reply<Result<ProcedureResult>> reply,
                                                   const Nonce& nonce) {
  if (reply.on == ReplyOn::kWaitingCaller) return reply;
  // Both end the process if there is no memory to forget with.
  if (nonce) {
    // NOLINTNEXTLINE(bugprone-exception-escape)
    auto tell_and_forget = [this,
                            tell = std::move(reply.tell)](Result<ProcedureResult> result) noexcept {
      const std::optional<ProcedureId> id = result.ok() ? std::optional(result->id) : std::nullopt;
      call_back(tell, std::move(result));  // the result goes, whatever this throws
      if (id) acknowledge_told(*id);
    };
    return {.tell = std::move(tell_and_forget), .on = reply.on};
  }
  // On the thread that publishes the end: the pool may be served after a stop has closed the store.
  const bool on_pool = reply.on == ReplyOn::kPool;
  // NOLINTNEXTLINE(bugprone-exception-escape)
  auto forget_and_tell = [this, on_pool, tell = std::move(reply.tell)](
                             Result<ProcedureResult> result) mutable noexcept {
    if (result.ok()) acknowledge_told(result->id);
    if (!on_pool) return call_back(tell, std::move(result));
    core_.pool->post([tell = std::move(tell), result = std::move(result)]() mutable {
      call_back(tell, std::move(result));
    });
  };
  return {.tell = std::move(forget_and_tell), .on = on_pool ? ReplyOn::kHere : reply.on};
}

Results::Source Results::look_up(ProcedureId id) {
  const Completed* const completed = core_.state.submissions.completed.find(id);
  if (completed != nullptr) return {.answer = completed->result};
  Execution* const live = core_.find(id);
  if (live != nullptr && !live->is_root()) {
    return {.answer = Status(
                StatusCode::kInvalidArgument,
                name_of(id) + " is a child; wait for its root, " + name_of(live->root()->id))};
  }
  if (live != nullptr) {
    Status why_not = core_.unavailable();
    if (why_not.ok()) why_not = why_set_aside(core_, id);
    if (!why_not.ok()) return {.answer = std::move(why_not)};
    return {.live = live};
  }
  if (!core_.state.ids.was_issued(id)) return {.answer = never_issued(id)};
  if (!core_.keeps_records) return {.answer = forgotten(id)};
  if (core_.loading.was_given_up()) return {.answer = core_.why_not_loaded()};
  return {};
}

bool Results::withdraw(ProcedureId id, std::uint64_t ticket) {
  // It is destroyed without the mutex, because the callback is the caller's.
  std::optional<Reply<Result<ProcedureResult>>> withdrawn;
  StateLock lock(core_, Width::kNarrow);
  auto& early = core_.state.early_waits;  // in the order of their tickets
  const auto found = std::lower_bound(
      early.begin(), early.end(), ticket,
      [](const EarlyWait& wait, std::uint64_t wanted) { return wait.waiter.ticket < wanted; });
  if (found != early.end() && found->waiter.ticket == ticket && found->waiter.reply) {
    withdrawn = std::exchange(found->waiter.reply, {});
    return true;
  }
  Execution* const live = core_.find(id);
  if (live == nullptr) return false;
  withdrawn = live->waiters.withdraw(ticket);
  return withdrawn.has_value();
}

Status Results::why_not_live(ProcedureId id) {
  const Status ended(StatusCode::kFailedPrecondition, name_of(id) + " has ended already");
  {
    StateLock lock(core_);
    if (core_.state.submissions.completed.contains(id)) return ended;
    if (!core_.state.ids.was_issued(id)) return never_issued(id);
    if (!core_.keeps_records) return forgotten(id);
    if (Status status = core_.why_not_loaded(); !status.ok()) return status;
  }
  const auto stored = read_stored(id);
  return stored.ok() ? ended : stored.status();
}

void Results::answer_all(const Status& status) {
  Effects effects;
  {
    StateLock lock(core_);
    for (Execution& execution : core_.state.live) {
      answer_waiters(core_, execution, status, effects);
    }
    answer_early_waits(core_, status, effects);
    for (auto& [root, garbage] : core_.state.garbage.pending) {
      for (Reply<Status>& each : garbage.acknowledgements) effects.reply(std::move(each), status);
      garbage.acknowledgements.clear();
    }
  }
  publisher_.perform(effects);
}

}  // namespace pv2

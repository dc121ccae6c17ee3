// SPDX-License-Identifier: Apache-2.0
//
// Read submit() first: it encodes and checks without a lock. Then reserve(): judge, ask the store
// if the judgement depends on it, act, and write the first record.

#include "submission/admission.h"

#include <string>
#include <utility>

#include "core/effects.h"
#include "core/state_lock.h"
#include "model/check_limits.h"
#include "model/names.h"
#include "pv2/engine/executor_options.h"
#include "records/nonce_record.h"
#include "records/object_codec.h"
#include "records/procedure_rows.h"
#include "records/row_keys.h"
#include "submission/ended_procedure.h"
#include "submission/results.h"
#include "submission/waiters.h"

namespace pv2 {
namespace {

std::string words(const Nonce& nonce) {
  return "nonce " + std::to_string(nonce.group) + "/" + std::to_string(nonce.value);
}

}  // namespace

// A submission that a callback on one of the engine's threads has made. Its thread judges it after
// the callback has returned. The submissions of many callbacks share one critical section.
struct Admission::InCallback final : EngineRequest, Recycled {
  InCallback(Admission& by, Candidate what, Submitter who)
      : admission(by), candidate(std::move(what)), submitter(std::move(who)) {}

  // `core` is that of the admission.
  void published(EngineCore& /*core*/, Effects& effects) override PV2_NO_THREAD_SAFETY_ANALYSIS {
    admission.admit_in_section(std::unique_ptr<InCallback>(this), effects);
  }
  // Its status is always OK: it was never sent to the store.
  void failed(EngineCore& /*core*/, const RequestFailure& /*why*/, Effects& /*effects*/) override {
    PV2_ASSERT(false, "a submission that is not judged yet has no record that could fail");
  }
  [[nodiscard]] bool is_narrow() const noexcept override { return true; }

  Admission& admission;
  Candidate candidate;
  Submitter submitter;
};

void Admission::submit(std::string_view type, std::unique_ptr<Procedure> procedure,
                       SubmitOptions options, Submitter submitter) {
  Effects effects;
  Result<Candidate> candidate = make_candidate(core_, type, std::move(procedure), options);
  if (!candidate.ok()) {
    refuse(submitter, candidate.status(), effects);
    return publisher_.perform(effects);  // nothing has changed
  }
  if (!core_.keeps_records && publisher_.is_in_callback()) {
    CommitList request;
    request.push_back(*new InCallback(*this, *std::move(candidate), std::move(submitter)));
    return publisher_.publish_after_callback(std::move(request));
  }
  effects.caller_writes = submitter.reply.on == ReplyOn::kWaitingCaller ||
                          submitter.taker.on == ReplyOn::kWaitingCaller;
  auto commit = reserve(*candidate, std::move(submitter), effects);
  if (commit) effects.commits.push_back(*commit.release());
  publisher_.perform(effects);
}

void Admission::admit_in_section(std::unique_ptr<InCallback> request, Effects& effects) {
  Candidate& candidate = request->candidate;
  const Verdict verdict = judge(candidate, nullptr, {});
  PV2_ASSERT(verdict.kind != Verdict::Kind::kAskStore,
             "a store that keeps no records knows no nonces");
  auto commit = act(verdict, candidate, std::move(request->submitter), effects);
  if (commit != nullptr) {
    const Execution& root = *candidate.execution.release();  // the table of live executions owns it
    commit->holds_locks = root.locks().empty();
    // A delayed root asks for its locks when its time has come.
    const bool asks = !commit->holds_locks && !root.record.deadline;
    (asks ? effects.entered : effects.commits).push_back(*commit.release());
  }
  // The user's object is destroyed without the mutex.
  if (candidate.procedure) effects.answers.emplace_back([request = std::move(request)] {});
}

void Admission::submit_encoded(std::string_view type, std::string_view arguments,
                               SubmitOptions options, Submitter submitter) {
  Result<std::unique_ptr<Procedure>> procedure = decode_new(core_, type, arguments);
  if (procedure.ok()) {
    return submit(type, *std::move(procedure), std::move(options), std::move(submitter));
  }
  Effects effects;
  refuse(submitter, procedure.status(), effects);
  publisher_.perform(effects);
}

void Admission::find(const Nonce& nonce, Reply<Result<Submitted>> reply) {
  publisher_.publish_kept();  // what this thread has submitted in a callback is found
  Effects effects;
  FromStore from_store;
  for (;;) {
    std::uint64_t evictions = 0;
    {
      StateLock lock(core_, Width::kNarrow);
      const Verdict verdict = look_up(nonce, from_store);
      if (verdict.kind == Verdict::Kind::kJoins) {
        verdict.pending->submitters.push_back({.reply = std::move(reply), .replayed = true});
        return;
      }
      if (verdict.kind != Verdict::Kind::kAskStore) {
        const bool known = verdict.kind == Verdict::Kind::kReplayed;
        effects.reply(std::move(reply), known ? Result<Submitted>({verdict.original, true})
                                              : Result<Submitted>(verdict.refusal));
        break;
      }
      evictions = core_.state.submissions.evictions;
    }
    from_store = ask_store(nonce, evictions);
  }
  publisher_.perform(effects);
}

std::unique_ptr<InsertCommit> Admission::reserve_for_step(std::string_view type,
                                                          std::unique_ptr<Procedure> procedure,
                                                          SubmitOptions options,
                                                          Submitter submitter) {
  Effects effects;
  std::unique_ptr<InsertCommit> commit;
  Result<Candidate> candidate = make_candidate(core_, type, std::move(procedure), options);
  if (candidate.ok()) {
    commit = reserve(*candidate, std::move(submitter), effects);
  } else {
    refuse(submitter, candidate.status(), effects);
  }
  publisher_.perform(effects);
  return commit;
}

// Without memory the process ends: half withdrawn, the nonce would lead to what is gone.
void Admission::withdraw(std::unique_ptr<InsertCommit> commit, Withdrawal why) noexcept {
  const bool by_step = why == Withdrawal::kByStep;
  const std::string who = by_step ? "the step" : "the call";
  const std::string end = by_step ? " did not come to its end" : " has found no memory";
  const std::unique_ptr<Execution> execution(commit->execution);
  PV2_ASSERT(execution->inserting == commit.get(),
             "a submission that is withdrawn has its insert pending");
  Effects effects;
  {
    StateLock lock(core_);
    PV2_ASSERT(execution->phase == Phase::kInserting, "a durable procedure is not withdrawn");
    core_.settle(*execution, Disposition::kComplete);
    core_.state.live.erase(execution->id);
    core_.state.submissions.nonces.remove(execution->nonce(), execution->id);
    answer_waiters(
        core_, *execution,
        Status(StatusCode::kNotFound, who + " that was submitting " + name_of(execution->id) + end),
        effects);
    for (const InsertCommit::PutOff& step : commit->put_off) core_.wake(step.id, step.epoch);
  }
  if (!by_step) commit->submitters.erase(commit->submitters.begin());
  for (Submitter& submitter : commit->submitters) {
    refuse(submitter,
           Status(StatusCode::kUnavailable,
                  who + " that was submitting the same nonce" + end + "; try again"),
           effects);
  }
  publisher_.perform(effects);
}

std::unique_ptr<InsertCommit> Admission::reserve(Candidate& candidate, Submitter submitter,
                                                 Effects& effects) {
  const bool is_encoded = core_.keeps_records || submitter.step != nullptr;
  std::unique_ptr<InsertCommit> commit;
  FromStore from_store;
  for (;;) {
    std::uint64_t evictions = 0;
    {
      StateLock lock(core_, Width::kNarrow);
      const Verdict verdict = judge(candidate, submitter.step, from_store);
      if (verdict.kind != Verdict::Kind::kAskStore) {
        commit = act(verdict, candidate, std::move(submitter), effects);
        break;
      }
      evictions = core_.state.submissions.evictions;
    }
    from_store = ask_store(candidate.nonce(), evictions);
    if (candidate.expires_at) candidate.now = earliest_now(core_);  // the store may have been slow
  }
  if (commit == nullptr) return nullptr;
  Execution& execution = *candidate.execution.release();  // the table of live executions owns it
  try {
    if (execution.nonce() && !from_store.was_asked) {
      check_unknown(execution.nonce(), execution.id);
    }
    fill(execution, *commit, is_encoded);
  } catch (...) {  // there is no memory: the caller is told by the exception, those who joined are
    withdraw(std::move(commit), Withdrawal::kByException);
    throw;
  }
  return commit;
}

Admission::Verdict Admission::judge(const Candidate& candidate, const Execution* step,
                                    const FromStore& from_store) {
  using Kind = Verdict::Kind;
  if (!from_store.failure.ok()) return {.kind = Kind::kRefused, .refusal = from_store.failure};
  // What the store has after its failure need not be durable.
  const Status& failed = core_.state.life.store_failure;
  if (!failed.ok()) return {.kind = Kind::kRefused, .refusal = failed};
  if (from_store.entry) return judge_duplicate(candidate, *from_store.entry, step);
  const bool by_caller = step == nullptr;
  if (by_caller) {
    Status stopped = core_.unavailable();
    if (stopped.code() == StatusCode::kStopping) {
      stopped = stopped.with_context("this call has started nothing");
    }
    if (!stopped.ok()) return {.kind = Kind::kRefused, .refusal = std::move(stopped)};
  }
  if (candidate.nonce()) {
    const auto known = core_.state.submissions.nonces.find(candidate.nonce());
    if (known) return judge_duplicate(candidate, *known, step);
    // The store has answered for good if no nonce has left memory since it was asked.
    const bool is_answered =
        from_store.was_asked && from_store.evictions == core_.state.submissions.evictions;
    if (core_.state.submissions.store_knows_more_nonces && !is_answered)
      return {.kind = Kind::kAskStore};
  }
  Status refusal = check_new(candidate, by_caller);
  if (!refusal.ok()) return {.kind = Kind::kRefused, .refusal = std::move(refusal)};
  return {.kind = Kind::kFresh};
}

Admission::Verdict Admission::judge_duplicate(const Candidate& candidate, const KnownNonce& entry,
                                              const Execution* step) {
  using Kind = Verdict::Kind;
  const Execution* const live = core_.find(entry.id);
  InsertCommit* const pending = live != nullptr ? live->inserting : nullptr;
  PV2_ASSERT(pending == nullptr || !pending->submitters.empty(),
             "a pending insert has a submitter");
  // The record of a step must neither become durable before the insert of another submitter nor
  // fail because of it, and that insert may still be withdrawn.
  if (pending != nullptr && step != nullptr && step != pending->submitters.front().step) {
    return {.kind = Kind::kPutOff,
            .refusal = Status(StatusCode::kUnavailable,
                              words(candidate.nonce()) +
                                  " is just being submitted by another caller or step; try again"),
            .pending = pending};
  }
  if (!candidate.fingerprints.match(entry.fingerprint)) {
    return {.kind = Kind::kRefused,
            .refusal = Status(StatusCode::kKeyReused,
                              words(candidate.nonce()) +
                                  " was used before for something else; nothing was started. Use "
                                  "a new nonce")};
  }
  if (pending != nullptr) return {.kind = Kind::kJoins, .pending = pending};
  return {.kind = Kind::kReplayed, .original = entry.id};
}

Admission::Verdict Admission::look_up(const Nonce& nonce, const FromStore& from_store) {
  using Kind = Verdict::Kind;
  const auto refused = [](Status why) {
    return Verdict{.kind = Kind::kRefused, .refusal = std::move(why)};
  };
  if (!nonce) return refused(Status(StatusCode::kInvalidArgument, "a nonce has a value above 0"));
  if (!from_store.failure.ok()) return refused(from_store.failure);
  if (Status failed = core_.state.life.store_failure; !failed.ok()) return refused(failed);
  if (from_store.entry) return {.kind = Kind::kReplayed, .original = from_store.entry->id};
  if (Status stopped = core_.unavailable(); !stopped.ok()) return refused(std::move(stopped));
  if (const auto known = core_.state.submissions.nonces.find(nonce)) {
    const Execution* const live = core_.find(known->id);
    if (live == nullptr || live->inserting == nullptr) {
      return {.kind = Kind::kReplayed, .original = known->id};
    }
    return {.kind = Kind::kJoins, .pending = live->inserting};
  }
  const bool is_answered =
      from_store.was_asked && from_store.evictions == core_.state.submissions.evictions;
  if (core_.state.submissions.store_knows_more_nonces && !is_answered) {
    return {.kind = Kind::kAskStore};
  }
  return refused(Status(StatusCode::kNotFound,
                        words(nonce) + " is not known: nothing was submitted with it, or it is "
                                       "forgotten"));
}

// OK, or why nothing new is accepted.
Status Admission::check_new(const Candidate& candidate, bool by_caller) const {
  if (candidate.expires_at && *candidate.expires_at <= candidate.now) {
    return Status(StatusCode::kExpired,
                  words(candidate.nonce()) +
                      " is not known, and its submission was to be sent before now (expires_at): "
                      "it may have been done and forgotten. Nothing was started");
  }
  if (!by_caller) return Status();
  if (core_.state.live.size() >= core_.options.max_live_procedures) {
    return Status(StatusCode::kResourceExhausted,
                  std::to_string(core_.state.live.size()) +
                      " procedures are live, which is the limit (max_live_procedures); try again "
                      "later");
  }
  if (!candidate.nonce()) return Status();
  return core_.state.submissions.retention.why_full(core_.state.submissions.nonces.size() +
                                                    core_.state.submissions.nonces_on_disk_only);
}

Admission::FromStore Admission::ask_store(const Nonce& nonce, std::uint64_t evictions) const {
  FromStore answer{.was_asked = true, .evictions = evictions};
  const auto row = core_.store.get(Space::kNonce, nonce_key(nonce));
  if (row.ok() && !*row) return answer;
  Status failure = row.status();
  if (row.ok()) {
    const auto record = decode_nonce_record(**row);
    if (record.ok()) {
      answer.entry = KnownNonce{record->id, record->fingerprint};
      return answer;
    }
    failure = record.status();
  }
  answer.failure = failure.with_context("looking for a nonce in " + core_.store.name());
  return answer;
}

std::unique_ptr<InsertCommit> Admission::act(const Verdict& verdict, Candidate& candidate,
                                             Submitter submitter, Effects& effects) {
  switch (verdict.kind) {
    case Verdict::Kind::kFresh:
      return enter(candidate, std::move(submitter), effects);
    case Verdict::Kind::kRefused:
      refuse(submitter, verdict.refusal, effects);
      return nullptr;
    case Verdict::Kind::kReplayed:
      if (submitter.taker) {
        take(verdict.original, candidate.nonce(), std::move(submitter.taker), effects);
      } else {
        effects.reply(std::move(submitter.reply), Submitted{verdict.original, true});
      }
      return nullptr;
    case Verdict::Kind::kJoins:
      submitter.replayed = true;
      if (submitter.taker) {
        submitter.taker = results_.forgetting(std::move(submitter.taker), candidate.nonce());
      }
      verdict.pending->submitters.push_back(std::move(submitter));
      return nullptr;
    case Verdict::Kind::kPutOff:
      verdict.pending->put_off.push_back({submitter.step->id, submitter.step->wait.epoch});
      effects.reply(std::move(submitter.reply), verdict.refusal);
      return nullptr;
    case Verdict::Kind::kAskStore:
      break;
  }
  PV2_ASSERT(false, "the store was asked before act() is called");
  return nullptr;
}

// `taker` is told the result of the root `id`, which `nonce` names and which is durable. A result
// in memory is taken in this section, before another caller can have it deleted.
void Admission::take(ProcedureId id, const Nonce& nonce, Reply<Result<ProcedureResult>> taker,
                     Effects& effects) {
  taker = results_.forgetting(std::move(taker), nonce);
  Execution* const live = core_.find(id);
  if (Status aside = why_set_aside(core_, id); !aside.ok()) {
    effects.reply(std::move(taker), std::move(aside));
  } else if (live != nullptr && core_.unavailable().ok()) {
    live->waiters.add({std::move(taker), ++core_.state.last_ticket});
  } else if (live != nullptr) {  // the stop came while the store was asked for the nonce
    effects.reply(std::move(taker), goes_on_in_next_life());
  } else if (const Completed* const completed = core_.state.submissions.completed.find(id)) {
    effects.reply(std::move(taker), completed->result);
  } else {
    effects.answers.push_back([this, id, taker = std::move(taker)]() mutable {
      results_.wait(id, std::move(taker));  // reads the store
    });
  }
}

// Puts a new procedure in the tables; its insert is the caller's to send. Takes the user's object,
// unless the start is delayed: then an object is made when the procedure runs.
std::unique_ptr<InsertCommit> Admission::enter(Candidate& candidate, Submitter submitter,
                                               Effects& effects) {
  const auto id = core_.state.ids.allocate(1);
  if (!id.ok()) {
    refuse(submitter, id.status(), effects);
    return nullptr;
  }
  Execution& execution = *candidate.execution;
  execution.id = *id;
  if (!execution.record.deadline) execution.object = std::move(candidate.procedure);
  std::unique_ptr<InsertCommit> commit = core_.state.spares.inserts.take(core_.seat());
  PV2_ASSERT(commit->submitters.empty() && commit->put_off.empty(),
             "a spare request has no submitters");
  commit->execution = &execution;
  if (submitter.taker) {
    // Without records nobody can ask for the result after the end, so it is not even kept.
    execution.is_given_away = !core_.keeps_records;
    if (core_.keeps_records) {
      submitter.taker = results_.forgetting(std::move(submitter.taker), execution.nonce());
    }
  }
  commit->submitters.push_back(std::move(submitter));
  execution.inserting = commit.get();
  NonceTable& nonces = core_.state.submissions.nonces;
  if (execution.nonce()) {
    const bool is_new = nonces.add(execution.id, *execution.nonce_use);
    PV2_ASSERT(is_new, "a nonce that is known is not taken for new");
  }
  try {
    core_.state.live.emplace(execution.id, &execution);
  } catch (...) {  // there is no memory
    nonces.remove(execution.nonce(), execution.id);
    throw;
  }
  return commit;
}

// If a nonce that the store knows were taken for new, its work would be done twice. So the store is
// asked, now and then, about a nonce that was taken for new without asking it: often in a young
// store, and later seldom. A read may have to index first what the log has: that takes up to 0.2 s,
// so the pool waits for it and not the caller. By then the store may have the row of this
// submission, or of a later one if its result was acknowledged.
void Admission::check_unknown(const Nonce& nonce, ProcedureId id) const {
  constexpr std::uint64_t kYoung = 65'536;
  const std::uint64_t one_in = id.value < kYoung ? 64 : 16'384;
  if (id.value % one_in != 0) return;
  core_.pool->post_blocking([this, nonce, id] {
    const auto row = core_.store.get(Space::kNonce, nonce_key(nonce));
    if (!row.ok() || !*row) return;
    const auto known = decode_nonce_record(**row);
    PV2_ASSERT(!known.ok() || known->id >= id,
               "a nonce that is taken for new has no older row in the store");
  });
}

// Writes the first record into the batch of `commit`, if it is encoded: if the store keeps records,
// or a step submits the procedure, as its rows count for the size of the step's record.
void Admission::fill(Execution& execution, InsertCommit& commit, bool is_encoded) {
  PV2_ASSERT(execution.inserting == &commit, "a procedure that is inserted knows its first record");
  PV2_ASSERT(execution.is_root() && execution.is_head(), "a submitted procedure is a root");
  const Record& record = execution.record;
  Transition first;
  first.begin(record, execution.submitted);
  if (record.deadline) {  // it asks for its locks when its time has come
    first.state = ProcedureState::kWaitingTimeout;
    first.deadline = record.deadline;
    first.patience = record.patience;
    commit.holds_locks = first.holds_locks = execution.locks().empty();
  } else {
    first.state = ProcedureState::kRunnable;
    // Until the store is loaded, the locks are for those that held them before.
    commit.holds_locks = first.holds_locks =
        core_.loading.is_complete() ? core_.scheduler.admit(execution) : execution.locks().empty();
  }
  if (!is_encoded) return;
  RowBatch& batch = commit.batch;
  batch.reserve(1024);  // a header and a state of ordinary size
  insert_rows(execution, first, batch);
  if (execution.nonce()) {
    batch.insert_with(Space::kNonce, nonce_key(execution.nonce()), [&](std::string& out) {
      encode_nonce_record({execution.id, execution.fingerprint()}, out);
    });
  }
}

}  // namespace pv2

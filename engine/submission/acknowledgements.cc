// SPDX-License-Identifier: Apache-2.0
//
// Read acknowledge() first: judge and act in one critical section, collect the keys without a lock,
// send one batch.

#include "submission/acknowledgements.h"

#include <algorithm>
#include <utility>

#include "core/effects.h"
#include "core/publisher.h"
#include "core/state_lock.h"
#include "model/names.h"
#include "records/audit_row.h"
#include "records/inbox_codec.h"
#include "records/kept_result.h"
#include "records/row_keys.h"
#include "submission/ended_procedure.h"
#include "submission/stored_result.h"

namespace pv2 {
namespace {

// Audit entries and copies that are deleted together with a result.
constexpr std::size_t kAuditsAtOnce = 1024;
// Other keys in that batch: at most two of the result, its date and its nonce.
constexpr std::size_t kOtherKeys = 4;

// Adds the keys of the audit row `row` and of those that point to it: with the procedure that the
// entry is about, and with the one that the order named.
void add_audit(const StoredRow& row, ProcedureId root, std::vector<std::string>& keys) {
  keys.emplace_back(row.key);
  const auto place = decode_audit_place(row.value);
  const auto key = parse_procedure_key(row.key);
  if (!place.ok() || !key) return;
  const ProcedureId about = place->procedure;
  if (about != root) keys.push_back(audit_key(about, key->number));
  const ProcedureId named = place->named;
  if (named && named != root && named != about) keys.push_back(audit_key(named, key->number));
}

// The keys of all audit rows of the tree of `root`, copies included.
Result<std::vector<std::string>> find_audits(ProcedureStore& store, ProcedureId root) {
  std::vector<std::string> keys;
  const Status status = store.scan(Space::kProcedure, procedure_key(root, RowKind::kAudit),
                                   [&](const StoredRow& row) {
                                     add_audit(row, root, keys);
                                     return Status();
                                   });
  if (!status.ok()) return status;
  return keys;
}

}  // namespace

// An acknowledgement that a callback on one of the engine's threads has made. Its thread judges it
// after the callback has returned. The acknowledgements of many callbacks share one critical
// section. The store keeps no records, so there are no rows to delete.
struct Acknowledgements::InCallback final : EngineRequest, Recycled {
  InCallback(Acknowledgements& by, ProcedureId what, Reply<Status> told)
      : acknowledgements(by), id(what), reply(std::move(told)) {}

  // `core` is that of the acknowledgements.
  void published(EngineCore& /*core*/, Effects& effects) override PV2_NO_THREAD_SAFETY_ANALYSIS {
    const std::unique_ptr<InCallback> owned(this);
    acknowledgements.acknowledge_in_section(*this, effects);
  }
  // Its status is always OK: it was never sent to the store.
  void failed(EngineCore& /*core*/, const RequestFailure& /*why*/, Effects& /*effects*/) override {
    PV2_ASSERT(false, "an acknowledgement that is not judged yet has no rows that could fail");
  }
  [[nodiscard]] bool is_narrow() const noexcept override { return true; }

  Acknowledgements& acknowledgements;
  ProcedureId id;
  Reply<Status> reply;
};

void Acknowledgements::acknowledge_in_section(InCallback& request, Effects& effects) {
  const Verdict verdict = judge(request.id, nullptr);
  auto commit = act(verdict, request.id, std::move(request.reply), nullptr, effects);
  if (commit != nullptr) commit.release()->published(core_, effects);
}

void Acknowledgements::acknowledge(ProcedureId id, Reply<Status> reply) {
  core_.loading.when_over(std::move(reply), [this, id](Reply<Status> later) {
    acknowledge(id, std::move(later), nullptr);
  });
}

void Acknowledgements::acknowledge(ProcedureId id, Reply<Status> reply, const KeptResult* kept) {
  if (kept == nullptr && !core_.keeps_records && publisher_.is_in_callback()) {
    CommitList request;
    request.push_back(*new InCallback(*this, id, std::move(reply)));
    return publisher_.publish_after_callback(std::move(request));
  }
  Effects effects;
  effects.caller_writes = reply.on == ReplyOn::kWaitingCaller;
  std::unique_ptr<AcknowledgeCommit> commit;
  Rows rows;
  {
    StateLock lock(core_, Width::kNarrow);
    const Verdict verdict = judge(id, kept);
    commit = act(verdict, id, std::move(reply), kept, effects);
    if (const Completed* const completed = verdict.completed; completed != nullptr) {
      rows = {.is_known = true, .audited = completed->audited, .in_place = completed->in_place};
    }
  }
  if (commit == nullptr) return publisher_.perform(effects);
  if (core_.keeps_records) commit->batch.reserve(192);  // three keys
  Result<Keys> audits = erase_rows(*commit, rows, kept);
  if (!audits.ok()) return give_up(*commit, audits.status(), kept);
  const std::size_t at_once = std::min(core_.store_limits.batch_operations, kAuditsAtOnce);
  if (audits->size() + kOtherKeys > at_once) commit->later = std::exchange(*audits, {});
  for (const std::string& key : *audits) commit->batch.erase(Space::kProcedure, key);
  if (core_.keeps_records) {
    if (commit->nonce) commit->batch.erase(Space::kNonce, nonce_key(commit->nonce));
    if (commit->age != Progress::kNotDated) {
      commit->batch.erase(Space::kEngine, kept_key(commit->age, id));
    }
  }
  effects.commits.push_back(*commit.release());
  publisher_.perform(effects);
}

Acknowledgements::Verdict Acknowledgements::judge(ProcedureId id, const KeptResult* kept) {
  using Kind = Verdict::Kind;
  const auto refused = [](Status why) {
    return Verdict{.kind = Kind::kRefused, .refusal = std::move(why)};
  };
  if (Status stopped = core_.unavailable(); !stopped.ok()) return refused(std::move(stopped));
  const Completed* const completed = core_.state.submissions.completed.find(id);
  const bool is_other =
      kept != nullptr && completed != nullptr && completed->ended_age != kept->age;
  if (is_other) return {.kind = Kind::kStale};
  const auto pending = core_.state.submissions.acknowledging.find(id);
  if (pending != core_.state.submissions.acknowledging.end()) {
    return {.kind = Kind::kJoins, .pending = pending->second};
  }
  if (core_.find(id) != nullptr) {
    if (Status aside = why_set_aside(core_, id); !aside.ok()) return refused(std::move(aside));
    if (kept != nullptr) return {.kind = Kind::kStale};
    return refused(Status(StatusCode::kFailedPrecondition,
                          name_of(id) + " still goes on; only a result can be acknowledged"));
  }
  const auto garbage = core_.state.garbage.pending.find(id);
  if (garbage != core_.state.garbage.pending.end()) {
    return {.kind = Kind::kWaits, .garbage = &garbage->second};
  }
  if (!core_.state.ids.was_issued(id)) {
    if (kept != nullptr) return {.kind = Kind::kStale};
    return refused(never_issued(id));
  }
  if (completed == nullptr && !core_.keeps_records) return refused(forgotten(id));
  return {.kind = Kind::kFresh, .completed = completed};
}

std::unique_ptr<AcknowledgeCommit> Acknowledgements::act(const Verdict& verdict, ProcedureId id,
                                                         Reply<Status> reply,
                                                         const KeptResult* kept, Effects& effects) {
  switch (verdict.kind) {
    case Verdict::Kind::kJoins:
      verdict.pending->replies.push_back(std::move(reply));
      break;
    case Verdict::Kind::kWaits:
      verdict.garbage->acknowledgements.push_back(once_deleted(id, std::move(reply)));
      break;
    case Verdict::Kind::kRefused:
      effects.reply(std::move(reply), verdict.refusal);
      break;
    case Verdict::Kind::kStale:
      delete_date(*kept, effects);
      effects.reply(std::move(reply), Status());
      break;
    case Verdict::Kind::kFresh:
      return begin(id, verdict.completed, std::move(reply));
  }
  return nullptr;
}

std::unique_ptr<AcknowledgeCommit> Acknowledgements::begin(ProcedureId id,
                                                           const Completed* completed,
                                                           Reply<Status> reply) {
  std::unique_ptr<AcknowledgeCommit> commit = core_.state.spares.acknowledges.take(core_.seat());
  commit->id = id;
  if (completed != nullptr) {
    commit->nonce = completed->nonce();
    commit->age = completed->ended_age;
    commit->bytes = completed->bytes;
  }
  commit->replies.push_back(std::move(reply));
  core_.state.submissions.acknowledging.emplace(id, commit.get());
  return commit;
}

// Acknowledges again when the rows are deleted that had to go first. That happens on the thread
// that publishes their deletion, and by then the caller sleeps.
Reply<Status> Acknowledgements::once_deleted(ProcedureId id, Reply<Status> reply) {
  if (reply.on == ReplyOn::kWaitingCaller) reply.on = ReplyOn::kHere;
  return {.tell =
              [this, id, reply = std::move(reply)](const Status& deleted) {
                if (deleted.ok()) return acknowledge(id, reply, nullptr);
                Effects effects;
                effects.reply(reply, deleted);
                publisher_.perform(effects);
              },
          .on = ReplyOn::kHere};
}

// Adds to the batch that the rows of the result are deleted, and returns the keys of its audit
// rows. From begin() on no other acknowledgement can delete any of them.
Result<Acknowledgements::Keys> Acknowledgements::erase_rows(AcknowledgeCommit& commit,
                                                            const Rows& rows,
                                                            const KeptResult* kept) {
  if (!rows.is_known) return erase_stored(commit, kept);
  if (!core_.keeps_records) return Keys();
  StoredResult::erase(commit.id, rows.in_place, commit.batch);
  return rows.audited ? find_audits(core_.store, commit.id) : Keys();
}

// As erase_rows(), for a result that is not in memory. The rest of `commit` is read from its rows.
Result<Acknowledgements::Keys> Acknowledgements::erase_stored(AcknowledgeCommit& commit,
                                                              const KeptResult* kept) {
  const ProcedureId id = commit.id;
  const auto stored = read_ended(core_, id);
  if (!stored.ok()) return stored.status();
  commit.nonce = stored->nonce();
  commit.bytes = stored->bytes;
  commit.age = stored->ended_age;
  if (kept != nullptr) {
    const bool is_its_date =
        stored->ended_age == kept->age || (kept->found && stored->ended_age == Progress::kNotDated);
    if (!is_its_date) return forgotten(id);  // the result that had this date is gone
    commit.age = kept->age;
  }
  StoredResult::erase(id, stored->in_place, commit.batch);
  return stored->audited ? find_audits(core_.store, id) : Keys();
}

// The rows cannot be deleted. A damaged result stays; it loses its date, so that expiry does not
// find it again. The rows of a procedure that was set aside stay as they are, with its date.
void Acknowledgements::give_up(AcknowledgeCommit& commit, const Status& why,
                               const KeptResult* kept) {
  Effects effects;
  bool set_aside = false;
  {
    StateLock lock(core_);
    core_.state.submissions.acknowledging.erase(commit.id);
    set_aside = core_.state.unreadable.contains(commit.id);
  }
  const bool is_damaged = why.code() == StatusCode::kCorruption && !set_aside;
  const bool is_gone = why.code() == StatusCode::kExpired;
  if (kept != nullptr && (is_damaged || is_gone)) delete_date(*kept, effects);
  for (Reply<Status>& each : commit.replies) effects.reply(std::move(each), why);
  publisher_.perform(effects);
}

void Acknowledgements::delete_date(const KeptResult& kept, Effects& effects) {
  if (!core_.keeps_records) return;
  auto garbage = std::make_unique<GarbageCommit>();
  garbage->engine_rows.emplace_back(std::string_view(kept_key(kept.age, kept.id)), std::string());
  effects.garbage.push_back(std::move(garbage));
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Read submit() top to bottom: encode, check, look for the nonce, reserve, insert.

#include "admission.h"

#include <pv2/base/hash128.h>
#include <pv2/base/wire.h>

#include <algorithm>
#include <utility>

#include "check_limits.h"
#include "nonce_record.h"
#include "procedure_rows.h"
#include "results.h"
#include "row_keys.h"
#include "step_run.h"

namespace pv2 {
namespace {

// What the first record will hold, so that it is refused here and not by the store, where it would
// end the run.
std::size_t size_of(const Execution& execution) {
  std::size_t bytes = execution.arguments.size() + execution.record.image.size() +
                      execution.owner.size() + execution.name_of_type().size() +
                      execution.locks.primary().name.size();
  for (const LockRequest& request : execution.locks.requests()) {
    bytes += request.key.name.size() + 32;  // its class, its mode and their framing
  }
  return bytes;
}

// It is at least so late, also when the wall clock is back.
WallTime at_least_now(const EngineAge& age) {
  const AgeMark mark = age.mark();
  return mark.trusted_at ? later(*mark.trusted_at, mark.age - mark.trusted_age) : WallTime::min();
}

// A start that is put off is a timed wait of the first record.
Status defer_start(Execution& execution, const SubmitOptions& options, const Clock& clock) {
  if (!options.delay && !options.start_at) return Status();
  if (options.delay && *options.delay < Duration::zero()) {
    return Status(StatusCode::kInvalidArgument,
                  "SubmitOptions::delay is negative; leave it out to start at once");
  }
  if (options.delay && options.start_at) {
    return Status(StatusCode::kInvalidArgument,
                  "SubmitOptions has both a delay and a start_at; give one of them");
  }
  const WallTime start =
      options.start_at ? *options.start_at : later(execution.submitted, *options.delay);
  if (start <= execution.submitted) return Status();
  execution.record.deadline = start;
  execution.record.patience = left_after_restart(start, Duration::max(), execution.submitted);
  execution.wait.due = later(clock.steady_now(), execution.record.patience);
  return Status();
}

}  // namespace

// Joined by zero bytes the three are told apart, unless one of the first two has such a byte
// itself. Then the exact form says how long these are, behind two zero bytes: no type has an empty
// name.
Fingerprints fingerprints_of(const Execution& execution, std::string& scratch) {
  using Form = Fingerprint::Form;
  const std::string_view type = execution.name_of_type();
  const std::string_view owner = execution.owner.view();
  const std::string_view arguments = execution.arguments.view();
  scratch.assign(type).append(1, '\0').append(owner).append(1, '\0').append(arguments);
  Hash128 hash = hash128(scratch);
  const Fingerprint joined{hash.first, hash.second, Form::kJoined};
  if (type.find('\0') != type.npos || owner.find('\0') != owner.npos) {
    scratch.assign(2, '\0');
    append_fixed64(scratch, type.size());
    append_fixed64(scratch, owner.size());
    scratch.append(type).append(owner).append(arguments);
    hash = hash128(scratch);
  }
  return {{hash.first, hash.second, Form::kExact}, joined};
}

Status Admission::check_expiry(const SubmitOptions& options, WallTime now) const {
  if (!options.expires_at) return Status();
  if (!options.nonce) {
    return Status(StatusCode::kInvalidArgument,
                  "SubmitOptions has an expires_at but no nonce; it says how long a nonce is sent");
  }
  const Duration ttl = core_.options.retention.ttl;
  if (ttl == Duration::zero() || *options.expires_at <= now || *options.expires_at - now < ttl) {
    return Status();
  }
  return Status(StatusCode::kInvalidArgument,
                "SubmitOptions::expires_at is later than a nonce is sure to be known "
                "(RetentionPolicy::ttl)");
}

Status Admission::check_size(const Execution& execution) const {
  const std::size_t bytes = size_of(execution);
  const std::size_t limit = record_bytes_max(core_.store.limits()) / 2;
  if (bytes <= limit) return Status();
  return Status(StatusCode::kInvalidArgument,
                "a " + execution.type->name + " with " + std::to_string(bytes) +
                    " bytes of fields, owner and locks is too large for " + core_.store.name() +
                    "; the limit is " + std::to_string(limit));
}

void Admission::submit(std::string_view type, std::unique_ptr<Procedure> procedure,
                       SubmitOptions options, InsertCommit::Submitter submitter) {
  Effects effects;
  auto commit =
      reserve(type, std::move(procedure), std::move(options), std::move(submitter), effects);
  if (commit) effects.commits.push_back(*commit.release());
  publisher_.perform(effects);
}

std::unique_ptr<InsertCommit> Admission::reserve_for_step(std::string_view type,
                                                          std::unique_ptr<Procedure> procedure,
                                                          SubmitOptions options,
                                                          InsertCommit::Submitter submitter) {
  Effects effects;
  auto commit =
      reserve(type, std::move(procedure), std::move(options), std::move(submitter), effects);
  publisher_.perform(effects);
  return commit;
}

void Admission::withdraw(std::unique_ptr<InsertCommit> commit) {
  const std::unique_ptr<Execution> execution(commit->execution);
  PV2_ASSERT(execution->inserting == commit.get(), "who is withdrawn was about to be inserted");
  Effects effects;
  {
    StateLock lock(core_);
    PV2_ASSERT(execution->phase == Phase::kInserting, "what is durable is not withdrawn");
    core_.settle(*execution, Disposition::kComplete);
    core_.state.live.erase(execution->id);
    if (execution->nonce) core_.state.nonces.erase(execution->nonce);
    answer_waiters(core_, *execution,
                   Status(StatusCode::kNotFound, "the step that was submitting procedure " +
                                                     std::to_string(execution->id.value) +
                                                     " did not come to its end"),
                   effects);
    for (const InsertCommit::PutOff& step : commit->put_off) core_.wake(step.id, step.epoch);
  }
  for (InsertCommit::Submitter& submitter : commit->submitters) {
    effects.reply(
        std::move(submitter.reply),
        Status(StatusCode::kUnavailable,
               "the step that was submitting the same nonce did not come to its end; try again"));
  }
  publisher_.perform(effects);
}

std::unique_ptr<InsertCommit> Admission::reserve(std::string_view type_name,
                                                 std::unique_ptr<Procedure> procedure,
                                                 SubmitOptions options,
                                                 InsertCommit::Submitter submitter,
                                                 Effects& effects) {
  const bool by_caller = submitter.step == nullptr;
  auto execution = std::make_unique<Execution>();
  Key key;
  Status refused;
  WallTime now;
  execution->type = core_.options.registry.find(type_name);
  if (execution->type == nullptr) {
    refused = Status(StatusCode::kInvalidArgument,
                     "procedure type '" + std::string(type_name) +
                         "' is not registered; add it to the ProcedureRegistry before open()");
  } else {
    refused = execution->type->check_class_of(*procedure);
    if (refused.ok()) {
      refused = check_bytes("SubmitOptions::owner", options.owner.size(), limits::kOwnerBytes);
    }
    execution->belong_to(nullptr);
    if (refused.ok()) execution->owner = options.owner;
    execution->nonce = options.nonce;
    execution->record.step = execution->type->steps.front().number;
    execution->submitted = core_.clock.wall_now();
    std::string scratch;
    now = execution->submitted;
    if (options.expires_at) now = std::max(now, at_least_now(core_.age));
    if (refused.ok()) refused = check_expiry(options, now);
    if (refused.ok()) refused = describe_new(*procedure, *execution, scratch);
    if (refused.ok()) refused = defer_start(*execution, options, core_.clock);
    core_.count_for_its_type(*execution);
    if (options.nonce) key = {options.nonce, fingerprints_of(*execution, scratch)};
  }
  if (refused.ok()) refused = check_size(*execution);

  std::unique_ptr<InsertCommit> commit;
  std::uint64_t evictions = 0;
  bool asked_store = false;
  while (refused.ok()) {
    {
      StateLock lock(core_);
      if (by_caller) refused = core_.unavailable();
      if (!refused.ok()) break;
      Known known = Known::kNew;
      if (key.nonce) known = look_up(key, submitter, effects);
      if (known == Known::kAskStore && asked_store && evictions == core_.state.evictions) {
        known = Known::kNew;  // the store was asked, and nothing left memory for it since
      }
      if (known == Known::kNew) {
        if (options.expires_at && *options.expires_at <= now) {
          refused = Status(StatusCode::kExpired,
                           "nonce " + std::to_string(key.nonce.group) + "/" +
                               std::to_string(key.nonce.value) +
                               " is not known, and its submission was to be sent before now "
                               "(expires_at): it may have been done and forgotten. Nothing was "
                               "started");
          break;
        }
        if (by_caller && core_.state.live.size() >= core_.options.max_live_procedures) {
          refused = Status(StatusCode::kResourceExhausted,
                           std::to_string(core_.state.live.size()) +
                               " procedures are live, which is the limit (max_live_procedures); "
                               "try again later");
          break;
        }
        if (by_caller && execution->nonce) {
          refused = core_.state.retention.room(core_.state.nonces.size() +
                                               core_.state.nonces_on_disk_only);
        }
        if (!refused.ok()) break;
        const auto id = core_.allocate_ids(1);
        if (!id.ok()) {
          refused = id.status();
          break;
        }
        execution->id = *id;
        if (!execution->record.deadline)
          execution->object = std::move(procedure);  // else made when it runs
        commit = core_.state.spare_inserts.take();
        commit->execution = execution.get();
        execution->fingerprint = key.fingerprints.exact;
        PV2_ASSERT(commit->submitters.empty() && commit->put_off.empty(),
                   "a request that is used again has forgotten whom it was for");
        execution->inserting = commit.get();
        commit->submitters.push_back(std::move(submitter));
        core_.state.live.emplace(execution->id, execution.get());
        if (execution->nonce) {
          core_.state.nonces.insert_or_assign(key.nonce,
                                              NonceEntry{execution->id, key.fingerprints.exact});
        }
        break;
      }
      if (known == Known::kAnswered) break;
      evictions = core_.state.evictions;
    }
    asked_store = true;
    if (look_up_in_store(key, submitter, effects) == Known::kAnswered) break;
  }
  // It was moved away only if the submission was accepted.
  if (!refused.ok())
    effects.reply(std::move(submitter.reply), refused);  // NOLINT(bugprone-use-after-move)
  if (commit && key.nonce && !asked_store) check_unknown(key.nonce, execution->id);
  if (execution->id) fill(std::move(execution), *commit);
  return commit;
}

// If a nonce were taken for new that the store knows, its work would be done twice. So of those
// that were taken for new without asking, some are asked for all the same. Nobody else inserts a
// nonce that is reserved.
void Admission::check_unknown(const Nonce& nonce, ProcedureId id) {
  constexpr std::uint64_t kOneIn = 64;
  if (id.value % kOneIn != 0) return;
  const auto row = core_.store.get(Space::kNonce, nonce_key(nonce));
  PV2_ASSERT(!row.ok() || !*row, "a nonce that is taken for new has no row in the store");
}

void Admission::fill(std::unique_ptr<Execution> owned, InsertCommit& commit) {
  Execution& execution = *owned.release();  // the table of live executions has it
  PV2_ASSERT(execution.inserting == &commit, "who is inserted knows its first record");
  PV2_ASSERT(execution.is_root() && execution.is_head(), "what is submitted is a root");
  const Record& record = execution.record;
  Transition first;
  first.begin(record, execution.submitted);
  if (record.deadline) {  // it asks for its locks when its time has come
    first.state = ProcedureState::kWaitingTimeout;
    first.deadline = record.deadline;
    first.patience = record.patience;
    commit.holds_locks = first.holds_locks = execution.locks.empty();
  } else {
    first.state = ProcedureState::kRunnable;
    commit.holds_locks = first.holds_locks = core_.scheduler.admit(execution);
  }
  RowBatch& batch = commit.batch;
  batch.reserve(1024);  // a header and a state of ordinary size
  insert_rows(execution, first, batch);
  if (execution.nonce) {
    batch.insert_with(Space::kNonce, nonce_key(execution.nonce), [&](std::string& out) {
      encode_nonce_record({execution.id, execution.fingerprint}, out);
    });
  }
}

Admission::Known Admission::look_up(const Key& wanted, InsertCommit::Submitter& submitter,
                                    Effects& effects) {
  const auto at = core_.state.nonces.find(wanted.nonce);
  if (at != core_.state.nonces.end()) {
    answer_known(wanted, at->second, submitter, effects);
    return Known::kAnswered;
  }
  return core_.state.store_knows_more_nonces ? Known::kAskStore : Known::kNew;
}

void Admission::answer_known(const Key& wanted, const NonceEntry& entry,
                             InsertCommit::Submitter& submitter, Effects& effects) {
  const Execution* const live = core_.find(entry.id);
  InsertCommit* const pending = live != nullptr ? live->inserting : nullptr;
  PV2_ASSERT(pending == nullptr || !pending->submitters.empty(),
             "somebody waits for what is just being submitted");
  if (pending != nullptr && submitter.step != nullptr &&
      submitter.step != pending->submitters.front().step) {
    // Its record must not be durable before that insert, nor fail because of it: it may be
    // withdrawn yet.
    pending->put_off.push_back({submitter.step->id, submitter.step->wait.epoch});
    return effects.reply(std::move(submitter.reply),
                         Status(StatusCode::kUnavailable,
                                "nonce " + std::to_string(wanted.nonce.group) + "/" +
                                    std::to_string(wanted.nonce.value) +
                                    " is just being submitted by somebody else; try again"));
  }
  if (!wanted.fingerprints.match(entry.fingerprint)) {
    return effects.reply(
        std::move(submitter.reply),
        Status(StatusCode::kKeyReused,
               "nonce " + std::to_string(wanted.nonce.group) + "/" +
                   std::to_string(wanted.nonce.value) +
                   " was used before for something else; nothing was started. Use a new nonce"));
  }
  submitter.replayed = true;
  if (pending != nullptr) {  // neither is known to be durable
    pending->submitters.push_back(std::move(submitter));
    return;
  }
  effects.reply(std::move(submitter.reply), Submitted{entry.id, true});
}

Admission::Known Admission::look_up_in_store(const Key& wanted, InsertCommit::Submitter& submitter,
                                             Effects& effects) {
  const auto row = core_.store.get(Space::kNonce, nonce_key(wanted.nonce));
  Status failed = row.status();
  if (row.ok() && !*row) return Known::kNew;
  if (row.ok()) {
    const auto record = decode_nonce_record(**row);
    if (record.ok()) {
      StateLock lock(core_);
      answer_known(wanted, {record->id, record->fingerprint}, submitter, effects);
      return Known::kAnswered;
    }
    failed = record.status();
  }
  effects.reply(std::move(submitter.reply),
                failed.with_context("looking for a nonce in " + core_.store.name()));
  return Known::kAnswered;
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Where a question about an ended procedure is answered: from memory, from the store, or not at
// all.

#include "results.h"

#include <algorithm>
#include <forward_list>
#include <iterator>
#include <memory>
#include <utility>

#include "audit_row.h"
#include "row_keys.h"

namespace pv2 {
namespace {

// Audit entries and copies that are deleted together with a result.
constexpr std::size_t kAuditsAtOnce = 1024;

std::string procedure(ProcedureId id) { return "procedure " + std::to_string(id.value); }

Status never_issued(ProcedureId id) {
  return Status(StatusCode::kNotFound, "there is no " + procedure(id) + " and there never was");
}

Status forgotten(ProcedureId id) {
  return Status(StatusCode::kExpired,
                procedure(id) + " has ended and its result was acknowledged or forgotten");
}

// Results beyond the limits leave memory, oldest first; the store still has them, unless it keeps
// none. A large one may be worth many small ones: those leave with the results that come after it.
void evict_old_results(EngineCore& core) PV2_REQUIRES(core.state_mutex) {
  constexpr int kAtOnce = 16;
  for (int i = 0; i < kAtOnce; ++i) {
    const auto evicted = core.state.completed.take_surplus();
    if (!evicted) return;
    if (evicted->nonce) {
      core.state.nonces.erase(evicted->nonce);
      if (core.keeps_records) {
        core.state.store_knows_more_nonces = true;
        ++core.state.nonces_on_disk_only;
      }
    }
    if (!core.keeps_records) {
      core.state.retention.gone(evicted->result.id, evicted->ended_age, evicted->bytes);
    }
    ++core.state.evictions;
  }
}

// Adds the keys of the audit row `row` and of its copy beside whom it is about.
void add_audit(const StoredRow& row, ProcedureId root, std::vector<std::string>& keys) {
  keys.emplace_back(row.key);
  const auto entry = decode_audit(row.value);
  const auto key = parse_procedure_key(row.key);
  if (!entry.ok() || !key) return;
  const ProcedureId about = entry->entry.procedure;
  if (about != root) keys.push_back(audit_key(about, key->number));
}

// The keys of what was ordered about the tree of `root`, copies included.
Status find_audits(ProcedureStore& store, ProcedureId root, std::vector<std::string>& keys) {
  return store.scan(Space::kProcedure, procedure_key(root, RowKind::kAudit),
                    [&](const StoredRow& row) {
                      add_audit(row, root, keys);
                      return Status();
                    });
}

}  // namespace

void answer_waiters(EngineCore& core, Execution& root, const Result<ProcedureResult>& result,
                    Effects& effects) {
  if (root.waiters.empty()) return;
  if (std::next(root.waiters.begin()) == root.waiters.end()) {
    effects.reply(std::move(root.waiters.front().reply), result);
    return root.waiters.clear();
  }
  // There may be any number: they share one copy, and are gone through when the mutex is released.
  struct Crowd {
    std::forward_list<Waiter> waiters;
    Result<ProcedureResult> result;
  };
  auto crowd = std::make_shared<Crowd>(Crowd{std::move(root.waiters), result});
  root.waiters.clear();
  effects.answers.push_back([&pool = *core.pool, crowd = std::move(crowd)] {
    crowd->waiters.reverse();
    for (Waiter& waiter : crowd->waiters) {
      switch (waiter.reply.on) {
        case ReplyOn::kHere:
          waiter.reply.tell(crowd->result);
          break;
        case ReplyOn::kPool:
          pool.post([crowd, tell = std::move(waiter.reply.tell)] { tell(crowd->result); });
          break;
      }
    }
  });
}

void answer_all_waiters(EngineCore& core, Effects& effects) {
  for (const auto& [id, execution] : core.state.live) {
    answer_waiters(core, *execution, core.state.store_failure, effects);
  }
}

void keep_result(EngineCore& core, Execution& root, Effects& effects) {
  ProcedureResult result = result_of(root);
  answer_waiters(core, root, result, effects);
  PV2_ASSERT(root.record.ended_age != Progress::kNotDated, "a root that has ended is dated");
  const std::size_t bytes = bytes_of_rows(root);
  core.state.completed.add(Completed{.result = std::move(result),
                                     .nonce = root.nonce,
                                     .audited = root.audited,
                                     .in_place = !root.record.in_results,
                                     .ended_age = root.record.ended_age,
                                     .bytes = bytes});
  core.state.retention.kept(root.id, root.record.ended_age, bytes);
  evict_old_results(core);
}

std::uint64_t Results::wait(ProcedureId id, Reply<Result<ProcedureResult>> reply) {
  Effects effects;
  std::uint64_t ticket = 0;
  bool look_in_store = false;
  {
    StateLock lock(core_);
    const Completed* const completed = core_.state.completed.find(id);
    Execution* const live = core_.find(id);
    if (completed != nullptr) {
      effects.reply(std::move(reply), completed->result);
    } else if (live != nullptr && !live->is_root()) {
      effects.reply(std::move(reply), Status(StatusCode::kInvalidArgument,
                                             procedure(id) + " is a child; wait for its root, " +
                                                 procedure(live->root->id)));
    } else if (live != nullptr) {
      if (const Status status = core_.unavailable(); !status.ok()) {
        effects.reply(std::move(reply), status);
      } else {
        ticket = core_.state.next_ticket++;
        live->waiters.push_front({std::move(reply), ticket});
      }
    } else if (!id || id.value >= core_.state.next_id) {
      effects.reply(std::move(reply), never_issued(id));
    } else if (!core_.keeps_records) {
      effects.reply(std::move(reply), forgotten(id));
    } else {
      look_in_store = true;
    }
  }
  if (look_in_store) {
    auto stored = read_stored(id);
    using Answer = Result<ProcedureResult>;
    // NOLINTNEXTLINE(bugprone-use-after-move): what looks in the store was not answered above
    effects.reply(std::move(reply),
                  stored.ok() ? Answer(std::move(stored->result)) : Answer(stored.status()));
  }
  publisher_.perform(effects);
  return ticket;
}

bool Results::withdraw(ProcedureId id, std::uint64_t ticket) {
  StateLock lock(core_);
  Execution* const live = core_.find(id);
  if (live == nullptr) return false;
  return live->waiters.remove_if([&](const Waiter& waiter) { return waiter.ticket == ticket; }) !=
         0;
}

void Results::acknowledge(ProcedureId id, Reply<Status> reply, const KeptResult* kept) {
  Effects effects;
  std::unique_ptr<AcknowledgeCommit> commit;
  bool in_memory = false;
  bool audited = false;
  bool in_place = false;
  bool other = false;  // `kept` is not the date of this result
  Status refused;
  {
    StateLock lock(core_);
    const auto on_the_way = core_.state.acknowledging.find(id);
    const auto garbage = core_.state.garbage.find(id);
    const Completed* const completed = core_.state.completed.find(id);
    in_memory = completed != nullptr;
    refused = core_.unavailable();
    other = refused.ok() && kept != nullptr && in_memory && completed->ended_age != kept->age;
    if (!refused.ok()) {
    } else if (other) {
    } else if (on_the_way != core_.state.acknowledging.end()) {
      on_the_way->second->replies.push_back(std::move(reply));
      return;
    } else if (core_.find(id) != nullptr) {
      other = kept != nullptr;
      refused = Status(StatusCode::kFailedPrecondition,
                       procedure(id) + " still goes on; only a result can be acknowledged");
    } else if (garbage != core_.state.garbage.end()) {
      garbage->second.acknowledgements.push_back(again_after_garbage(id, std::move(reply)));
      return;
    } else if (!id || id.value >= core_.state.next_id) {
      refused = never_issued(id);
    } else if (in_memory) {
      audited = completed->audited;
      in_place = completed->in_place;
    } else if (!core_.keeps_records) {
      refused = forgotten(id);
    }
    if (refused.ok() && !other) {
      commit = core_.state.spare_acknowledges.take();
      commit->id = id;
      if (in_memory) {
        commit->nonce = completed->nonce;
        commit->age = completed->ended_age;
        commit->bytes = completed->bytes;
      }
      commit->replies.push_back(std::move(reply));
      core_.state.acknowledging.emplace(id, commit.get());
    }
  }
  if (other || (kept != nullptr && refused.code() == StatusCode::kNotFound)) {
    delete_date(*kept, effects);
    refused = Status();
  }
  if (commit == nullptr) {
    // NOLINTNEXTLINE(bugprone-use-after-move): moved away only when nothing refuses it
    effects.reply(std::move(reply), refused);
    return publisher_.perform(effects);
  }
  std::vector<std::string> audits;
  if (!in_memory) {
    refused = look_at_rows(*commit, kept, audits);
  } else if (audited) {
    refused = find_audits(core_.store, id, audits);
  }
  if (!refused.ok()) {
    bool set_aside = false;
    {
      StateLock lock(core_);
      core_.state.acknowledging.erase(id);
      set_aside = core_.state.unreadable.contains(id);
    }
    // A damaged result stays. Without its date, expiry does not find it again. The rows of a
    // procedure that is set aside stay as they are, its date included.
    const bool is_damaged = refused.code() == StatusCode::kCorruption && !set_aside;
    const bool is_gone = refused.code() == StatusCode::kExpired;
    if (kept != nullptr && (is_damaged || is_gone)) delete_date(*kept, effects);
    for (Reply<Status>& each : commit->replies) effects.reply(std::move(each), refused);
    return publisher_.perform(effects);
  }
  // Its rows, date and nonce, and these; a tree to which an operator's program gives orders for
  // months has more than fit one batch. They go first, and meanwhile it is like a tree with
  // descendants.
  if (audits.size() + 4 > std::min(core_.store.limits().batch_operations, kAuditsAtOnce)) {
    auto garbage = std::make_unique<GarbageCommit>();
    garbage->root = id;
    garbage->rows = std::move(audits);
    {
      StateLock lock(core_);
      core_.state.acknowledging.erase(id);
      PendingGarbage& pending = core_.state.garbage[id];
      ++pending.chains;
      for (Reply<Status>& each : commit->replies) {
        pending.acknowledgements.push_back(again_after_garbage(id, std::move(each)));
      }
      core_.state.spare_acknowledges.give_back(std::move(commit));
      core_.delete_rows(std::move(garbage), effects);
    }
    return publisher_.perform(effects);
  }
  commit->batch.reserve(192);  // three keys
  if (in_memory) StoredResult::erase(id, in_place, commit->batch);
  for (const std::string& key : audits) commit->batch.erase(Space::kProcedure, key);
  if (commit->nonce) commit->batch.erase(Space::kNonce, nonce_key(commit->nonce));
  if (commit->age != Progress::kNotDated && core_.keeps_records) {
    commit->batch.erase(Space::kEngine, kept_key(commit->age, id));
  }
  effects.commits.push_back(*commit.release());
  publisher_.perform(effects);
}

Reply<Status> Results::again_after_garbage(ProcedureId id, Reply<Status> reply) {
  return {.tell =
              [this, id, reply = std::move(reply)](const Status& deleted) {
                if (deleted.ok()) return acknowledge(id, reply);
                Effects effects;
                effects.reply(reply, deleted);
                publisher_.perform(effects);
              },
          .on = ReplyOn::kHere};
}

// From here on nobody else can delete them: it is on the way.
Status Results::look_at_rows(AcknowledgeCommit& commit, const KeptResult* kept,
                             std::vector<std::string>& audits) {
  const ProcedureId id = commit.id;
  if (Status status = why_set_aside(id); !status.ok()) return status;
  const auto rows = StoredResult::read(core_.store, id);
  if (!rows.ok()) return rows.status();
  if (!*rows) return forgotten(id);
  const auto stored = (*rows)->decode(id);
  if (!stored.ok()) return stored.status();
  if (!*stored) return forgotten(id);
  const Completed& result = **stored;
  commit.nonce = result.nonce;
  commit.bytes = result.bytes;
  commit.age = result.ended_age;
  if (kept != nullptr) {
    const bool same =
        result.ended_age == kept->age || (kept->found && result.ended_age == Progress::kNotDated);
    if (!same) return forgotten(id);  // what was dated so is
    commit.age = kept->age;
  }
  StoredResult::erase(id, result.in_place, commit.batch);
  return result.audited ? find_audits(core_.store, id, audits) : Status();
}

void Results::delete_date(const KeptResult& kept, Effects& effects) {
  if (!core_.keeps_records) return;
  auto garbage = std::make_unique<GarbageCommit>();
  garbage->engine_rows.emplace_back(kept_key(kept.age, kept.id), std::string());
  effects.garbage.push_back(std::move(garbage));
}

Status Results::why_not_live(ProcedureId id) {
  const Status ended(StatusCode::kFailedPrecondition, procedure(id) + " has ended already");
  {
    StateLock lock(core_);
    if (core_.state.completed.contains(id)) return ended;
    if (!id || id.value >= core_.state.next_id) return never_issued(id);
    if (!core_.keeps_records) return forgotten(id);
  }
  const auto stored = read_stored(id);
  return stored.ok() ? ended : stored.status();
}

void Results::answer_all(const Status& status) {
  Effects effects;
  {
    StateLock lock(core_);
    for (const auto& [id, execution] : core_.state.live) {
      answer_waiters(core_, *execution, status, effects);
    }
    for (auto& [root, garbage] : core_.state.garbage) {
      for (Reply<Status>& each : garbage.acknowledgements) effects.reply(std::move(each), status);
      garbage.acknowledgements.clear();
    }
  }
  publisher_.perform(effects);
}

Status Results::why_set_aside(ProcedureId id) {
  StateLock lock(core_);
  const auto unreadable = core_.state.unreadable.find(id);
  if (unreadable == core_.state.unreadable.end()) return Status();
  return unreadable->second.why.with_context(procedure(id) + " was set aside when " +
                                             core_.store_name + " was opened");
}

Result<Completed> Results::read_stored(ProcedureId id) {
  if (const Status status = why_set_aside(id); !status.ok()) return status;
  const auto rows = StoredResult::read(core_.store, id);
  if (!rows.ok()) return rows.status();
  if (!*rows) return forgotten(id);
  auto stored = (*rows)->decode(id);
  if (!stored.ok()) return stored.status();
  if (!*stored) return forgotten(id);
  return **std::move(stored);
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Rows are handed out in chunks and linked in the order in which they were handed out, so whoever
// reads may be behind or ahead. Read load() first.

#include "recovery.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "record_codec.h"
#include "tree.h"
#include "tree_walk.h"

namespace pv2 {
namespace {

// What is read at once: a few milliseconds' work, beside which starting a thread is nothing.
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

std::string procedure(ProcedureId id) { return "procedure " + std::to_string(id.value); }

}  // namespace

Recovery::Recovery(EngineCore& core)
    : core_(core),
      // Without workers the host wants one thread.
      side_by_side_(core.options.workers == 0 ? 0
                                              : std::max(2U, std::thread::hardware_concurrency())),
      chunk_(kChunkBytes),
      began_(core.clock.steady_now()),
      began_at_(core.clock.wall_now()) {}

Status Recovery::load(Effects& effects) {
  Status status = read_engine_rows();
  if (status.ok()) {
    status =
        core_.store.scan(Space::kProcedure, "", [this](const StoredRow& row) { return read(row); });
  }
  if (status.ok()) read_chunk(std::launch::deferred);
  while (status.ok() && !reading_.empty()) status = link_oldest();
  if (status.ok()) status = find_lost_nonces();
  if (status.ok()) status = read_dates();
  if (!status.ok()) return status.with_context("loading " + core_.store.name());
  StateLock lock(core_);
  status = check_schemas(effects);
  if (!status.ok()) return status;
  // Every id below the watermark may have been issued, and be in somebody's log.
  core_.state.next_id =
      std::max({highest_.value + 1, core_.state.durable_watermark, std::uint64_t{1}});
  core_.state.first_id = core_.state.next_id;
  core_.state.loaded = true;
  core_.state.store_knows_more_nonces = core_.state.durable_watermark != 0;  // it is not new
  freeze_relatives();
  tell_of_unreadable(effects);
  collect_garbage(effects);
  quarantine(effects);
  queue_all(effects);
  core_.looks.nobody_waits();
  return Status();
}

Status Recovery::read(const StoredRow& row) {
  const ProcedureId id = id_in_key(row.key);  // who reads the chunk says what is wrong with it
  if (id != last_in_chunk_ && chunk_.bytes() >= kChunkBytes) {
    read_chunk(side_by_side_ == 0 ? std::launch::deferred : std::launch::async);
    if (reading_.size() > side_by_side_) {
      if (Status status = link_oldest(); !status.ok()) return status;
    }
  }
  last_in_chunk_ = id;
  chunk_.add(row);
  return Status();
}

// Nothing is written here: the rows ride on the record that open() writes when all is well.
Status Recovery::check_schemas(Effects& effects) {
  if (!core_.keeps_records) return Status();
  const std::vector<std::string>& accepted = core_.options.accept_field_changes;
  for (const auto& [name, type] : core_.options.registry.types()) {
    SchemaRows now = rows_of(type->schema);
    const auto at = schemas_.find(name);
    static const SchemaRows kNone;
    const SchemaRows& before = at == schemas_.end() ? kNone : at->second;
    if (Status changed = check_schema(before, now); !changed.ok()) {
      const bool meant = std::find(accepted.begin(), accepted.end(), name) != accepted.end();
      if (!meant && is_live(*type)) {
        return {changed.code(),
                "procedures of type '" + name + "' are live, and their " +
                    std::string(changed.message()) +
                    ". Give what has changed a number of its own; or let the program that wrote "
                    "them end them; or, if what they have is to be read so, name the type in "
                    "ExecutorOptions::accept_field_changes. Nothing was changed"};
      }
      effects.log(LogLevel::kWarning, "'" + name + "': " + std::string(changed.message()) +
                                          (meant ? "; as ExecutorOptions::accept_field_changes "
                                                   "says, it is read so"
                                                 : "; none is live, so it is what it is now"));
    }
    std::string stored;
    std::string row;
    encode_schema(before, stored);
    encode_schema(merge_schemas(before, std::move(now)), row);
    if (at == schemas_.end() || row != stored) {
      core_.state.schemas_to_write.emplace_back(schema_key(name), std::move(row));
    }
  }
  return Status();
}

bool Recovery::is_live(const ProcedureType& type) {
  for (const auto& [id, execution] : core_.state.live) {
    if (execution->type == &type) return true;
  }
  return false;
}

Status Recovery::read_engine_rows() {
  const auto row = core_.store.get(Space::kEngine, kWatermarkKey);
  if (!row.ok()) return row.status();
  if (*row) {
    const auto watermark = decode_watermark(**row);
    if (!watermark.ok()) return watermark.status();
    core_.age.go_on_from(watermark->age);
    StateLock lock(core_);
    core_.state.durable_watermark = watermark->next_id;
  }
  const auto read_limit = [this](const StoredRow& found) {
    const auto key = parse_limit_key(found.key);
    if (!key) return Status();
    const auto limit = decode_limit(found.value);
    if (!limit.ok()) return limit.status();
    StateLock lock(core_);
    core_.set_limit(*key, *limit);
    return Status();
  };
  const auto read_schema = [this](const StoredRow& found) {
    const auto type = parse_schema_key(found.key);
    auto rows = decode_schema(found.value);
    if (!rows.ok()) return rows.status().with_context("schema of '" + std::string(*type) + "'");
    schemas_.insert_or_assign(std::string(*type), *std::move(rows));
    return Status();
  };
  Status status = core_.store.scan(Space::kEngine, kLimitKeyPrefix, read_limit);
  return status.ok() ? core_.store.scan(Space::kEngine, kSchemaKeyPrefix, read_schema) : status;
}

void Recovery::read_chunk(std::launch where) {
  const auto chunk = std::make_shared<RowChunk>(std::exchange(chunk_, RowChunk(kChunkBytes)));
  const auto read = [&registry = core_.options.registry, &store = core_.store,
                     policy = core_.options.unreadable, chunk]() -> Result<ReadRecords> {
    RecordReader reader(registry, store, policy);
    Status status = chunk->for_each([&](const StoredRow& row) { return reader.read(row); });
    if (status.ok()) status = reader.finish();
    if (!status.ok()) return status;
    return std::move(reader).take();
  };
  try {
    reading_.push_back(std::async(where, read));
  } catch (const std::system_error&) {  // the machine has no thread left: this one reads it
    reading_.push_back(std::async(std::launch::deferred, read));
  }
}

Status Recovery::link_oldest() {
  Result<ReadRecords> read = reading_.front().get();
  reading_.pop_front();
  if (!read.ok()) return read.status();
  highest_ = std::max(highest_, read->highest);
  for (const std::string& key : read->orphans) {
    const auto order = parse_procedure_key(key);
    if (order && order->kind == RowKind::kAudit) late_orders_.emplace(order->id, order->number);
  }
  std::move(read->orphans.begin(), read->orphans.end(), std::back_inserter(orphans_));
  if (Status status = find_ended_roots(*read); !status.ok()) return status;
  StateLock lock(core_);
  set_aside(std::move(read->unreadable));
  for (const EndedRoot& root : read->ended_roots) {
    ended_roots_.insert_or_assign(root.id, true);
    if (root.age == Progress::kNotDated) undated_.push_back(root);
  }
  for (LoadedProcedure& loaded : read->procedures) {
    has_ended(loaded.header.root) ? forget(loaded) : go_on_with(loaded);
  }
  for (AuditCopy& copy : read->audit_copies) {  // the root's id is the lower one: it was linked
    const bool too_late = late_orders_.contains({copy.root, parse_procedure_key(copy.key)->number});
    const bool kept = has_ended(copy.root) || core_.find(copy.root) != nullptr ||
                      core_.state.unreadable.contains(copy.root);
    if (!kept || too_late) orphans_.push_back(std::move(copy.key));
  }
  return Status();
}

bool Recovery::has_ended(ProcedureId root) const {
  const auto known = ended_roots_.find(root);
  return known != ended_roots_.end() && known->second;
}

// Roots come before their descendants: one that has neither been linked nor is among `read` has
// ended, or is lost. One that cannot be read has not ended, for all that is known.
Status Recovery::find_ended_roots(const ReadRecords& read) {
  const auto is_there = [&](ProcedureId root) {
    const auto at = std::lower_bound(
        read.procedures.begin(), read.procedures.end(), root,
        [](const LoadedProcedure& loaded, ProcedureId id) { return loaded.execution->id < id; });
    if (at != read.procedures.end() && at->execution->id == root) return true;
    const bool is_unreadable =
        std::any_of(read.unreadable.begin(), read.unreadable.end(),
                    [&](const UnreadableRecord& record) { return record.id == root; });
    StateLock lock(core_);
    return is_unreadable || core_.find(root) != nullptr || core_.state.unreadable.contains(root);
  };
  ProcedureId last;  // one after the other has the same root
  const auto ask = [&](ProcedureId root) {
    if (root == std::exchange(last, root) || ended_roots_.contains(root) || is_there(root)) {
      return Status();
    }
    const auto row = core_.store.get(Space::kResult, result_key(root));
    if (row.ok()) ended_roots_.emplace(root, row->has_value());
    return row.status();
  };
  for (const LoadedProcedure& loaded : read.procedures) {
    if (loaded.header.root == loaded.execution->id) continue;
    if (Status status = ask(loaded.header.root); !status.ok()) return status;
  }
  for (const AuditCopy& copy : read.audit_copies) {
    if (Status status = ask(copy.root); !status.ok()) return status;
  }
  return Status();
}

void Recovery::set_aside(std::vector<UnreadableRecord> records) {
  for (UnreadableRecord& record : records) {
    const ProcedureId id = record.id;
    core_.state.unreadable.try_emplace(id, std::move(record));
  }
}

// A record that was set aside may belong to a member of a loaded tree, which must not go on as if
// it had never had that member. A readable header names the root. Without one, the ids are a guess
// (docs/decisions/0017-kept-after-review.md): the children of one spawn have consecutive ids, and a
// parent that waits for children has some. If a child had ended, and no other child of its spawn
// can be read, its parent does not miss it after the parent's next record.
void Recovery::freeze_relatives() {
  if (core_.state.unreadable.empty()) return;
  const auto freeze = [&](Execution* relative, ProcedureId member) {
    if (relative == nullptr) return;
    problems_.emplace_back(relative, Status(StatusCode::kCorruption,
                                            procedure(member) + ", which is or may be part of its "
                                                                "tree, cannot be read and was set "
                                                                "aside"));
  };
  const auto child = [&](std::uint64_t id) PV2_REQUIRES(core_.state_mutex) -> Execution* {
    Execution* const found = core_.find(ProcedureId{id});
    return found != nullptr && !found->is_root() ? found : nullptr;
  };
  std::uint64_t below = 0;  // the id before the first of those in a row that are set aside
  ProcedureId last;
  for (const auto& [id, record] : core_.state.unreadable) {
    if (Execution* const found = core_.find(id)) {
      found->stored = Stored::kUnreadable;  // its root, lost
    }
    if (record.root && record.root != id) freeze(core_.find(record.root), id);
    if (record.root || !id) continue;
    if (!last || id.value != last.value + 1) below = id.value - 1;
    last = id;
    freeze(child(below), id);
    freeze(child(id.value + 1), id);
  }
  if (!last) return;
  FlatMap<ProcedureId, bool> has_children;
  for (Execution* root : roots_) {
    for (const Execution& member : Subtree(*root)) {
      if (&member == root) continue;
      const Execution& parent = *member.parent_execution();
      if (member.spawned_at == parent.record.visits) has_children.emplace(parent.id, true);
    }
  }
  for (const auto& [id, execution] : core_.state.live) {
    const bool waits =
        execution->record.state == ProcedureState::kWaiting && !is_stand_in(*execution);
    if (waits && !has_children.contains(id) && id < last) freeze(execution, last);
  }
}

void Recovery::tell_of_unreadable(Effects& effects) {
  for (const auto& [id, record] : core_.state.unreadable) {
    std::string locks = "which locks it held is not known";
    if (!record.locks.empty()) {
      locks = "it may have held";
      for (const LockRequest& request : record.locks.requests()) {
        locks += " " + to_string(request.key);
      }
    }
    effects.log(LogLevel::kError,
                procedure(id) + " is set aside, as it cannot be read: " + record.why.to_string() +
                    "; " + locks + ", and nothing is locked for it");
  }
}

// The crash came before its rows were deleted.
void Recovery::forget(const LoadedProcedure& loaded) {
  const Execution& execution = *loaded.execution;
  garbage_[loaded.header.root].push_back(execution.id);
  if (!execution.inbox) return;
  for (const auto& message : execution.inbox->messages) {
    orphans_.push_back(inbox_key(execution.id, message->number));
  }
}

// Whether it ended with a child whose failure was reported; its row was to be deleted. Children
// leave before their parents, so the row of its parent is there.
bool Recovery::is_over_by_record(const LoadedProcedure& loaded) {
  if (pruned_.contains(loaded.header.parent)) return true;
  Execution* const parent =
      loaded.header.parent < loaded.execution->id ? core_.find(loaded.header.parent) : nullptr;
  return parent != nullptr && parent->root->id == loaded.header.root && is_over(*parent);
}

void Recovery::go_on_with(LoadedProcedure& loaded) {
  if (is_over_by_record(loaded)) {
    pruned_.emplace(loaded.execution->id, true);
    pruned_rows_[loaded.header.root].push_back(loaded.execution->id);
    if (!loaded.execution->inbox) return;
    for (const auto& message : loaded.execution->inbox->messages) {
      orphans_.push_back(inbox_key(loaded.execution->id, message->number));
    }
    return;
  }
  Execution& execution = *loaded.execution.release();  // the table of live executions has it
  if (execution.record.deadline) {
    execution.wait.due = later(began_, left_after_restart(*execution.record.deadline,
                                                          execution.record.patience, began_at_));
  }
  core_.state.live.emplace(execution.id, &execution);
  link(execution, loaded);
  // When its last record was written says in a tree that fails whether its step can have begun.
  const bool matters = !execution.is_root() || execution.inbox;
  if (matters && execution.started) recorded_.emplace(execution.id, loaded.state_sequence);
  restore_locks(execution, loaded);
  if (!loaded.problem.ok()) problems_.emplace_back(&execution, std::move(loaded.problem));
}

void Recovery::link(Execution& execution, LoadedProcedure& loaded) {
  Execution* const root = root_of(execution, loaded);
  Execution* parent =
      loaded.header.parent < execution.id ? core_.find(loaded.header.parent) : nullptr;
  if (parent != nullptr && parent->root != root) parent = nullptr;
  execution.phase.move_to(Phase::kIdle);
  execution.started = may_have_begun(execution, execution.record.holds_locks);
  const bool is_root = loaded.header.root == execution.id && !loaded.header.parent;
  const bool has_root = root != nullptr && !is_stand_in(*root);
  if (!is_root && (!has_root || parent == nullptr)) {
    loaded.problem =
        Status(StatusCode::kCorruption,
               "it belongs to " + procedure(has_root ? loaded.header.parent : loaded.header.root) +
                   ", of which there is no record");
  }
  if (!is_root && root == nullptr) execution.stored = Stored::kTorn;
  // Without its parent it still belongs to its root, whose whole tree is frozen with it.
  execution.belong_to(parent != nullptr ? parent : root);
  adopt(execution);
  if (execution.is_root()) {
    roots_.push_back(&execution);
    if (execution.nonce) {
      core_.state.nonces.emplace(execution.nonce, NonceEntry{execution.id, execution.fingerprint});
    }
    return;
  }
  Execution& above = *execution.parent_execution();
  PV2_ASSERT(!is_over(above), "what ended with a child whose failure was reported is not linked");
  const bool ended =
      execution.record.state == ProcedureState::kSuccess || execution.record.reported;
  if (!ended) ++above.unfinished_children;
}

// Ids grow from parent to child, so a relative that counts was linked before. Where there is no
// record of the root, something takes its place: what is left of the tree is frozen, shown and
// bypassed as one.
Execution* Recovery::root_of(const Execution& execution, const LoadedProcedure& loaded) {
  if (!(loaded.header.root < execution.id)) return nullptr;
  if (Execution* const found = core_.find(loaded.header.root); found != nullptr) {
    return found->is_root() ? found : nullptr;
  }
  auto root = std::make_unique<Execution>();
  root->id = loaded.header.root;
  root->belong_to(nullptr);
  root->stored = Stored::kLost;
  root->type_name = "(lost)";
  root->owner = execution.owner.view();  // children have their parent's
  root->submitted = root->record.updated = execution.submitted;
  root->record.state = ProcedureState::kWaiting;  // it had children that are not done
  root->phase.move_to(Phase::kIdle);
  adopt(*root);
  roots_.push_back(root.get());
  core_.state.live.emplace(root->id, root.get());
  return root.release();
}

// A root of which there is no record may still be named by the row of its nonce: that says what its
// record would say of it, and is deleted with the result of the root.
Status Recovery::find_lost_nonces() {
  FlatMap<ProcedureId, Execution*> lost;
  for (Execution* root : roots_) {
    if (is_stand_in(*root)) lost.emplace(root->id, root);
  }
  if (lost.empty()) return Status();
  std::vector<std::pair<Nonce, NonceEntry>> found;
  const Status status = core_.store.scan(Space::kNonce, "", [&](const StoredRow& row) {
    const auto nonce = parse_nonce_key(row.key);
    const auto record = decode_nonce_record(row.value);
    if (nonce && record.ok() && lost.contains(record->id)) {
      found.emplace_back(*nonce, NonceEntry{record->id, record->fingerprint});
    }
    return Status();
  });
  StateLock lock(core_);
  for (const auto& [nonce, entry] : found) {
    lost[entry.id]->nonce = nonce;
    lost[entry.id]->fingerprint = entry.fingerprint;
    core_.state.nonces.emplace(nonce, entry);
  }
  return status;
}

// What an older program has recorded without a date may have been dated since.
Status Recovery::read_dates() {
  const RetentionPolicy& policy = core_.options.retention;
  const bool is_limited = policy.max_keyed_results != 0 || policy.max_bytes != 0;
  if (!core_.keeps_records || (!is_limited && undated_.empty())) return Status();
  FlatMap<ProcedureId, bool> undated;
  for (const EndedRoot& root : undated_) undated.emplace(root.id, true);
  const auto count = [&](const KeptResult& kept) {
    StateLock lock(core_);
    if (core_.find(kept.id) != nullptr) return;  // an abort takes its end back
    core_.state.retention.kept(kept.id, kept.age, kept.bytes);
    if (kept.nonce) ++core_.state.nonces_on_disk_only;
  };
  Status status = core_.store.scan(Space::kEngine, kKeptKeyPrefix, [&](const StoredRow& row) {
    const auto kept = decode_kept(row.key, row.value);
    if (!kept.ok()) return Status();  // damaged: its result stays until it is acknowledged
    if (kept->found && undated.erase(kept->id) == 0) {
      stale_dates_.emplace_back(row.key);  // its result was acknowledged since
    } else {
      count(*kept);
    }
    return Status();
  });
  std::erase_if(undated_, [&](const EndedRoot& root) { return !undated.contains(root.id); });
  for (const EndedRoot& root : undated_) {
    count({.age = root.age, .id = root.id, .nonce = root.nonce, .bytes = root.bytes});
  }
  return status;
}

void Recovery::restore_locks(Execution& execution, LoadedProcedure& loaded) {
  if (is_over(execution)) execution.record.holds_locks = false;
  if (!execution.record.holds_locks || execution.locks.empty()) return;
  const Status status = core_.scheduler.restore(execution);
  if (!status.ok()) loaded.problem = status.with_context("restoring its locks");
}

void Recovery::collect_garbage(Effects& effects) {
  if (!orphans_.empty()) {
    auto garbage = std::make_unique<GarbageCommit>();
    garbage->rows = std::move(orphans_);
    effects.garbage.push_back(std::move(garbage));
  }
  // What an older program has recorded is dated now: that is late, never early.
  if (!undated_.empty() || !stale_dates_.empty()) {
    auto garbage = std::make_unique<GarbageCommit>();
    for (std::string& key : stale_dates_) garbage->engine_rows.emplace_back(std::move(key), "");
    for (const EndedRoot& root : undated_) {
      const KeptResult kept{core_.age.now(), root.id, root.nonce, root.bytes, true};
      auto& [key, row] = garbage->engine_rows.emplace_back(kept_key(kept.age, kept.id), "");
      encode_kept(kept, row);
    }
    effects.garbage.push_back(std::move(garbage));
  }
  for (auto& [root, ids] : pruned_rows_) {
    auto garbage = std::make_unique<GarbageCommit>();
    garbage->root = root;
    garbage->left.assign(ids.rbegin(), ids.rend());  // children first
    ++core_.state.garbage[root].chains;
    core_.delete_rows(std::move(garbage), effects);
  }
  for (auto& [root, ids] : garbage_) {
    auto garbage = std::make_unique<GarbageCommit>();
    garbage->root = root;
    garbage->left = std::move(ids);
    ++core_.state.garbage[root].chains;
    core_.delete_rows(std::move(garbage), effects);
  }
}

void Recovery::quarantine(Effects& effects) {
  for (const auto& [execution, problem] : problems_) {
    quarantine_tree(core_, *execution->root, problem.with_context(procedure(execution->id)),
                    effects);
  }
}

void Recovery::queue_all(Effects& effects) {
  std::stable_partition(roots_.begin(), roots_.end(),
                        [](const Execution* root) { return root->holds_locks(); });
  for (Execution* root : roots_) queue_tree(*root, effects);
}

void Recovery::queue_tree(Execution& root, Effects& effects) {
  if (root.is_quarantined()) return;
  drop_all_ended(core_, root, effects);
  find_failures(root);
  forget_what_had_not_begun(root, recorded_);
  drop_late_signals(root, effects);
  if (joins_make_sense(root, effects)) start_domain(core_, root, effects);
}

// What was sent to who had succeeded counts if he was to be undone by then.
void Recovery::drop_late_signals(Execution& root, Effects& effects) {
  auto garbage = std::make_unique<GarbageCommit>();
  const auto drop = [&](Execution& member) PV2_REQUIRES(core_.state_mutex) {
    if (!member.inbox) return;
    member.inbox->consume_if([&](const InboxMessage& message) {
      const bool counts = message.to_undo || failed_before(member, message.sequence);
      if (!message.late || counts) return false;
      garbage->rows.push_back(inbox_key(member.id, message.number));
      return true;
    });
  };
  for (Execution& member : Subtree(root)) drop(member);
  if (!garbage->rows.empty()) effects.garbage.push_back(std::move(garbage));
}

// Who has children that are not done waits for them, in a tree that goes forward.
bool Recovery::joins_make_sense(Execution& root, Effects& effects) {
  const auto make_sense = [&](Execution& parent) PV2_REQUIRES(core_.state_mutex) {
    const bool waits = parent.record.state == ProcedureState::kWaiting;
    if (parent.unfinished_children == 0 || waits || is_over(parent)) return true;
    if (failing_domain(parent) != nullptr) return true;
    quarantine_tree(
        core_, root,
        Status(StatusCode::kCorruption, procedure(parent.id) + " is " +
                                            std::string(to_string(parent.record.state)) +
                                            ", but it has children that are not done"),
        effects);
    return false;
  };
  for (Execution& member : Subtree(root)) {
    if (!make_sense(member)) return false;
  }
  return true;
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// EngineState: all that the state mutex guards and that more than one part of the engine uses. What
// only one part uses is a member of that part.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/resource.h>
#include <pv2/base/status.h>
#include <pv2/scheduler/procedure_scheduler.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/completed_results.h"
#include "core/flat_map.h"
#include "core/garbage.h"
#include "core/live_table.h"
#include "core/news_queue.h"
#include "core/nonce_table.h"
#include "core/procedure_ids.h"
#include "core/retention.h"
#include "core/spare_commits.h"
#include "core/waiting_order.h"
#include "model/timer_queue.h"
#include "pv2/engine/completion.h"
#include "pv2/engine/procedure_info.h"

namespace pv2 {

class Procedure;
class TreeCursor;
struct AcknowledgeCommit;
struct EarlyWait;
struct Execution;
struct ExecutorOptions;
struct InsertCommit;
struct MessageCommit;
struct StepCommit;
struct PieceOfWork;
struct TreeWorks;

/// What was submitted, and what came of it.
struct Submissions {
  NonceTable nonces{};
  CompletedResults completed;
  Retention retention;  ///< Of the results that are kept.
  /// Acknowledgements on the way. One per result: a second one joins the first. Otherwise the
  /// second could delete the nonce of a procedure that was submitted after the first.
  FlatMap<ProcedureId, AcknowledgeCommit*> acknowledging{};
  /// The store may have rows of nonces that are not in `nonces`, so admission asks it. Never reset:
  /// that a submission does not run twice must not depend on a count.
  bool store_knows_more_nonces = false;
  /// Used only for the limit of keyed results. Without that limit, nonces of earlier runs are not
  /// counted.
  std::size_t nonces_on_disk_only = 0;
  std::uint64_t evictions = 0;
};

/// A walk that has paused over what may leave early below a parent.
struct EarlyLeave {
  Execution* parent;
  Execution* at;  ///< The member whose children are next: `parent`, or a spent one below it.
};

/// The works on whole trees.
struct WorksOnTrees {
  std::list<TreeWorks> in_turn;  ///< Their first works take turns, a section each.
  std::list<TreeWorks> outside;  ///< Their first works are being sorted without the mutex.
  /// Paused walks other than those of works. A cursor is moved off a member that leaves.
  std::vector<TreeCursor*> walks;
  /// By id of the parent. A walk that comes down to a parent with such a walk of its own ends that.
  /// While the domain of the parent goes forward, only these walks, and the records of the parent
  /// and of its ancestors, take members away below it; so `at` is there.
  std::map<ProcedureId, EarlyLeave> early_leaves;
};

/// Orders of callers about a tree that are not in a record yet.
struct OrdersToTrees {
  std::vector<WaitingOrder> waiting;  ///< At most one per tree.
  /// Aborts on the way, by root. One per tree: a second abort joins the first.
  FlatMap<ProcedureId, MessageCommit*> aborting;
};

/// Requests to be filled again.
struct Spares {
  explicit Spares(std::size_t workers) : steps(workers), inserts(workers), acknowledges(workers) {}

  SpareCommits<StepCommit> steps;
  SpareCommits<InsertCommit> inserts;
  SpareCommits<AcknowledgeCommit> acknowledges;
};

/// What has to be destroyed or told without the mutex, because that calls user code.
struct Leftovers {
  /// User objects that another thread than a worker dropped. The next worker that takes the mutex
  /// destroys them.
  std::vector<std::unique_ptr<Procedure>> objects;
  /// Likewise. A slot holds a value of the user; and the destructor of one that waits for an event
  /// takes Event::State::event_mutex_, which is taken alone. So no slot is destroyed under a mutex.
  std::vector<Ref<AwaitSlot>> slots;
  std::vector<std::shared_ptr<PieceOfWork>> work;  ///< Offloaded work to be told to stop.
  bool work_is_claimed = false;  ///< A task that tells it was posted, and has not taken the list.

  /// Whether a task has to be posted that tells the work; the caller posts it.
  [[nodiscard]] bool claim_work_task() noexcept {
    return !work.empty() && !std::exchange(work_is_claimed, true);
  }
};

/// How far the executor has come, from open() to the end of stop().
struct LifeOfExecutor {
  bool started = false;  ///< Workers, or the host's thread, take what is queued.
  bool stopping = false;
  bool stopped = false;  ///< No thread of the engine runs any more.
  Status store_failure;  ///< Not OK: nothing more is written.
};

/// When cycles of waits are searched.
struct DeadlockSearch {
  bool is_on = false;        ///< Set when open() has ended.
  bool is_expected = false;  ///< A search is expected and has not ended.
};

struct EngineState {
  EngineState(const ExecutorOptions& options, const EngineAge& age);
  ~EngineState();
  EngineState(const EngineState&) = delete;
  EngineState& operator=(const EngineState&) = delete;

  LiveTable live;
  /// How many children are in records on the way. They count as live already.
  std::size_t spawning = 0;
  /// Records that open() has set aside: they are in the store, and not live.
  std::map<ProcedureId, UnreadableRecord> unreadable;
  TimerQueue timers;
  /// Roots that were submitted while the store is being loaded, durable and kIdle. They are queued
  /// when it is loaded, behind those that it has.
  std::vector<Execution*> held_back;
  /// Waits for procedures that are not in the tables, while the store is being loaded.
  std::vector<EarlyWait> early_waits;
  std::uint64_t last_ticket = 0;   ///< Of those who wait for results.
  EntryList to_settle;             ///< Given to the scheduler before the mutex is released.
  std::vector<TypeCounts> counts;  ///< By ProcedureType::index; no name: none of that type yet.
  /// The limits that OperatorConsole::set_limit() has made durable.
  std::map<ResourceKey, std::uint32_t> limits;

  ProcedureIds ids;
  Submissions submissions;
  Garbage garbage;
  WorksOnTrees works;
  OrdersToTrees orders;
  Spares spares;
  Leftovers leftovers;
  LifeOfExecutor life;
  DeadlockSearch deadlock_search;
  NewsQueue news;
};

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Read run() first, then make(). Everything that the engine would do on threads of its own happens
// inside run_steps(), meanwhile() and SimulatedStore::commit_some(), one thing at a time.

#include "simulation_run.h"

#include <fmt/format.h>
#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "model/looks.h"
#include "pv2/testing/listing_words.h"
#include "records/row_keys.h"
#include "watch/persisted_image.h"
#include "watch/state_audit.h"

namespace pv2::testing {
namespace {

// How many steps a run may take before it counts as endless.
constexpr std::size_t kStepsMax = 20'000;
constexpr int kIdleTurnsMax = 400;
constexpr std::chrono::minutes kIdleTurn{5};

// Within a move the state is checked once in this many moments, which is enough over many seeds.
constexpr std::size_t kMomentsPerAudit = 8;

// Two workers inside each other's steps, with a committer inside those: nothing nests more deeply.
constexpr int kDepthMax = 2;

// After how many looks work on a tree pauses: mostly after each, so that others come between.
std::size_t pauses_of(std::uint64_t seed) {
  constexpr std::array<std::size_t, 6> kPauses{1, 2, 3, 5, 17, kSectionPauses};
  return kPauses[seed % kPauses.size()];
}

bool has_failed(const ProcedureInfo& info) {
  return info.state == ProcedureState::kFailed || info.state == ProcedureState::kRolledBack;
}

// Whether the procedure is about to be undone, once the procedures of its tree that are in flight
// have ended: a restart first records which steps were interrupted, then undoes.
bool waits_to_be_undone(ProcedureExecutor& executor, ProcedureId id) {
  const auto explanation = executor.inspect().explain(id);
  if (!explanation.ok()) return false;
  const std::vector<WaitReason>& reasons = explanation->procedures.front().reasons;
  return std::any_of(reasons.begin(), reasons.end(), [](const WaitReason& reason) {
    return reason.kind == WaitReason::Kind::kTreeInFlight ||
           reason.kind == WaitReason::Kind::kCommitting;
  });
}

// The durable state of the procedures, in words. Left out are trees in which something is being
// undone, because a restart plans the undo again; trees of which something was written without the
// engine hearing of it; and undone procedures, which a restart knows only as part of others.
std::map<std::uint64_t, std::string> durable_words(const std::vector<ProcedureInfo>& list,
                                                   const std::set<std::uint64_t>& without) {
  std::set<std::uint64_t> left_out;
  for (const ProcedureInfo& info : list) {
    if (info.state == ProcedureState::kFailed || without.contains(info.id.value)) {
      left_out.insert(info.root.value);
    }
  }
  std::map<std::uint64_t, std::string> words;
  for (const ProcedureInfo& info : list) {
    if (info.state == ProcedureState::kInitializing || has_failed(info)) continue;
    if (!left_out.contains(info.root.value)) words.emplace(info.id.value, in_words(info));
  }
  return words;
}

// Whether the root ended with ABORTED.
bool was_aborted(const ProcedureExecutor& executor, ProcedureId root) {
  const PersistedProcedure ended = PersistedImage::of_ended(executor, root);
  return std::any_of(ended.fields.begin(), ended.fields.end(), [](const PersistedField& field) {
    return field.name == "error" && field.value.starts_with("ABORTED");
  });
}

// After a restart slightly less is known of a parked tree. A record has room for one error: for a
// member that failed and was then parked, that is the reason for parking. And in a tree parked
// beyond a point of no return, an undo that was under way is resumed only when the tree goes on.
std::string words_of(ProcedureInfo info, const ProcedureInfo& other) {
  if (info.parked) info.error = Status();
  if (info.parked && other.parked && info.undo != other.undo) {
    info.undo = false;
    info.step = 0;
    info.step_name.clear();
  }
  if (info.parked && other.parked && other.state == ProcedureState::kFailed) {
    info.state = other.state;
    info.attempt = other.attempt;
  }
  return in_words(info);
}

}  // namespace

SimulationRun::SimulationRun(const MakeSimulation& make, std::uint64_t seed)
    : seed_(seed), story_(make(seed)) {
  story_->add_types(types_);
  story_->meanwhile_ = [this] { meanwhile(); };
}

SimulationRun::~SimulationRun() { leave(); }

void SimulationRun::run(std::span<const SimulationMove> moves) {
  story_->furnish(disk_);
  open();
  for (std::size_t i = 0; i < moves.size() && findings_.empty(); ++i) {
    moment_ = fmt::format("after move {}", i + 1);
    make(moves[i]);
    if (findings_.empty()) check();
  }
  if (!findings_.empty()) return;
  moment_ = "at the end";
  wind_up();
}

ExecutorOptions SimulationRun::options() {
  ExecutorOptions options;
  options.registry = types_;
  options.workers = 0;
  options.clock = clock_;
  options.seed = seed_;
  options.log = {};
  story_->configure(options);
  return options;
}

void SimulationRun::open() {
  leave();
  ++lives_;
  ExecutorOptions all = options();
  Looks::pauses_at = pauses_of(seed_);
  auto store = std::make_unique<SimulatedStore>(disk_, limits_);
  std::unique_ptr<ProcedureScheduler> inner;
  if (seed_ % 4 == 0) {
    inner = std::make_unique<SimpleProcedureScheduler>(*clock_);
  } else {
    inner = std::make_unique<MasterProcedureScheduler>(*clock_);
  }
  auto scheduler = std::make_unique<ChoosingScheduler>(std::move(inner));
  SimulatedStore* const opened_store = store.get();
  ChoosingScheduler* const opened_scheduler = scheduler.get();
  all.store = std::move(store);
  all.scheduler = std::move(scheduler);
  auto opened = ProcedureExecutor::open(std::move(all));
  Looks::pauses_at = kSectionPauses;
  if (!opened.ok()) {
    return findings_.add("the store cannot be opened again: " + opened.status().to_string());
  }
  executor_ = *std::move(opened);
  store_ = opened_store;
  scheduler_ = opened_scheduler;
  SectionLooks::at_each_pause(*executor_, [this] { meanwhile(); });
  store_->set_budget(0);
  listen();
  executor_->start();
  story_->begin_life(*executor_);
}

// While a listener is slow, other threads go on.
void SimulationRun::listen() {
  Result<Subscription> subscription = executor_->listen([this](const ProcedureNews& news) {
    meanwhile();
    if (news.missed != 0) findings_.add("a listener that heard of everything missed something");
    const bool ended = news.kind == ProcedureNews::Kind::kFinished && news.id == news.root;
    if (ended) ended_roots_.insert(news.id.value);
  });
  if (!subscription.ok()) {
    findings_.add("no listener can be added: " + subscription.status().to_string());
  } else {
    news_ = *std::move(subscription);  // the one before outlived its executor
  }
}

void SimulationRun::leave() {
  disturbed_ = false;
  if (store_ != nullptr) store_->set_budget(SIZE_MAX);
  executor_.reset();
  store_ = nullptr;
  scheduler_ = nullptr;
}

void SimulationRun::make(const SimulationMove& move) {
  using Kind = SimulationMove::Kind;
  between_ = Random(move.choices);
  disturbed_ = move.choices != 0;
  switch (move.kind) {
    case Kind::kOperate:
      // A verb that blocks makes everything before it durable, or it would block for ever.
      store_->set_budget(SIZE_MAX);
      story_->operate(move.count, *executor_);
      store_->set_budget(0);
      break;
    case Kind::kSteps:
      run_steps(move.count, move.choices);
      break;
    case Kind::kCommit:
      store_->commit_some(move.count);
      break;
    case Kind::kSettle:
      settle(move.choices);
      break;
    case Kind::kAnswer:
      answer(move.choices);
      break;
    case Kind::kTime:
      clock_->advance(std::chrono::milliseconds(move.count));
      break;
    case Kind::kWallJump:
      clock_->jump_wall(std::chrono::milliseconds(move.count) * (move.choices % 2 == 1 ? -1 : 1));
      break;
    case Kind::kFault:
      store_->fail_after(move.count, move.choices % 2);
      break;
    case Kind::kStop:
      if (move.count != 0 && disturbed_) stop_in_the_middle(move.count, move.choices);
      open();
      break;
    case Kind::kCrash:
      crash(move.count);
      break;
  }
  disturbed_ = false;
}

// Runs what is runnable; its commits wait. Callbacks, offloaded work and timers run as well.
void SimulationRun::run_steps(std::size_t count, std::uint64_t choices) {
  store_->set_budget(0);
  scheduler_->allow(count, Random(choices), choices == 0 ? 1 : 1 + choices % 6);
  steps_ += executor_->run_until_idle(count);
}

void SimulationRun::stop_in_the_middle(std::size_t moments, std::uint64_t choices) {
  stop_after_ = moments;
  run_steps(4, choices);
  stop_after_ = 0;
}

// From now on no step begins, and what was handed to the store becomes durable.
void SimulationRun::begin_to_stop() {
  store_->set_budget(SIZE_MAX);
  story_->stop_begins();
  std::thread([this] {
    const Status late = executor_->stop(std::chrono::milliseconds(0));
    if (late.code() != StatusCode::kDeadlineExceeded) {
      findings_.add("a stop in the middle of a step says " + late.to_string());
    }
  }).join();
}

void SimulationRun::settle(std::uint64_t choices) {
  store_->set_budget(SIZE_MAX);
  scheduler_->allow(kStepsMax, Random(choices), 1);
  const std::size_t ran = executor_->run_until_idle(kStepsMax);
  steps_ += ran;
  store_->set_budget(0);
  if (ran >= kStepsMax) return findings_.add("it runs on and on without anything ending");
  compare_with_reload();
}

void SimulationRun::answer(std::uint64_t choices) {
  const std::size_t due = story_->answers_due();
  if (due > 0) story_->answer(static_cast<std::size_t>(choices % due));
}

// The next life must find what was durable; nothing that was listed may be older or gone.
void SimulationRun::crash(std::size_t unheard) {
  store_->cut(unheard);
  const std::set<std::uint64_t> without = store_->unheard();
  const auto listed = executor_->inspect().list();
  const auto before = durable_words(listed, without);
  open();
  if (executor_ == nullptr) return;
  const auto list = executor_->inspect().list();
  const auto after = durable_words(list, without);
  for (const auto& [id, words] : before) {
    const auto found = after.find(id);
    // An abort that was durable, but that no worker had looked at yet, has taken effect. Where
    // there is nothing to undo, the record of the end may be durable already.
    const auto has_id = [wanted = id](const ProcedureInfo& info) {
      return info.id.value == wanted;
    };
    if (found == after.end() && std::any_of(list.begin(), list.end(), has_id)) continue;
    const ProcedureId root = std::find_if(listed.begin(), listed.end(), has_id)->root;
    if (found == after.end() && was_aborted(*executor_, root)) continue;
    if (found == after.end()) {
      findings_.add(fmt::format("procedure {} was listed and is not found after the crash:\n    {}",
                                id, words));
    } else if (found->second != words) {
      findings_.add(fmt::format("before the crash\n    {}\n  was listed, after it\n    {}", words,
                                found->second));
    }
  }
}

// Called from inside a step, this lets other threads do something.
void SimulationRun::meanwhile() {
  if (!disturbed_ || depth_ >= kDepthMax || executor_ == nullptr) return;
  ++depth_;
  // Work on trees pauses here too, so this check sees what holds between two sections.
  if (++moments_ % kMomentsPerAudit == 0) check_state();
  if (stop_after_ != 0 && --stop_after_ == 0) begin_to_stop();
  switch (between_.below(8)) {
    case 0:
      store_->commit_some(1 + between_.below(3));
      break;
    case 1:
      store_->commit_some(SIZE_MAX);
      break;
    case 2:
      answer(between_.next());
      break;
    case 3: {  // another worker
      const std::uint64_t choices = between_.next() | 1;
      scheduler_->allow(1 + between_.below(2), Random(choices), 1);
      steps_ += executor_->run_until_idle(1);
      break;
    }
    case 4:
      clock_->advance(std::chrono::milliseconds(1 + between_.below(2000)));
      break;
    case 5:
      story_->interfere(between_.next(), *executor_);
      break;
    default:
      break;
  }
  --depth_;
}

void SimulationRun::wind_up() {
  if (!executor_->health().ok()) crash(0);
  for (int idle = 0; idle < kIdleTurnsMax && findings_.empty();) {
    settle(0);
    if (findings_.empty()) check();
    if (!findings_.empty()) return;
    if (!executor_->health().ok()) {  // a fault that was announced before the end
      crash(0);
      continue;
    }
    if (story_->answers_due() > 0) {
      story_->answer(0);
      continue;
    }
    if (story_->wind_up(*executor_)) continue;
    const auto list = executor_->inspect().list();
    if (std::all_of(list.begin(), list.end(),
                    [&](const ProcedureInfo& info) { return story_->may_stay(info); })) {
      SimulationEnd end{*executor_, *store_, lives_, findings_};
      if (list.empty()) check_no_locks_left();
      story_->check_end(end);
      if (list.empty() && findings_.empty()) check_expiry();
      return;
    }
    clock_->advance(kIdleTurn);
    ++idle;
  }
  if (!findings_.empty()) return;
  std::string stuck = "these never end:";
  for (const ProcedureInfo& info : executor_->inspect().list()) {
    if (story_->may_stay(info)) continue;
    stuck += "\n    " + in_words(info);
    if (const auto why = executor_->inspect().explain(info.id); why.ok())
      stuck += "\n" + to_string(*why);
  }
  for (const WaitCycle& cycle : executor_->inspect().deadlocks())
    stuck += "\n    " + to_string(cycle);
  findings_.add(stuck);
}

bool SimulationRun::quiet() const {
  return store_->queued() == 0 && scheduler_->in_hand() == 0 && executor_->health().ok();
}

void SimulationRun::check() {
  if (executor_ == nullptr) return;
  const std::vector<ProcedureInfo> list = executor_->inspect().list();
  for (const ProcedureInfo& info : list) {
    const auto [at, is_new] =
        seen_.try_emplace(info.id.value, Identity{info.type, info.parent, info.root});
    Identity& known = at->second;
    if (!is_new &&
        (known.type != info.type || known.parent != info.parent || known.root != info.root)) {
      findings_.add(fmt::format("procedure {} was a {} and is now\n    {}", info.id.value,
                                known.type, in_words(info)));
    }
    const bool failed = has_failed(info);
    // For a tree parked beyond a point of no return, a restart does not plan what else is undone.
    const bool still_fails =
        failed || (known.failed && (info.parked || waits_to_be_undone(*executor_, info.id)));
    if (known.failed && !still_fails && !story_->may_be_repaired(info)) {
      findings_.add("what had failed goes on:\n    " + in_words(info));
    }
    known.failed = still_fails;
    if (ended_roots_.contains(info.id.value)) {
      findings_.add("a listener was told of its end, and it lives:\n    " + in_words(info));
    }
    if (info.quarantined) findings_.add("nothing was damaged, but\n    " + in_words(info));
  }
  check_state();
  check_locks();
  check_sections();
  story_->check(*executor_, findings_);
}

// Checks that facts which the engine keeps in two places agree.
void SimulationRun::check_state() {
  for (const std::string& contradiction : StateAudit::of(*executor_)) {
    findings_.add("the engine contradicts itself: " + contradiction);
  }
}

// A thread that holds the engine's mutex stops all others, so a section may look at few procedures.
void SimulationRun::check_sections() {
  const std::size_t most = SectionLooks::of(*executor_).most;
  if (most <= kSectionLooksMax) return;
  findings_.add(fmt::format("a critical section has looked at {} procedures, and {} are the most",
                            most, kSectionLooksMax));
}

void SimulationRun::check_locks() {
  for (const LockInfo& lock : executor_->inspect().locks()) {
    const bool exclusive = std::any_of(
        lock.holders.begin(), lock.holders.end(),
        [](const LockInfo::Party& party) { return party.mode == LockMode::kExclusive; });
    std::uint64_t owner = 0;
    for (const LockInfo::Party& party : lock.holders) {
      const auto known = seen_.find(party.id.value);
      // The scheduler already knows a child that is about to become durable.
      const std::uint64_t root = known == seen_.end() ? 0 : known->second.root.value;
      if (root == 0) continue;
      if (exclusive && owner != 0 && owner != root) {
        findings_.add(fmt::format("{} is held exclusively, and by procedures of {} and {} at once",
                                  to_string(lock.key), owner, root));
      }
      owner = root;
    }
  }
}

void SimulationRun::check_no_locks_left() {
  for (const LockInfo& lock : executor_->inspect().locks()) {
    if (lock.holders.empty() && lock.waiters.empty()) continue;  // listed because it has a limit
    findings_.add(to_string(lock.key) + " is locked though nothing is live");
  }
}

// When all results have expired, no row is left of any procedure. Twice the time to live is needed
// because each crash has made the results seem younger, by minutes.
void SimulationRun::check_expiry() {
  const Duration ttl = options().retention.ttl;
  if (ttl == Duration::zero()) return;
  clock_->advance(2 * ttl);
  settle(0);
  if (!executor_->health().ok()) return;  // a fault that was announced before the end
  const auto look = [this](Space space, std::string_view prefix) {
    const Status scanned = store_->scan(space, prefix, [&](const StoredRow& row) {
      findings_.add(fmt::format("a row of {} bytes is left in space {} when all results expired",
                                row.key.size(), static_cast<char>(space)));
      return Status();
    });
    if (!scanned.ok()) findings_.add(scanned.to_string());
  };
  for (const Space space : {Space::kProcedure, Space::kResult, Space::kNonce}) look(space, "");
  look(Space::kEngine, kKeptKeyPrefix);
}

void SimulationRun::compare_with_reload() {
  if (!quiet()) return;
  ExecutorOptions all = options();
  all.store = memory(disk_->clone());
  const auto other = ProcedureExecutor::open(std::move(all));
  if (!other.ok()) {
    return findings_.add("a restart here would fail: " + other.status().to_string());
  }
  const auto listed = executor_->inspect().list();
  const auto found = (*other)->inspect().list();
  const ProcedureInfo nothing;
  for (std::size_t i = 0; i < std::max(listed.size(), found.size()); ++i) {
    const ProcedureInfo& mine = i < listed.size() ? listed[i] : nothing;
    const ProcedureInfo& others = i < found.size() ? found[i] : nothing;
    const std::string here = words_of(mine, others);
    const std::string there = words_of(others, mine);
    if (here != there) {
      return findings_.add(
          fmt::format("a restart would find\n    {}\n  where this is listed\n    {}", there, here));
    }
  }
}

}  // namespace pv2::testing

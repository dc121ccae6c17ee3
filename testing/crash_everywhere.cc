// SPDX-License-Identifier: Apache-2.0
//
// Read crash_everywhere() at the end first. A Campaign makes plays; a Play is one story over one or
// more lives of the machine.

#include "pv2/testing/crash_everywhere.h"

#include <fmt/format.h>
#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "commit_narrator.h"
#include "model/looks.h"
#include "pv2/testing/fault_store.h"
#include "pv2/testing/listing_words.h"
#include "restart_check.h"
#include "watch/state_audit.h"

namespace pv2::testing {
namespace {

// No test waits for longer than this many idle turns.
constexpr int kLifeIdleTurnsMax = 2000;
constexpr std::chrono::seconds kLifeIdleTurn{30};
// No test takes more steps in one life.
constexpr std::size_t kLifeStepsMax = 20'000;

// When a life ends.
struct CrashPoint {
  enum class Kind { kNever, kBefore, kAfter, kOperation } kind = Kind::kNever;
  std::size_t number = 0;
};

// What each commit of an undisturbed play was, by number.
using Narration = std::map<std::size_t, std::string>;

std::string point_in_words(const CrashPoint& point, const Narration& narration) {
  std::string what;
  if (const auto at = narration.find(point.number); at != narration.end()) {
    what = fmt::format(" ({})", at->second);
  }
  switch (point.kind) {
    case CrashPoint::Kind::kNever:
      return "nothing crashed";
    case CrashPoint::Kind::kBefore:
      return fmt::format("the machine crashed before commit {}{}", point.number, what);
    case CrashPoint::Kind::kAfter:
      return fmt::format("the machine crashed after commit {}{}", point.number, what);
    case CrashPoint::Kind::kOperation:
      return fmt::format("the power was cut before file operation {}", point.number);
  }
  return {};
}

class Play {
 public:
  Play(const MakeStory& make, const CrashPlan& plan, const MakeGround& ground,
       std::size_t steps_per_turn, Findings& findings)
      : story_(make()),
        plan_(plan),
        ground_(ground()),
        steps_per_turn_(steps_per_turn),
        findings_(findings) {
    story_->add_types(types_);
  }
  ~Play() { leave(); }
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;

  // Plays one life. True when the story came to its end; commits() is the number of its commits.
  bool live(const CrashPoint& point, bool compare = false) {
    if (point.kind == CrashPoint::Kind::kOperation) ground_->crash_before_operation(point.number);
    const bool ended = open(point) && go_on(compare);
    if (narrator_) narration_.insert(narrator_->all().begin(), narrator_->all().end());
    commits_ = faults_ != nullptr ? faults_->commits() : 0;
    if (!ended) {
      ++crashes_;
      remember(point);
      ground_->crash();
    }
    return ended;
  }

  // Checks the end, and checks it again after one more restart.
  void check() {
    check_now();
    if (!findings_.empty()) return;
    left_.emplace(*executor_);
    leave();
    if (!live({})) findings_.add("one more restart after the end found something to do");
    if (findings_.empty()) check_now();
    leave();
  }

  void leave() {
    if (faults_ != nullptr) faults_->observe({});  // the executor's destruction is not observed
    narrator_.reset();
    executor_.reset();
    faults_ = nullptr;
  }

  [[nodiscard]] std::size_t commits() const { return commits_; }
  [[nodiscard]] std::size_t operations() const { return ground_->operations(); }
  [[nodiscard]] const Narration& narration() const { return narration_; }
  [[nodiscard]] const EndState& end_state() const { return end_state_; }

 private:
  ExecutorOptions options() {
    ExecutorOptions options;
    options.registry = types_;
    options.workers = 0;
    options.clock = clock_;
    options.retry = plan_.retry;
    options.log = {};
    return options;
  }

  bool open(const CrashPoint& point) {
    leave();
    // One step at a time also means that work on a tree pauses after each member.
    Looks::pauses_at = steps_per_turn_ == 1 ? 1 : kSectionPauses;
    ExecutorOptions all = options();
    auto faults = std::make_unique<FaultStore>(ground_->open_store());
    FaultStore* const armed = faults.get();
    if (point.kind == CrashPoint::Kind::kBefore) {
      armed->crash_before(point.number, FaultStore::AfterCrash::kFail);
    }
    if (point.kind == CrashPoint::Kind::kAfter) {
      armed->crash_after(point.number, FaultStore::AfterCrash::kFail);
    }
    unheard_.reset();
    faults->observe([this, point](std::size_t n, const RowBatch& batch) {
      if (narrator_) narrator_->note(n, batch);
      if (point.kind == CrashPoint::Kind::kAfter && n == point.number) unheard_ = batch;
    });
    all.store = std::move(faults);
    auto opened = ProcedureExecutor::open(std::move(all));
    Looks::pauses_at = kSectionPauses;
    if (!opened.ok()) {
      // Opening makes one commit, the first: the ids that this life may issue.
      const bool crashed_there = point.kind == CrashPoint::Kind::kOperation ||
                                 (point.kind != CrashPoint::Kind::kNever && point.number == 1);
      if (!crashed_there) {
        findings_.add("the store could not be opened: " + opened.status().to_string());
      }
      return false;
    }
    faults_ = armed;
    executor_ = *std::move(opened);
    executor_->start();
    narration_[1] = "the range of ids of this life";
    narrator_.emplace(*executor_, types_);
    if (left_) compare(*left_, *executor_);
    left_.reset();
    return true;
  }

  // Everything that this life knew is on the disk, and after a crash behind a commit also that
  // commit. A crash between operations beneath the commits may leave any part of them, so then
  // there is nothing to compare with.
  void remember(const CrashPoint& point) {
    if (!executor_ || point.kind == CrashPoint::Kind::kOperation) return;
    left_.emplace(*executor_);
    if (unheard_) left_->leave_out(*unheard_);
  }

  bool go_on(bool compare_each_turn) {
    story_->begin_life(*executor_);
    std::size_t steps = 0;
    for (int idle = 0; idle < kLifeIdleTurnsMax && steps < kLifeStepsMax && findings_.empty();) {
      const std::size_t ran = executor_->run_until_idle(steps_per_turn_);
      steps += ran;
      narrator_->settle();
      if (!executor_->health().ok()) return false;
      check_state();
      if (compare_each_turn) compare_with_reload();
      story_->after_turn(*executor_);
      if (ran != 0 || story_->stir(*executor_)) continue;
      if (executor_->inspect().live_procedures() == 0) return true;
      clock_->advance(kLifeIdleTurn);
      ++idle;
    }
    if (!findings_.empty()) return false;
    std::string left;
    for (const ProcedureInfo& info : executor_->inspect().list())
      left += "\n      " + in_words(info);
    findings_.add("it does not end; this is left:" + left);
    return false;
  }

  // Checks that facts which the engine keeps in two places agree.
  void check_state() {
    for (const std::string& contradiction : StateAudit::of(*executor_)) {
      findings_.add("the engine contradicts itself: " + contradiction);
    }
  }

  void compare_with_reload() {
    if (ground_->disk() == nullptr) return;
    ExecutorOptions all = options();
    all.store = memory(ground_->disk()->clone());
    const auto other = ProcedureExecutor::open(std::move(all));
    if (!other.ok()) {
      return findings_.add("a restart here would fail: " + other.status().to_string());
    }
    compare(RestartCheck(*executor_), **other);
  }

  void compare(const RestartCheck& before, const ProcedureExecutor& reloaded) {
    const std::string difference = before.difference(reloaded);
    if (!difference.empty()) findings_.add(difference);
  }

  void check_now() {
    if (!executor_->inspect().locks().empty())
      findings_.add("locks are left although nothing is live");
    CrashEnd end{*executor_, *faults_, crashes_, findings_};
    story_->check_end(end);
    end_state_ = story_->end_state();
  }

  std::unique_ptr<CrashStory> story_;
  const CrashPlan& plan_;
  std::unique_ptr<Ground> ground_;
  const std::size_t steps_per_turn_;
  Findings& findings_;
  ProcedureRegistry types_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  FaultStore* faults_ = nullptr;  // in executor_
  std::unique_ptr<ProcedureExecutor> executor_;
  std::optional<CommitNarrator> narrator_;
  Narration narration_;
  std::optional<RestartCheck> left_;  // what the previous life knew at its end
  std::optional<RowBatch> unheard_;   // the last batch of this life: written, but not answered
  EndState end_state_;
  std::size_t commits_ = 0;
  std::size_t crashes_ = 0;
};

class Campaign {
 public:
  Campaign(const MakeStory& make, const CrashPlan& plan) : make_(make), plan_(plan) {}

  void everywhere(const MakeGround& ground, bool on_memory, std::size_t steps_per_turn) {
    ground_ = &ground;
    on_memory_ = on_memory;
    steps_per_turn_ = steps_per_turn;
    narration_.clear();
    using Kind = CrashPoint::Kind;
    const std::size_t commits = play({}).front();
    const std::size_t operations = operations_;
    if (report_.commits == 0) report_.commits = commits;
    std::vector<std::pair<CrashPoint, std::size_t>> recoveries;
    for (std::size_t n = 1; n <= commits; ++n) {
      for (const Kind kind : {Kind::kBefore, Kind::kAfter}) {
        const CrashPoint point{kind, n};
        recoveries.emplace_back(point, play({point}).back());
      }
    }
    every_life({Kind::kAfter, 2},
               "after each commit the machine crashed, so that every step ran on "
               "an object made from its record");
    every_life({Kind::kBefore, 3},
               "every step ran twice: its record was lost in a crash, and it ran again");
    for (const auto& [first, recovery] : recoveries) {
      if (!plan_.twice || !on_memory_) break;
      const Kind other = first.kind == Kind::kBefore ? Kind::kAfter : Kind::kBefore;
      for (std::size_t m = 1; m <= recovery; ++m) play({first, {other, m}});
    }
    if (on_memory_ || !plan_.operations) return;
    for (std::size_t n = 0; n < operations; ++n) play({{Kind::kOperation, n}});
  }

  [[nodiscard]] CrashReport report() && { return std::move(report_); }

 private:
  // One play: one life that ends at each of `points`, then one that is not interrupted. Returns the
  // number of commits of each life.
  std::vector<std::size_t> play(const std::vector<CrashPoint>& points) {
    std::string words;
    for (const CrashPoint& point : points) {
      if (!words.empty()) words += "; then ";
      // From the second life on, a play makes other commits than the undisturbed play.
      words += point_in_words(point, words.empty() ? narration_ : Narration());
    }
    if (points.empty()) words = point_in_words(CrashPoint{}, narration_);
    std::vector<std::size_t> commits;
    act(words, [&](Play& play) {
      bool ended = false;
      for (const CrashPoint& point : points) {
        if (!ended) ended = play.live(point);
        commits.push_back(play.commits());
        if (!findings_.empty()) return;
      }
      if (!ended) {
        ended = play.live({}, on_memory_ && points.empty());
        commits.push_back(play.commits());
      }
      if (points.empty()) narration_ = play.narration();
      if (ended) play.check();
      if (!ended && findings_.empty()) findings_.add("the store failed though nothing crashed");
    });
    if (commits.empty()) commits.push_back(0);
    return commits;
  }

  // Every life of the play ends at `point`, until the story ends before it is reached.
  void every_life(const CrashPoint& point, const std::string& words) {
    act(words, [&](Play& play) {
      for (std::size_t lives = 0; lives < 100'000 && findings_.empty(); ++lives) {
        if (play.live(point)) return play.check();
      }
      if (findings_.empty()) findings_.add("it does not end");
    });
  }

  void act(const std::string& what, const std::function<void(Play&)>& script) {
    if (!report_.ok()) return;
    ++report_.plays;
    findings_ = Findings();
    const auto perform = [&] {
      Play play(make_, plan_, *ground_, steps_per_turn_, findings_);
      script(play);
      operations_ = play.operations();
      if (findings_.empty()) compare_ends(play.end_state());
    };
    const std::string words =
        fmt::format("{}, {}: {}", on_memory_ ? "memory store" : (*ground_)()->name(),
                    steps_per_turn_ == 1 ? "one step at a time" : "in batches", what);
    plan_.around ? plan_.around(words, perform) : perform();
    if (!findings_.empty()) report_.failure = words + "\n" + findings_.words();
  }

  void compare_ends(const EndState& end) {
    if (!reference_) {
      reference_ = end;
      return;
    }
    if (end.world != reference_->world) {
      findings_.add(fmt::format(
          "the world ended otherwise than without a crash:\n      {}\n    instead of\n      {}",
          end.world, reference_->world));
    }
    if (end.id == reference_->id && end.result != reference_->result) {
      findings_.add(fmt::format("the result is {}; without a crash it is {}", end.result,
                                reference_->result));
    }
  }

  const MakeStory& make_;
  const CrashPlan& plan_;
  const MakeGround* ground_ = nullptr;
  bool on_memory_ = true;
  std::size_t steps_per_turn_ = 1;
  std::size_t operations_ = 0;
  Narration narration_;
  std::optional<EndState> reference_;  // of the first play, which is not disturbed
  Findings findings_;
  CrashReport report_;
};

}  // namespace

CrashReport crash_everywhere(const MakeStory& make, const CrashPlan& plan) {
  const MakeGround in_memory = [] { return std::make_unique<MemoryGround>(); };
  Campaign campaign(make, plan);
  campaign.everywhere(in_memory, true, 1);
  campaign.everywhere(in_memory, true, kLifeStepsMax);
  for (const MakeGround& ground : plan.grounds) campaign.everywhere(ground, false, kLifeStepsMax);
  return std::move(campaign).report();
}

}  // namespace pv2::testing

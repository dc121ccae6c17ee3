// SPDX-License-Identifier: Apache-2.0
//
// Read crash_everywhere() at the end first. A Play is one story over one or more lives of the
// machine.

#include "support/crash_everywhere.h"

#include <pv2/store/leveldb_procedure_store.h>
#include <pv2/store/memory_procedure_store.h>

#include <optional>
#include <utility>

#include "support/catch.h"
#include "support/crash_env.h"
#include "support/fault_store.h"
#include "support/listing_words.h"

namespace pv2::testing {
namespace {

// Nothing in a test waits for longer than this many idle hours.
constexpr int kIdleTurnsMax = 2000;
constexpr std::chrono::seconds kIdleTurn{30};

// Where the store lies. Over a crash it keeps what is durable.
class Ground {
 public:
  virtual ~Ground() = default;
  virtual std::unique_ptr<ProcedureStore> open_store() = 0;
  virtual void crash() = 0;
  virtual void power_on() = 0;
  virtual void cut_power_before(std::size_t /*operation*/) {}
  virtual std::size_t operations() { return 0; }
  virtual std::shared_ptr<MemoryDisk> disk() { return nullptr; }
};

class MemoryGround final : public Ground {
 public:
  std::unique_ptr<ProcedureStore> open_store() override { return memory(disk_); }
  void crash() override {}
  void power_on() override {}
  std::shared_ptr<MemoryDisk> disk() override { return disk_; }

 private:
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
};

class LevelDbGround final : public Ground {
 public:
  std::unique_ptr<ProcedureStore> open_store() override {
    return leveldb("store", {.committer = LevelDbOptions::Committer::kPump,
                             .env = &env_,
                             .sync_directory = env_.directory_sync()});
  }
  void crash() override { env_.crash(CrashEnv::TornTail::kRandom); }
  void power_on() override { env_.reboot(); }
  void cut_power_before(std::size_t operation) override {
    env_.crash_before_operation(operation, CrashEnv::TornTail::kRandom);
  }
  std::size_t operations() override { return env_.operations(); }

 private:
  CrashEnv env_;
};

// When a life ends, and in words.
struct CrashPoint {
  enum class Kind { kNever, kBefore, kAfter, kPower } kind = Kind::kNever;
  std::size_t number = 0;

  [[nodiscard]] std::string in_words() const {
    switch (kind) {
      case Kind::kNever:
        return "no crash";
      case Kind::kBefore:
        return "a crash before commit " + std::to_string(number);
      case Kind::kAfter:
        return "a crash after commit " + std::to_string(number);
      case Kind::kPower:
        return "a power cut before file operation " + std::to_string(number);
    }
    return {};
  }
};

class Play {
 public:
  Play(const MakeStory& make, const CrashPlan& plan, std::unique_ptr<Ground> ground,
       std::size_t steps_per_turn)
      : story_(make()), plan_(plan), ground_(std::move(ground)), steps_per_turn_(steps_per_turn) {}

  // One life. True when the story came to its end; what it committed is in commits().
  bool live(const CrashPoint& point, bool compare = false) {
    ground_->power_on();
    if (point.kind == CrashPoint::Kind::kPower) ground_->cut_power_before(point.number);
    const bool ended = open(point) && go_on(compare);
    commits_ = faults_ != nullptr ? faults_->commits() : 0;
    if (!ended) {
      ++crashes_;
      ground_->crash();
    }
    return ended;
  }

  // The end, also after one more restart.
  void check() {
    check_now();
    leave();
    REQUIRE(live({}));
    check_now();
    leave();
  }

  void leave() {
    executor_.reset();
    faults_ = nullptr;
  }

  [[nodiscard]] std::size_t commits() const { return commits_; }
  [[nodiscard]] std::size_t operations() { return ground_->operations(); }

 private:
  ExecutorOptions options() {
    ExecutorOptions options;
    story_->add_types(options.registry);
    options.workers = 0;
    options.clock = clock_;
    options.retry = plan_.retry;
    options.log = {};
    return options;
  }

  bool open(const CrashPoint& point) {
    leave();
    ExecutorOptions all = options();
    auto faults = std::make_unique<FaultStore>(ground_->open_store());
    FaultStore* const armed = faults.get();
    if (point.kind == CrashPoint::Kind::kBefore) {
      armed->crash_before(point.number, FaultStore::AfterCrash::kFail);
    }
    if (point.kind == CrashPoint::Kind::kAfter) {
      armed->crash_after(point.number, FaultStore::AfterCrash::kFail);
    }
    all.store = std::move(faults);
    auto opened = ProcedureExecutor::open(std::move(all));
    if (!opened.ok()) {
      INFO("opening the store failed: " << opened.status().to_string());
      // Opening makes one commit, the first: the ids that this life may issue.
      REQUIRE((point.kind == CrashPoint::Kind::kPower || point.number == 1));
      return false;
    }
    faults_ = armed;
    executor_ = *std::move(opened);
    executor_->start();
    return true;
  }

  bool go_on(bool compare) {
    story_->begin_life(*executor_);
    for (int idle = 0; idle < kIdleTurnsMax;) {
      const std::size_t ran = executor_->run_until_idle(steps_per_turn_);
      if (!executor_->health().ok()) return false;
      if (compare) compare_with_reload();
      if (ran != 0 || story_->stir(*executor_)) continue;
      if (executor_->live_procedures() == 0) return true;
      clock_->advance(kIdleTurn);
      ++idle;
    }
    for (const ProcedureInfo& info : executor_->list()) UNSCOPED_INFO(in_words(info));
    FAIL("the story does not end; what is still live is listed above");
    return false;
  }

  void compare_with_reload() {
    if (ground_->disk() == nullptr) return;
    ExecutorOptions all = options();
    all.store = memory(ground_->disk()->clone());
    auto other = ProcedureExecutor::open(std::move(all));
    REQUIRE(other.status().to_string() == "OK");
    REQUIRE(in_words((*other)->list()) == in_words(executor_->list()));
  }

  void check_now() {
    REQUIRE(executor_->locks().empty());
    story_->check_end(*executor_, *faults_, crashes_);
  }

  std::unique_ptr<CrashStory> story_;
  const CrashPlan& plan_;
  std::unique_ptr<Ground> ground_;
  const std::size_t steps_per_turn_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  FaultStore* faults_ = nullptr;  // in executor_
  std::unique_ptr<ProcedureExecutor> executor_;
  std::size_t commits_ = 0;
  std::size_t crashes_ = 0;
};

class Campaign {
 public:
  Campaign(const MakeStory& make, const CrashPlan& plan) : make_(make), plan_(plan) {}

  // One play over the lives that end at `points`, and a last one that does not.
  // Returns the commits of each life.
  std::vector<std::size_t> play(const std::vector<CrashPoint>& points) {
    ++plays_;
    std::string words = leveldb_ ? "LevelDB" : "memory store";
    words += steps_per_turn_ == 1 ? ", one step at a time" : ", in batches";
    for (const CrashPoint& point : points) words += ", " + point.in_words();
    INFO(words);
    std::unique_ptr<Ground> ground;
    if (leveldb_) {
      ground = std::make_unique<LevelDbGround>();
    } else {
      ground = std::make_unique<MemoryGround>();
    }
    Play play(make_, plan_, std::move(ground), steps_per_turn_);
    std::vector<std::size_t> commits;
    bool ended = false;
    for (const CrashPoint& point : points) {
      if (!ended) ended = play.live(point);
      commits.push_back(play.commits());
    }
    if (!ended) {
      ended = play.live({}, !leveldb_ && points.empty());
      commits.push_back(play.commits());
    }
    REQUIRE(ended);
    operations_ = play.operations();
    play.check();
    return commits;
  }

  void everywhere(bool leveldb, std::size_t steps_per_turn) {
    leveldb_ = leveldb;
    steps_per_turn_ = steps_per_turn;
    using Kind = CrashPoint::Kind;
    const std::size_t commits = play({}).front();
    const std::size_t operations = operations_;
    for (std::size_t n = 1; n <= commits; ++n) {
      for (const Kind kind : {Kind::kBefore, Kind::kAfter}) {
        const std::size_t recovery = play({{kind, n}}).back();
        if (!plan_.twice || leveldb_) continue;
        for (std::size_t m = 1; m <= recovery; ++m) {
          play({{kind, n}, {kind == Kind::kBefore ? Kind::kAfter : Kind::kBefore, m}});
        }
      }
    }
    if (!leveldb_ || !plan_.power_cuts) return;
    for (std::size_t n = 0; n < operations; ++n) play({{Kind::kPower, n}});
  }

  [[nodiscard]] std::size_t plays() const { return plays_; }

 private:
  const MakeStory& make_;
  const CrashPlan& plan_;
  bool leveldb_ = false;
  std::size_t steps_per_turn_ = 1;
  std::size_t operations_ = 0;
  std::size_t plays_ = 0;
};

}  // namespace

std::size_t crash_everywhere(const MakeStory& make, const CrashPlan& plan) {
  Campaign campaign(make, plan);
  campaign.everywhere(false, 1);
  campaign.everywhere(false, SIZE_MAX);
  if (plan.leveldb) campaign.everywhere(true, SIZE_MAX);
  return campaign.plays();
}

}  // namespace pv2::testing

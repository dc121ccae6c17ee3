// SPDX-License-Identifier: Apache-2.0
//
// Crashes of the LevelDB store while its log is so small that rows move into the database all the
// time, on a file system that loses what was not synced. Rows are inserted, updated, deleted and
// inserted again across the borders of segments. What a new store finds is exactly the state after
// some commit that is not before the last one that was acknowledged. The seed is in every message.

#include <deque>
#include <string>
#include <vector>

#include "pv2/base/random.h"
#include "store_fixture.h"
#include "support/catch.h"
#include "support/row_model.h"

namespace pv2::testing::small_log_crash_test {
namespace {

using Committer = LevelDbOptions::Committer;

// One machine: its disk, and the states between the last one that its clients have seen and the
// newest one that they have asked for.
class Machine {
 public:
  Machine(std::uint64_t seed, Committer committer)
      : random_(seed), committer_(committer), env_(seed) {}

  void live(CrashEnv::TornTail torn) {
    env_.reboot();
    env_.crash_before_operation(random_.below(150), torn);
    RecordingSink sink;
    LevelDbProcedureStore store("store", options());
    Status status = store.recover_lease(sink);
    if (status.ok()) status = look(store);
    if (!status.ok()) {
      INFO(status.to_string());
      REQUIRE_THAT(std::string(status.message()), ContainsSubstring("the power is off"));
      return;
    }
    std::deque<Request> requests;
    for (int i = 0; i < 40 && !env_.is_off(); ++i) {
      for (std::uint64_t group = 1 + random_.below(3); group > 0; --group) {
        Request& request = requests.emplace_back();
        states_.push_back(states_.back());
        request.number = static_cast<int>(states_.size()) - 1;
        states_.back().fill(random_, request.batch, first_ + states_.size() - 1);
        store.commit(request);
      }
      sink.wait_for(requests.size(), store);
    }
    for (const RecordingSink::Answer& answer : sink.answers()) {
      if (answer.status.ok()) acknowledged_ = std::max(acknowledged_, answer.number);
    }
    env_.crash(torn);
  }

  void inspect() {
    env_.reboot();
    RecordingSink sink;
    LevelDbProcedureStore store("store", options());
    const Status opened = store.recover_lease(sink);
    INFO(opened.to_string());
    REQUIRE(opened.ok());
    REQUIRE(look(store).ok());
    store.close();
  }

 private:
  LevelDbOptions options() {
    LevelDbOptions options = on_crash_env(env_, 500 + random_.below(6'000), 2 + random_.below(3));
    options.write_buffer_bytes = 64 << 10;
    options.committer = committer_;
    return options;
  }

  // What was read is durable from now on, and the next commit goes on from there.
  Status look(LevelDbProcedureStore& store) {
    const auto latest = store.get(Space::kEngine, "latest");
    if (!latest.ok()) return latest.status();
    const std::uint64_t found = *latest ? std::stoull(**latest) : 0;
    REQUIRE(found >= first_ + static_cast<std::uint64_t>(acknowledged_));
    REQUIRE(found < first_ + states_.size());
    const auto rows = load_rows(store);
    if (!rows.empty() && rows.back().starts_with("failed")) {
      return Status(StatusCode::kIoError, rows.back());
    }
    const RowModel state = states_[found - first_];
    REQUIRE(rows == state.lines());
    states_.assign(1, state);
    first_ = found;
    acknowledged_ = 0;
    return Status();
  }

  Random random_;
  const Committer committer_;
  CrashEnv env_;
  std::uint64_t first_ = 0;          // the sequence of the first state
  std::vector<RowModel> states_{1};  // after each commit
  int acknowledged_ = 0;             // of the states
};

TEST_CASE("rows that move between a small log and the database survive any power cut") {
  const auto torn =
      GENERATE(CrashEnv::TornTail::kNone, CrashEnv::TornTail::kRandom, CrashEnv::TornTail::kBytes);
  const auto committer = GENERATE(Committer::kPump, Committer::kThread);
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed << ", torn tail " << static_cast<int>(torn) << ", "
                 << (committer == Committer::kPump ? "pumped" : "threaded"));
    Machine machine(seed, committer);
    for (int life = 0; life < 8; ++life) machine.live(torn);
    machine.inspect();
  }
}

}  // namespace
}  // namespace pv2::testing::small_log_crash_test

// SPDX-License-Identifier: Apache-2.0
//
// Lives of a store with a small log, so that rows move into the database all the time. A life ends
// when the process is killed, and the next one finds all that it wrote, synced or not. Or the power
// is cut, and what was not synced is lost. Rows are inserted, updated, deleted and inserted again
// across the borders of segments. A new store finds exactly the state after some commit, and that
// commit is not older than the last one that was acknowledged.
//
// After a power cut the next life has what the disk had, so it cannot be lost again. After a kill
// it may have read what no sync has reached, and a store must not rely on that before it has
// written it again.

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "pv2/base/random.h"
#include "pv2/testing/seeds.h"
#include "step_files.h"
#include "store_fixture.h"
#include "support/catch.h"
#include "support/row_model.h"

namespace pv2::testing::kill_and_power_cut_test {
namespace {

using Committer = LevelDbOptions::Committer;

enum class End { kKill, kPowerCut };

// A machine, and the states that its disk may have: from the oldest that may be left to the newest
// one that a client has asked for.
class Machine {
 public:
  Machine(std::uint64_t seed, Committer committer)
      : random_(seed), committer_(committer), env_(seed) {}

  // Ends by a power cut, or by either.
  void live(CrashEnv::TornTail torn, bool may_be_killed) {
    const End end = may_be_killed && random_.below(2) == 0 ? End::kKill : End::kPowerCut;
    const std::size_t operations = random_.below(random_.below(2) == 0 ? 30 : 150);
    std::atomic<std::size_t> done = 0;
    std::atomic<bool> dead = false;
    if (end == End::kKill) {
      const bool in_a_sync = random_.below(2) == 0;  // so that much is written, and not synced
      env_.set_fault([&, in_a_sync](CrashEnv::Operation operation, const std::string& file) {
        const bool is_right = !in_a_sync || operation == CrashEnv::Operation::kSync;
        if (done++ >= operations && is_right) dead = true;
        return dead ? leveldb::Status::IOError(file, "killed") : leveldb::Status::OK();
      });
    } else {
      env_.crash_before_operation(operations, torn);
    }
    run(dead, [&] {
      if (end == End::kKill) {
        dead = true;
      } else if (random_.below(2) == 0) {
        env_.crash(torn);
      }
    });
    if (end == End::kPowerCut) env_.crash(torn);
    env_.set_fault(nullptr);
    env_.reboot();
    last_end_ = end;
  }

  // The last life: the store opens, and has a state that it may have.
  void inspect() {
    RecordingSink sink;
    LevelDbProcedureStore store("store", options());
    const Status opened = store.recover_lease(sink);
    INFO(opened.to_string());
    REQUIRE(opened.ok());
    REQUIRE(look(store).to_string() == "OK");
    store.close();
  }

 private:
  // Calls `end` before the store is destroyed, which is without close().
  void run(const std::atomic<bool>& dead, const std::function<void()>& end) {
    std::deque<Request> requests;
    RecordingSink sink;
    LevelDbProcedureStore store("store", options());
    Status status = store.recover_lease(sink);
    if (status.ok()) status = look(store);
    if (!status.ok()) {
      INFO(status.to_string());
      const std::string said(status.message());
      const bool is_over = said.find("the power is off") != std::string::npos ||
                           said.find("killed") != std::string::npos;
      REQUIRE(is_over);
      return;
    }
    for (std::uint64_t commits = random_.below(60); commits > 0 && !env_.is_off() && !dead;
         --commits) {
      for (std::uint64_t group = 1 + random_.below(3); group > 0; --group) {
        Request& request = requests.emplace_back();
        states_.push_back(states_.back());
        const std::uint64_t sequence = oldest_ + states_.size() - 1;
        request.number = static_cast<int>(sequence);
        states_.back().fill(random_, request.batch, sequence);
        store.commit(request);
      }
      sink.wait_for(requests.size(), store);
    }
    forget_before(std::max(oldest_, static_cast<std::uint64_t>(sink.last_acknowledged())));
    end();
  }

  LevelDbOptions options() {
    LevelDbOptions options = on_crash_env(env_, 500 + random_.below(6'000), 2 + random_.below(3));
    options.write_buffer_bytes = 64 << 10;
    options.committer = committer_;
    return options;
  }

  Status look(LevelDbProcedureStore& store) {
    const auto latest = store.get(Space::kEngine, "latest");
    if (!latest.ok()) return latest.status();
    const std::uint64_t found = *latest ? std::stoull(**latest) : 0;
    REQUIRE(found >= oldest_);
    REQUIRE(found < oldest_ + states_.size());
    const auto rows = load_rows(store);
    if (!rows.empty() && rows.back().starts_with("failed")) {
      return Status(StatusCode::kIoError, rows.back());
    }
    REQUIRE(rows == states_[found - oldest_].lines());
    states_.resize(found - oldest_ + 1);
    if (last_end_ == End::kPowerCut) forget_before(found);
    return Status();
  }

  // The state after commit `sequence` is on the disk to stay.
  void forget_before(std::uint64_t sequence) {
    states_.erase(states_.begin(),
                  states_.begin() + static_cast<std::ptrdiff_t>(sequence - oldest_));
    oldest_ = sequence;
  }

  Random random_;
  const Committer committer_;
  CrashEnv env_;
  std::uint64_t oldest_ = 0;         // the sequence of the first of the states
  std::vector<RowModel> states_{1};  // after each commit
  End last_end_ = End::kPowerCut;
};

TEST_CASE("rows that move between a small log and the database survive any power cut") {
  const auto torn =
      GENERATE(CrashEnv::TornTail::kNone, CrashEnv::TornTail::kRandom, CrashEnv::TornTail::kBytes);
  const auto committer = GENERATE(Committer::kPump, Committer::kThread);
  const Seeds seeds = seeds_from_environment(60);
  for (std::uint64_t seed = seeds.first; seed != seeds.first + seeds.count; ++seed) {
    INFO("PV2_TEST_SEED=" << seed << ", torn tail " << static_cast<int>(torn) << ", "
                          << (committer == Committer::kPump ? "pumped" : "threaded"));
    Machine machine(seed, committer);
    for (int life = 0; life < 8; ++life) machine.live(torn, /*may_be_killed=*/false);
    machine.inspect();
  }
}

TEST_CASE("lives that end by a kill or by a power cut, in any order, lose nothing") {
  const Seeds seeds = seeds_from_environment(200);
  for (std::uint64_t seed = seeds.first; seed != seeds.first + seeds.count; ++seed) {
    INFO("PV2_TEST_SEED=" << seed);
    const auto torn = static_cast<CrashEnv::TornTail>(seed % 3);
    Machine machine(seed, seed % 2 != 0 ? Committer::kPump : Committer::kThread);
    for (int life = 0; life < 8; ++life) machine.live(torn, /*may_be_killed=*/true);
    machine.inspect();
  }
}

// The first commit of a store puts the row "a". Then this adds what a process leaves that is killed
// in a sync while its checkpoints are held up: `count` segments behind the first one, of one commit
// each, which puts that row again. The frame of the last one is written, and not synced.
void add_segments(CrashEnv& env, std::size_t count) {
  const std::string first_file = env.contents(step_files(env).back());
  const auto first = read_frame(first_file, 0);
  for (std::size_t i = 1; i <= count; ++i) {
    Request request;
    request.sequence.value = first->last().value + i;
    request.batch.put(Space::kHost, "a", "value " + std::to_string(i));
    CommitList unit;
    unit.push_back(request);
    std::string block(4'096, '\0');
    write_frame(block.data(), unit, {first->segment.value + i});
    unit.pop_front();
    const std::string file = "store/PV2-STEPS-" + std::to_string(1 + i);
    env.set_contents(file, i == count ? std::string(block.size(), '\0') : block);
    if (i == count) REQUIRE(env.open(file).value()->write(0, block).ok());
  }
}

Status put_a(Writer& writer) {
  return writer.commit([](RowBatch& batch) { batch.put(Space::kHost, "a", "value 0"); });
}

TEST_CASE("one write takes over a segment, or the whole log if LevelDB may stop a later write") {
  // LevelDB stops writes at twelve tables, and each segment that is there may become one. How many
  // there may be from now on does not matter.
  const std::size_t found = GENERATE(std::size_t{2}, std::size_t{10}, std::size_t{12});
  const std::size_t segments_max = GENERATE(std::size_t{4}, std::size_t{12});
  CrashEnv env;
  const LevelDbOptions options = on_crash_env(env, 4'096, segments_max);
  {
    Writer killed(options);
    REQUIRE(killed.open().ok());
    REQUIRE(put_a(killed).ok());
  }
  add_segments(env, found - 1);
  Writer next(options);
  REQUIRE(next.open().ok());
  std::size_t writes = 0;
  env.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
    if (operation == CrashEnv::Operation::kSync && file.ends_with(".log")) ++writes;
    return leveldb::Status::OK();
  });
  REQUIRE(next.write("new").ok());
  env.set_fault(nullptr);
  CHECK(writes == (found == 12 ? 1 : found));
  next.store().close();
}

// What the killed process has written, and not synced, replaces a row of the segment before. The
// next process reads it from the memory of the system.
TEST_CASE("a power cut anywhere in a take-over loses nothing that the taken-over log replaces") {
  // Two segments are taken over one at a time, twelve all at once.
  const std::size_t found = GENERATE(std::size_t{2}, std::size_t{12});
  bool finished = false;
  for (std::size_t cut = 0; !finished; ++cut) {
    CrashEnv env;
    const LevelDbOptions options = on_crash_env(env, 4'096, 4);
    {
      Writer killed(options);
      REQUIRE(killed.open().ok());
      REQUIRE(put_a(killed).ok());
    }
    add_segments(env, found - 1);
    {
      Writer next(options);
      REQUIRE(next.open().ok());
      env.crash_before_operation(cut);
      finished = next.write("new").ok();
    }
    env.crash();
    env.reboot();
    Writer last(options);
    const Status opened = last.open();
    INFO("power off before operation " << cut << ": " << opened.to_string());
    REQUIRE(opened.ok());
    REQUIRE(last.store().get(Space::kHost, "a").value().has_value());
    last.store().close();
  }
}

// Its commits go past the page cache later, and sync their own blocks only.
TEST_CASE("a file of the log that a killed process has not synced is synced by the next one") {
  CrashEnv env;
  {
    Writer killed(env);
    REQUIRE(killed.open().ok());
    REQUIRE(killed.write("first").ok());
    const auto file = env.create("store/PV2-STEPS-2");
    REQUIRE(file.value()->write(0, std::string(8'192, '\0')).ok());
  }
  {
    Writer next(env);
    REQUIRE(next.open().ok());
    REQUIRE(next.write("second").ok());
  }
  env.crash();
  env.reboot();
  CHECK(env.contents("store/PV2-STEPS-2").size() == 8'192);
}

}  // namespace
}  // namespace pv2::testing::kill_and_power_cut_test

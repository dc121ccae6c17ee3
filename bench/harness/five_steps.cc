// SPDX-License-Identifier: Apache-2.0
//
// The loop is timed several times and the fastest time counts, because every disturbance makes it
// slower.

#include "harness/five_steps.h"

#include <pv2/base/random.h>
#include <pv2/engine/async_executor.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/machine.h"

namespace pv2::bench {
namespace {

constexpr std::uint64_t kTrialTurns = 200'000;

}  // namespace

UserWork::UserWork(std::chrono::nanoseconds duration) {
  double fastest = 1e9;
  for (int trial = 0; trial < 20; ++trial) {
    const auto begin = BenchClock::now();
    spin(kTrialTurns);
    const std::chrono::duration<double, std::nano> took = BenchClock::now() - begin;
    fastest = std::min(fastest, took.count() / static_cast<double>(kTrialTurns));
  }
  turns_ = static_cast<std::uint64_t>(static_cast<double>(duration.count()) / fastest);
}

void UserWork::spin(std::uint64_t turns) noexcept {
  for (std::uint64_t i = 0; i < turns; ++i) asm volatile("" ::: "memory");
}

std::string state_bytes(std::uint64_t seed) {
  std::string bytes(kStateBytes, '\0');
  Random random(seed);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
  return bytes;
}

LockSet own_table(std::uint64_t number) {
  return LockSet().table("bench", std::to_string(number), LockMode::kExclusive);
}

FiveSteps::Flow FiveSteps::execute_from_state(Stage stage, StepContext& /*ctx*/) {
  (*work_)();
  state_[0] = static_cast<char>(stage);
  if (stage == Stage::kFifth) return done();
  return next(static_cast<Stage>(static_cast<int>(stage) + 1));
}

void submit_five_steps(const UserWork& work, AsyncExecutor executor, std::uint64_t number,
                       SubmitCallback done) {
  executor.submit(FiveSteps(work, number), {.nonce = {1, number}}, std::move(done));
}

void execute_five_steps(const UserWork& work, AsyncExecutor executor, std::uint64_t number,
                        ResultCallback done) {
  executor.execute(FiveSteps(work, number), {.nonce = {1, number}}, std::move(done));
}

}  // namespace pv2::bench

// SPDX-License-Identifier: Apache-2.0
//
// Read run() first. It is the recipe of the header.

#include "executor/background_load.h"

#include <pv2/base/thread.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/effects.h"
#include "core/publisher.h"
#include "core/state_lock.h"
#include "model/guard.h"
#include "recovery/recovery.h"
#include "submission/results.h"

namespace pv2 {
namespace {

// The files of a store may change while it is loaded. So the store may not know which of them is
// damaged.
Status why_nothing_goes_on(const Status& failure) {
  Status why = failure.with_context("nothing goes on and nothing more is accepted");
  if (why.code() != StatusCode::kCorruption) return why;
  return Status(
      why.code(),
      std::string(why.message()) +
          "; open it with Load::kBeforeOpenReturns, which names the file if one is damaged");
}

}  // namespace

BackgroundLoad::BackgroundLoad(EngineCore& core, Publisher& publisher, Results& results)
    : core_(core), publisher_(publisher), results_(results) {}

BackgroundLoad::~BackgroundLoad() { join(); }

Status BackgroundLoad::make_thread(std::unique_ptr<Recovery> recovery,
                                   std::function<void()> start) {
  auto thread = start_thread(
      "pv2-load", "what loads the store",
      [this, recovery = std::shared_ptr(std::move(recovery)), start = std::move(start)] {
        if (!gate_.pass()) return;
        run(*recovery, start);
        core_.loading.left();
      });
  if (!thread.ok()) return thread.status();
  thread_ = *std::move(thread);
  return Status();
}

void BackgroundLoad::begin() {
  core_.loading.begin();
  gate_.open();
}

void BackgroundLoad::join() {
  gate_.abandon();  // if begin() was never called
  if (thread_.joinable()) thread_.join();
}

// If the engine halts meanwhile, the thread that has halted it answers the calls that wait
// (EngineCore::give_up_loading()).
void BackgroundLoad::run(Recovery& recovery, const std::function<void()>& start) {
  const EngineThread mark(&core_);
  Effects effects;
  const Status loaded = guarded([&] { return "loading " + core_.store_name; },
                                [&] { return recovery.load(effects); });
  if (!loaded.ok()) publisher_.end_run(why_nothing_goes_on(loaded));
  publisher_.perform(effects);
  if (!loaded.ok()) return;
  {
    StateLock lock(core_, Width::kNarrow);
    if (!core_.unavailable().ok()) return;
    core_.loading.become(Loading::State::kEnding);
  }
  results_.admit_early_waits();
  const Then then = queue_held_back();
  if (then == Then::kStop) return;
  if (then == Then::kStart) start();
  publisher_.publish({});  // goes on with works on trees
  core_.loading.release();
}

// If the host calls start() before the last section, the workers begin here, and otherwise there.
BackgroundLoad::Then BackgroundLoad::queue_held_back() {
  std::vector<Execution*> roots;
  for (std::size_t queued = 0;;) {
    StateLock lock(core_);
    if (!core_.unavailable().ok()) return Then::kStop;
    if (queued == roots.size()) {
      roots = std::exchange(core_.state.held_back, {});
      queued = 0;
    }
    if (roots.empty()) {
      core_.loading.become(Loading::State::kOver);
      core_.state.deadlock_search.is_on = true;
      return core_.state.life.started ? Then::kStart : Then::kWaitForStart;
    }
    const std::size_t end = std::min(roots.size(), queued + kLoadSection);
    for (; queued != end; ++queued) core_.queue(*roots[queued], Disposition::kBack);
  }
}

}  // namespace pv2

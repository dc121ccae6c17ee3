// SPDX-License-Identifier: Apache-2.0
//
// Read run() first: it loads, then end() queues what was held back and lets the workers begin.

#include "executor/background_load.h"

#include <pv2/base/assert.h>
#include <pv2/base/thread.h>

#include <algorithm>
#include <utility>

#include "core/effects.h"
#include "core/publisher.h"
#include "core/state_lock.h"
#include "recovery/recovery.h"
#include "submission/results.h"

namespace pv2 {
namespace {

// How many roots that were held back are queued in one section.
constexpr std::size_t kSection = 128;

}  // namespace

BackgroundLoad::BackgroundLoad(EngineCore& core, Publisher& publisher, Results& results)
    : core_(core), publisher_(publisher), results_(results) {}

BackgroundLoad::~BackgroundLoad() { join(); }

Status BackgroundLoad::begin(std::unique_ptr<Recovery> recovery, std::function<void()> start) {
  core_.loading.begin();
  auto thread = start_thread("pv2-load", "what loads the store",
                             [this, recovery = std::shared_ptr(std::move(recovery)),
                              start = std::move(start)] { run(*recovery, start); });
  if (!thread.ok()) {
    StateLock lock(core_);
    core_.loading.end(false);
    return thread.status();
  }
  thread_ = *std::move(thread);
  return Status();
}

void BackgroundLoad::join() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundLoad::run(Recovery& recovery, const std::function<void()>& start) {
  const EngineThread mark(&core_);
  {
    Effects effects;
    const Status loaded = recovery.load(effects);
    if (!loaded.ok()) {
      publisher_.end_run(loaded.with_context("nothing goes on and nothing more is accepted"));
    }
    publisher_.perform(effects);
    if (end(loaded)) start();
  }
  results_.admit_early_waits();
  core_.loading.release();
}

// Returns whether the workers are to begin. If start() comes before the last section, they begin
// here, and otherwise there.
bool BackgroundLoad::end(const Status& loaded) {
  std::vector<Execution*> roots;
  for (std::size_t queued = 0;;) {
    StateLock lock(core_);
    const bool halted = !core_.unavailable().ok();
    PV2_ASSERT(halted || loaded.ok(), "an engine that cannot load its store has halted");
    if (!halted && queued == roots.size()) {
      roots = std::exchange(core_.state.held_back, {});
      queued = 0;
    }
    if (halted || roots.empty()) {
      core_.loading.end(loaded.ok());
      core_.state.deadlock_search.is_on = !halted;
      return !halted && core_.state.life.started;
    }
    const std::size_t end = std::min(roots.size(), queued + kSection);
    for (; queued != end; ++queued) core_.queue(*roots[queued], Disposition::kBack);
  }
}

}  // namespace pv2

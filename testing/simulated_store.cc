// SPDX-License-Identifier: Apache-2.0
//
// A memory store writes nothing once another owner has taken its disk. cut() uses this to keep the
// rest of a life off the disk.

#include "simulated_store.h"

#include <algorithm>

namespace pv2::testing {
namespace {

// Takes the lease and never commits anything.
class Heir final : public CommitSink {
 public:
  void on_committed(CommitList /*finished*/) noexcept override {}
};

}  // namespace

void SimulatedStore::fence() {
  if (std::exchange(cut_, true)) return;
  Heir heir;
  MemoryProcedureStore next(disk_);
  const Status taken = next.recover_lease(heir);
  PV2_ASSERT(taken.ok(), "a memory store always gives its lease");
}

bool SimulatedStore::pump() {
  const std::size_t queued = inner_.queued();
  if (queued == 0 || (budget_ == 0 && !cut_)) return false;
  if (good_ == SIZE_MAX || cut_) return inner_.pump_some(cut_ ? SIZE_MAX : budget_);
  const std::size_t good = std::min({good_, queued, budget_});
  if (good > 0) {
    good_ -= good;
    return inner_.pump_some(good);
  }
  cut(unheard_);  // the fault that was announced
  return true;
}

void SimulatedStore::fail_after(std::size_t requests, std::size_t unheard) {
  if (cut_) return;
  good_ = requests;
  unheard_ = unheard;
}

void SimulatedStore::cut(std::size_t unheard) {
  if (cut_) return;
  const std::size_t written = std::min(unheard, inner_.queued());
  nobody_hears_ = true;
  if (written > 0) inner_.pump_some(written);  // on_committed() turns these into failures
  nobody_hears_ = false;
  fence();
  inner_.pump();
}

void SimulatedStore::on_committed(CommitList finished) noexcept {
  if (nobody_hears_) {
    finished.for_each([this](CommitRequest& request) {
      request.status = Status(StatusCode::kIoError, "the disk did not answer");
      request.batch.for_each(
          [this](RowOperation, Space space, std::string_view key, std::string_view) {
            if (space != Space::kProcedure && space != Space::kResult) return;
            std::uint64_t id = 0;
            for (std::size_t i = 0; i < 8 && i < key.size(); ++i) {
              id = id << 8 | static_cast<unsigned char>(key[i]);
            }
            unheard_ids_.insert(id);
          });
    });
  }
  if (cut_) {  // the engine is to see a failing disk, not another owner
    finished.for_each([](CommitRequest& request) {
      request.status = Status(StatusCode::kIoError, "the disk did not answer");
    });
  }
  sink_->on_committed(std::move(finished));
}

}  // namespace pv2::testing

// SPDX-License-Identifier: Apache-2.0
//
// Asks the random faults, and counts what they say.

#include "counted_faults.h"

#include <utility>

namespace counter {

pv2::Result<std::shared_ptr<CountedFaults>> CountedFaults::create(const LossRates& rates,
                                                                  std::uint64_t seed) {
  auto faults = pv2::RandomFaults::create(
      {.seed = seed,
       .to_server = {.drop = rates.calls_lost, .duplicate = rates.repeated},
       .to_client = {.drop = rates.replies_lost, .duplicate = rates.repeated}});
  if (!faults.ok()) return faults.status();
  return std::shared_ptr<CountedFaults>(new CountedFaults(*std::move(faults)));
}

pv2::Fate CountedFaults::fate(const pv2::PassingFrame& frame) {
  const pv2::Fate fate = faults_->fate(frame);
  if (frame.kind != pv2::FrameKind::kCall && frame.kind != pv2::FrameKind::kReply) return fate;
  Count& count = frame.kind == pv2::FrameKind::kCall ? calls_ : replies_;
  count.sent.fetch_add(1, std::memory_order_relaxed);
  if (fate.copies == 0) count.lost.fetch_add(1, std::memory_order_relaxed);
  if (fate.copies > 1) count.repeated.fetch_add(1, std::memory_order_relaxed);
  return fate;
}

}  // namespace counter

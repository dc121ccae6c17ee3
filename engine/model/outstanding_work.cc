// SPDX-License-Identifier: Apache-2.0
//
// The `state` of a piece decides without a lock whether the piece runs or is cancelled: a thread of
// the pool and a thread that calls stop() may try to change it at the same time.

#include "model/outstanding_work.h"

#include <algorithm>
#include <utility>

#include "model/requests.h"

namespace pv2 {
namespace {

bool is_of_visit(const PieceOfWork& piece, const PlaceOfWork& place) {
  return piece.step == place.step && piece.undo == place.undo && piece.visit == place.visit;
}

}  // namespace

OutstandingWork::OutstandingWork() = default;
OutstandingWork::~OutstandingWork() = default;

bool OutstandingWork::wakes(std::uint32_t epoch) const noexcept {
  return std::any_of(pieces.begin(), pieces.end(),
                     [epoch](const auto& piece) { return piece->epoch == epoch; });
}

bool OutstandingWork::has(const PlaceOfWork& place) const noexcept {
  return std::any_of(pieces.begin(), pieces.end(), [&](const auto& piece) {
    return is_of_visit(*piece, place) && piece->index == place.index;
  });
}

void OutstandingWork::stop(std::vector<std::shared_ptr<PieceOfWork>>& told,
                           const PlaceOfWork* visit) {
  for (const auto& piece : pieces) {
    if (visit != nullptr && !is_of_visit(*piece, *visit)) continue;
    if (std::exchange(piece->told_to_stop, true)) continue;
    auto queued = PieceOfWork::State::kQueued;
    // Acquire and release: the thread that finds the piece cancelled destroys the callable, which
    // another thread made.
    piece->state.compare_exchange_strong(queued, PieceOfWork::State::kCancelled,
                                         std::memory_order_acq_rel);
    told.push_back(piece);
  }
}

}  // namespace pv2

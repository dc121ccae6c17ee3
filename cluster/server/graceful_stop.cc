// SPDX-License-Identifier: Apache-2.0
//
// Regions that are being opened, and calls that are under way, end by themselves; so it looks again
// until the table is empty.

#include "server/graceful_stop.h"

#include <pv2/base/assert.h>

#include <chrono>
#include <utility>

#include "server/heartbeat_sender.h"
#include "server/region_orders.h"
#include "server/region_table.h"
#include "server/server_context.h"

namespace pv2::cluster {
namespace {

// A flush takes longer.
constexpr Duration kStopLookEvery = std::chrono::milliseconds(20);

}  // namespace

void GracefulStop::begin(std::function<void()> done) {
  PV2_ASSERT(!context_.is_stopping, "a server is stopped once");
  context_.is_stopping = true;
  begun_ = context_.tasks.now();
  done_ = std::move(done);
  orders_.close_all();
  look();
}

void GracefulStop::look() {
  if (context_.is_ended()) return;
  const bool is_late = context_.tasks.now() - begun_ > context_.options.stop_max;
  if (table_.size() == 0 || is_late) return heartbeat_.leave(std::move(done_));
  context_.tasks.after(kStopLookEvery, [this] { look(); });
}

}  // namespace pv2::cluster

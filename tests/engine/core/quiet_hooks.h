// SPDX-License-Identifier: Apache-2.0
//
// Hooks of a publisher that stands alone: none of them does anything.

#pragma once

#include "core/publisher.h"

namespace pv2::testing {

inline PublisherHooks quiet_hooks() {
  return {.do_tree_works = [](EngineCore&, Effects&) { return false; },
          .go_on_with_sorted = [](EngineCore&, TreeWork&) {},
          .sort_collected = [](TreeWork&) {},
          .carry_out_waiting_orders = [](EngineCore&, Effects&) {},
          .audit_now_and_then = [](EngineCore&) {},
          .store_failed = [](EngineCore&, Effects&) {},
          .timers_moved = [] {}};
}

}  // namespace pv2::testing

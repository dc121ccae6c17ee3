// SPDX-License-Identifier: Apache-2.0
//
// What every transport can do, whatever its network is: run something on the loop's thread and wait
// for it.

#include "pv2/rpc/transport.h"

#include <pv2/base/latch.h>

#include <memory>

namespace pv2 {

void run_on_loop(Transport& transport, const std::function<void()>& work) {
  if (!transport.has_own_thread() || transport.on_loop()) return work();
  struct Done {};
  const auto latch = std::make_shared<Latch<Done>>();
  transport.post([&work, latch] {
    work();
    latch->set(Done());
  });
  latch->wait();
}

}  // namespace pv2

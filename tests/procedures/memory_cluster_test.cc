// SPDX-License-Identifier: Apache-2.0
//
// MemoryCluster itself: those who wait for a server, without an engine. Each wait ends when its
// server has crashed, whatever else happens at that moment, and goes when nobody awaits it.

#include <pv2/procedures/memory_cluster.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "procedure_plot.h"
#include "support/catch.h"

namespace pv2::testing::memory_cluster_test {
namespace {

/// Runs a function when it is woken. Owned by one thread.
class Waker final : public WakeTarget {
 public:
  explicit Waker(std::function<void()> then = [] {}) : then_(std::move(then)) {}
  void wake(AwaitSlot& /*slot*/) noexcept override { then_(); }

 private:
  std::function<void()> then_;
};

using Slot = Ref<AwaitSlotOf<Status>>;

Slot slot_for(const Ref<Waker>& waker) {
  return make_ref<AwaitSlotOf<Status>>(waker, ProcedureId{1}, 0);
}

/// The slot of one who waits until the server has crashed.
Slot wait_for_crash(MemoryCluster& cluster, const ServerName& server, const Ref<Waker>& waker) {
  Slot slot = slot_for(waker);
  cluster.ports().servers.when_crashed(server, Completion<Status>(slot));
  return slot;
}

void set_crashed(MemoryCluster& cluster, const ServerName& server) {
  cluster.ports().catalogue.write({.effect_key = "crash of " + to_string(server),
                                   .servers = {{server, ServerState::kCrashed, false}}},
                                  nobody<Result<Applied>>());
}

}  // namespace

TEST_CASE("a wait ends with a change that another thread makes while others are answered") {
  MemoryCluster cluster;
  const ServerName first = cluster.add_server("rs1");
  const ServerName second = cluster.add_server("rs2");
  const Slot first_crashed = wait_for_crash(cluster, first, make_ref<Waker>());
  const Slot second_crashed = wait_for_crash(
      cluster, second,
      make_ref<Waker>([&] { std::thread([&] { set_crashed(cluster, first); }).join(); }));
  REQUIRE_FALSE(first_crashed->ready());

  set_crashed(cluster, second);

  CHECK(second_crashed->ready());
  CHECK(first_crashed->ready());
}

TEST_CASE("a wait that nobody awaits any more is dropped at the next change") {
  MemoryCluster cluster;
  const ServerName server = cluster.add_server("rs1");
  const auto forgotten = make_ref<Waker>();
  (void)wait_for_crash(cluster, server, forgotten);
  const Slot awaited = wait_for_crash(cluster, server, make_ref<Waker>());

  cluster.add_server("rs2");

  CHECK_FALSE(forgotten->is_shared());
  set_crashed(cluster, server);
  CHECK(awaited->ready());
}

}  // namespace pv2::testing::memory_cluster_test

// SPDX-License-Identifier: Apache-2.0
//
// PartsWorld: the ground for tests of single parts of a master: a network in memory, a manual
// clock, a server that a test scripts, and completions whose answers a test can look at.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/fields.h>
#include <pv2/engine/completion.h>
#include <pv2/rpc/memory_transport.h>
#include <pv2/rpc/rpc_server.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "master/server_links.h"
#include "storage/work_queue.h"
#include "support/catch.h"

namespace pv2::testing::parts_world {

/// Nobody is woken: a test looks at the slot.
class NobodyToWake final : public WakeTarget {
 public:
  void wake(AwaitSlot&) noexcept override {}
};

/// What a procedure that waits holds. Owned by one thread.
template <class T>
class Wait {
 public:
  [[nodiscard]] Completion<T> completion() const { return Completion<T>(slot_); }
  [[nodiscard]] bool is_answered() const { return slot_->ready(); }
  [[nodiscard]] const T& answer() const {
    REQUIRE(slot_->ready());
    return slot_->value();
  }

 private:
  Ref<AwaitSlotOf<T>> slot_ = make_ref<AwaitSlotOf<T>>(make_ref<NobodyToWake>(), ProcedureId{1}, 1);
};

/// Owned by one thread.
struct PartsWorld {
  ~PartsWorld() { work.run_all(); }

  /// Lets everything happen that needs no time.
  void settle() {
    while (transport->run_until_idle() != 0 || work.run_one()) {
    }
  }
  void run_for(Duration time) {
    const SteadyTime end = clock->steady_now() + time;
    while (clock->steady_now() < end) {
      transport->run_for(std::chrono::milliseconds(50));
      settle();
    }
  }
  /// A server that answers one method as `handler` says, and where it listens.
  std::unique_ptr<RpcServer> serve(RpcMethods methods) {
    auto opened = RpcServer::open(
        {.transport = transport, .address = "server:0", .methods = std::move(methods)});
    REQUIRE(opened.status().to_string() == "OK");
    return *std::move(opened);
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(clock);
  cluster::ManualWorkQueue work;
  /// Where each server listens; none: it has not said so yet.
  std::function<std::optional<std::string>(const ServerName&)> find_address =
      [](const ServerName&) { return std::nullopt; };
  cluster::ServerLinks links{transport, work,
                             [this](const ServerName& name) { return find_address(name); }};
};

template <class T>
std::string encoded(T message) {
  std::string body;
  encode_fields(message, FieldSelection::kAll, body);
  return body;
}

}  // namespace pv2::testing::parts_world

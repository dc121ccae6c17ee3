// SPDX-License-Identifier: Apache-2.0
//
// HeldScan: a store that holds every scan of all live procedures back until a test lets it through:
// so an executor is loading for as long as the test wants.

#pragma once

#include <pv2/base/latch.h>

#include <memory>
#include <string_view>
#include <utility>

#include "support/wrapped_store.h"

namespace pv2::testing {

/// Thread-safe. Copies of a gate are the same gate, which opens once.
class HeldScan final : public WrappedStore {
 public:
  struct Gate {
    std::shared_ptr<Latch<Status>> passes = std::make_shared<Latch<Status>>();
    void open() const { passes->set(Status()); }
    void fail() const { passes->set(Status(StatusCode::kIoError, "the disk is gone")); }
  };

  HeldScan(std::unique_ptr<ProcedureStore> inner, Gate gate)
      : WrappedStore(std::move(inner)), gate_(std::move(gate)) {}

  Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
    if (space == Space::kProcedure && prefix.empty()) {
      gate_.passes->wait();
      if (!gate_.passes->value->ok()) return *gate_.passes->value;
    }
    return inner().scan(space, prefix, visit);
  }

 private:
  const Gate gate_;
};

}  // namespace pv2::testing

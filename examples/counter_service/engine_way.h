// SPDX-License-Identifier: Apache-2.0
//
// EngineWay: the third way of the service: an operation is a procedure, submitted to an executor
// behind the network. It has a store of its own, and so its own counters and texts.

#pragma once

#include <pv2/base/log.h>
#include <pv2/base/status.h>
#include <pv2/rpc/rpc_server.h>
#include <pv2/store/procedure_store.h>

#include <functional>
#include <memory>

namespace pv2 {
class ExecutorService;
class ProcedureExecutor;
}  // namespace pv2

namespace counter {

/// Thread-safe, except construction and destruction.
class EngineWay {
 public:
  /// Goes on with what the last process left. `on_failure` is called when the store fails.
  [[nodiscard]] static pv2::Result<std::unique_ptr<EngineWay>> open(
      std::unique_ptr<pv2::ProcedureStore> store, pv2::LogSink log,
      std::function<void(const pv2::Status&)> on_failure);
  ~EngineWay();
  EngineWay(const EngineWay&) = delete;
  EngineWay& operator=(const EngineWay&) = delete;

  /// Adds those of ExecutorService, and "engine.counter.get" and "engine.text.get". This object
  /// outlives the server.
  void add_to(pv2::RpcMethods& methods) const;

 private:
  EngineWay() = default;
  void read_counter(pv2::IncomingCall call) const;
  void read_text(pv2::IncomingCall call) const;

  pv2::ProcedureStore* store_ = nullptr;  // the executor's
  std::unique_ptr<pv2::ProcedureExecutor> executor_;
  std::unique_ptr<pv2::ExecutorService> service_;
};

}  // namespace counter

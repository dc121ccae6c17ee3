// SPDX-License-Identifier: Apache-2.0
//
// Opens the executor, and reads the rows that its procedures have written.

#include "engine_way.h"

#include <pv2/engine/executor_options.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/remote/executor_service.h>

#include <string>
#include <utility>

#include "add_to_counter.h"
#include "append_to_text.h"
#include "requests.h"
#include "rows.h"

namespace counter {

pv2::Result<std::unique_ptr<EngineWay>> EngineWay::open(
    std::unique_ptr<pv2::ProcedureStore> store, pv2::LogSink log,
    std::function<void(const pv2::Status&)> on_failure) {
  std::unique_ptr<EngineWay> way(new EngineWay);
  way->store_ = store.get();
  pv2::ProcedureRegistry types;
  types.add<AddToCounter>();
  types.add<AppendToText>();
  pv2::ExecutorOptions options;
  options.store = std::move(store);
  options.registry = std::move(types);
  options.log = std::move(log);
  options.on_store_failure = std::move(on_failure);
  auto executor = pv2::ProcedureExecutor::open(std::move(options));
  if (!executor.ok()) return executor.status();
  way->executor_ = *std::move(executor);
  way->executor_->start();
  way->service_ = std::make_unique<pv2::ExecutorService>(*way->executor_);
  return way;
}

EngineWay::~EngineWay() = default;

void EngineWay::add_to(pv2::RpcMethods& methods) const {
  service_->add_to(methods);
  methods["engine.counter.get"] = [this](pv2::IncomingCall call) { read_counter(std::move(call)); };
  methods["engine.text.get"] = [this](pv2::IncomingCall call) { read_text(std::move(call)); };
}

// A read may ask the disk, on the loop's thread: only for an example, where it is rare.
void EngineWay::read_counter(pv2::IncomingCall call) const {
  const auto request = parse_read(call.body());
  if (!request.ok()) return call.fail(request.status());
  const auto row = store_->get(pv2::Space::kHost, counter_row(request->name));
  if (!row.ok()) return call.refuse(row.status());
  call.reply(row->value_or("0"));
}

void EngineWay::read_text(pv2::IncomingCall call) const {
  const auto request = parse_read(call.body());
  if (!request.ok()) return call.fail(request.status());
  std::string text;
  const pv2::Status status = store_->scan(pv2::Space::kHost, piece_rows(request->name),
                                          [&text](const pv2::StoredRow& row) -> pv2::Status {
                                            text += row.value;
                                            return {};
                                          });
  if (!status.ok()) return call.refuse(status);
  call.reply(request->from < text.size() ? text.substr(request->from, kReadBytesMax) : "");
}

}  // namespace counter

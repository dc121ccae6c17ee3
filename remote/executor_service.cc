// SPDX-License-Identifier: Apache-2.0
//
// The names of the methods, and who carries them out.

#include "pv2/remote/executor_service.h"

#include <string>
#include <utility>

#include "operator_messages.h"
#include "service_core.h"
#include "verb_messages.h"

namespace pv2 {

ExecutorService::ExecutorService(ProcedureExecutor& executor, ExecutorServiceOptions options)
    : core_(std::make_shared<ServiceCore>(executor, std::move(options))) {}

ExecutorService::~ExecutorService() = default;

void ExecutorService::add_to(RpcMethods& methods) const {
  const auto add = [&](std::string_view name, ServiceCore::Verb verb) {
    methods.insert_or_assign(std::string(name), core_->method(verb));
  };
  add(remote::kSubmit, &ServiceCore::submit);
  add(remote::kFind, &ServiceCore::find);
  add(remote::kWait, &ServiceCore::wait);
  add(remote::kAcknowledge, &ServiceCore::acknowledge);
  add(remote::kAbort, &ServiceCore::abort);
  add(remote::kSignal, &ServiceCore::signal);
  add(remote::kRun, &ServiceCore::tell_run);
  add(remote::kList, &ServiceCore::list);
  add(remote::kExplain, &ServiceCore::explain);
  add(remote::kHistory, &ServiceCore::history);
  add(remote::kLocks, &ServiceCore::locks);
  add(remote::kPreview, &ServiceCore::preview);
  add(remote::kOrder, &ServiceCore::order);
  add(remote::kAudit, &ServiceCore::audit);
}

ExecutorServiceCounts ExecutorService::counts() const { return core_->counts(); }

}  // namespace pv2

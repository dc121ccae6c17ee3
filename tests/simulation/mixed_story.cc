// SPDX-License-Identifier: Apache-2.0
//
// Clients are made in the order of the roots. A second client of the same root submits under the
// same nonce, as a duplicate does.

#include "simulation/mixed_story.h"

#include <pv2/engine/async_executor.h>
#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>

#include <algorithm>
#include <array>

namespace pv2::testing {
namespace {

constexpr std::uint64_t kGroup = 7;

std::uint64_t sharing_seed(std::uint64_t seed) { return seed ^ 0xC11E'97F0ULL; }

}  // namespace

MixedStory::MixedStory(std::uint64_t seed) : seed_(seed), world_(plan_tasks(seed)) {
  world_.meanwhile = [this] { meanwhile(); };
  Random random(sharing_seed(seed));
  using Kind = Operation::Kind;
  for (const std::size_t root : world_.plan().roots) {
    if (random.below(8) == 0) {
      operations_.push_back({Kind::kUnkeyed, root});
      continue;
    }
    const std::size_t client = clients_.size();
    clients_.push_back({root, KeyedClient({kGroup, root + 1})});
    operations_.push_back({Kind::kSubmit, client});
    if (random.below(3) == 0) {
      clients_.push_back({root, KeyedClient({kGroup, root + 1})});
      operations_.push_back({Kind::kSubmit, client + 1});
    } else if (random.below(3) == 0) {
      clients_[client].acknowledges = true;
      operations_.push_back({Kind::kAcknowledge, client});
    }
    if (random.below(4) == 0) operations_.push_back({Kind::kMisuse, client});
    if (random.below(6) == 0) operations_.push_back({Kind::kAskUnknown, client});
    if (random.below(4) == 0) operations_.push_back({Kind::kAbort, client});
  }
  if (world_.plan().signals) plan_signals(random);
  plan_events(random);
  plan_orders(random);
  if (world_.plan().limits_types) {
    operations_.push_back({Kind::kLimit, 0, 1 + random.below(2)});
    if (random.below(2) == 0) operations_.push_back({Kind::kLimit, 0, 0});
  }
  if (world_.plan().limits_keys) plan_key_limits(random);
  for (std::size_t i = operations_.size(); i > 1; --i) {
    std::swap(operations_[i - 1], operations_[random.below(i)]);
  }
}

void MixedStory::plan_orders(Random& random) {
  constexpr std::array kVerbs{RepairVerb::kRetryNow,        RepairVerb::kRetryNow,
                              RepairVerb::kSkipStep,        RepairVerb::kSkipStep,
                              RepairVerb::kFailAndRollBack, RepairVerb::kBypass};
  const std::size_t tasks = world_.plan().tasks.size();
  for (std::size_t left = world_.plan().orders; left > 0; --left) {
    operations_.push_back({Operation::Kind::kOrder, random.below(tasks), random.below(3),
                           kVerbs[random.below(kVerbs.size())]});
  }
}

void MixedStory::plan_key_limits(Random& random) {
  for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
    operations_.push_back({Operation::Kind::kKeyLimit, random.below(3), random.below(3)});
  }
}

void MixedStory::plan_events(Random& random) {
  for (std::uint64_t left = random.below(4); left > 0; --left) {
    const auto kind =
        random.below(2) == 0 ? Operation::Kind::kSetEvent : Operation::Kind::kResetEvent;
    operations_.push_back({kind, 0, random.below(StoryEvents::kCount)});
  }
}

// Where a procedure keeps few signals, signals that no step takes would keep out those that it
// waits for, so there are none.
void MixedStory::plan_signals(Random& random) {
  const std::size_t tasks = world_.plan().tasks.size();
  for (std::uint64_t left = random.below(8); left > 0; --left) {
    const bool noise = random.below(5) == 0 && world_.plan().max_signals > 3;
    operations_.push_back(
        {noise ? Operation::Kind::kNoise : Operation::Kind::kSignal, random.below(tasks)});
  }
}

void MixedStory::configure(ExecutorOptions& options) {
  world_.set_clock(options.clock.get());
  options.retry.undo_attempts = world_.plan().undo_attempts;
  options.retry.max_attempts = world_.plan().max_attempts;
  options.max_signals = world_.plan().max_signals;
  options.retry.jitter_percent = seed_ % 3 == 0 ? 0 : 10;
  options.max_results_in_memory = seed_ % 5 == 0 ? 1 : 100;
  // Longer than any run, so no client asks too late.
  if (seed_ % 4 == 1) options.retention.ttl = std::chrono::hours(24 * 365);
  if (world_.plan().max_live != 0) options.max_live_procedures = world_.plan().max_live;
}

std::string MixedStory::operation_words(std::size_t index) const {
  const Operation& operation = operations_[index];
  using Kind = Operation::Kind;
  switch (operation.kind) {
    case Kind::kSubmit:
      return "client " + std::to_string(operation.client) + " submits " +
             in_words(world_.plan(), clients_[operation.client].root);
    case Kind::kMisuse:
      return "somebody submits another task under the nonce of client " +
             std::to_string(operation.client);
    case Kind::kAcknowledge:
      return "client " + std::to_string(operation.client) + " acknowledges, if he has his result";
    case Kind::kUnkeyed:
      return "somebody submits without a nonce " + in_words(world_.plan(), operation.client);
    case Kind::kLimit:
      return operation.number == 0
                 ? "the limit on tasks ends"
                 : "at most " + std::to_string(operation.number) + " tasks may run at once";
    case Kind::kKeyLimit:
      return (operation.number == 0
                  ? "the limit ends on "
                  : "at most " + std::to_string(operation.number) + " may hold ") +
             to_string(key_of(operation));
    case Kind::kAbort:
      return "client " + std::to_string(operation.client) + " aborts, if he has an id";
    case Kind::kAskUnknown:
      return "somebody asks for the result of a procedure that never was";
    case Kind::kSignal:
      return "somebody sends a signal to task " + std::to_string(operation.client);
    case Kind::kOrder:
      return "an operator orders " + std::string(to_string(operation.verb)) + " of task " +
             std::to_string(operation.client) +
             (operation.number == 0 ? ", with the cause mended" : "");
    case Kind::kSetEvent:
      return "event " + std::to_string(operation.number) + " is set";
    case Kind::kResetEvent:
      return "event " + std::to_string(operation.number) + " is reset";
    case Kind::kNoise:
      return "somebody sends task " + std::to_string(operation.client) + " what it does not want";
  }
  return {};
}

void MixedStory::submit(Client& client, ProcedureExecutor& executor) {
  with_task(world_, client.root,
            [&](auto task) { client.keyed.submit(executor, std::move(task), "client"); });
}

void MixedStory::operate(std::size_t index, ProcedureExecutor& executor) {
  const Operation& operation = operations_[index];
  using Kind = Operation::Kind;
  switch (operation.kind) {
    case Kind::kSubmit:
      clients_[operation.client].began = true;
      return submit(clients_[operation.client], executor);
    case Kind::kAcknowledge: {
      Client& client = clients_[operation.client];
      if (!client.keyed.result() || client.keyed.acknowledged()) return;
      orders_.was_acknowledged(client.keyed.id());
      return client.keyed.acknowledge(executor);
    }
    case Kind::kUnkeyed:
      return with_task(world_, operation.client, [&](auto task) {
        executor.async().submit(std::move(task), {}, [](const Result<Submitted>&) {});
      });
    case Kind::kLimit:
      static_cast<void>(executor.operate().set_type_limit("sim.Task", limit_of(operation)));
      return;
    case Kind::kKeyLimit:
      return key_limits_.set(key_of(operation), limit_of(operation), executor);
    case Kind::kMisuse: {
      const Client& client = clients_[operation.client];
      // A nonce can be misused only if it is known to be taken and will stay taken.
      if (!client.keyed.id() || client.acknowledges) return;
      executor.async().submit(Task<TaskSpec::Kind::kUndoable>(world_, client.root + 1'000'000),
                              {.nonce = client.keyed.nonce()},
                              [this](const Result<Submitted>& answer) {
                                if (answer.ok())
                                  found_.push_back("a nonce was used for two things");
                              });
      return;
    }
    case Kind::kAbort:
      return abort(clients_[operation.client], executor);
    case Kind::kAskUnknown:
      executor.async().wait(ProcedureId{UINT64_MAX}, [this](const auto& answer) {
        if (answer.ok()) found_.push_back("a procedure that never was has a result");
      });
      return;
    case Kind::kSignal:
      if (const ProcedureId id = id_of(operation.client)) world_.signals().send(id);
      return;
    case Kind::kOrder:
      if (operation.verb == RepairVerb::kBypass && bypass_what_is_undone(executor)) return;
      if (const ProcedureId id = id_of(operation.client)) {
        const std::size_t root = world_.plan().tasks[operation.client].root;
        orders_.order(executor, operation.verb, id, root, operation.number == 0);
      }
      return;
    case Kind::kSetEvent:
      return world_.events().set(operation.number);
    case Kind::kResetEvent:
      return world_.events().reset(operation.number);
    case Kind::kNoise:
      if (const ProcedureId id = id_of(operation.client)) world_.signals().send_noise(id);
      return;
  }
}

// In runs where operators give orders, some orders come in the middle of a step or of work on a
// tree.
void MixedStory::interfere(std::uint64_t choices, ProcedureExecutor& executor) {
  constexpr std::size_t kInterferencesMax = 6;
  Random random(choices);
  if (world_.plan().orders == 0 || interferences_ >= kInterferencesMax) return;
  const std::size_t task = random.below(world_.plan().tasks.size());
  const std::size_t root = world_.plan().tasks[task].root;
  const bool of_root = random.below(2) == 0;
  const ProcedureId id = id_of(of_root ? root : task);
  if (!id) return;
  ++interferences_;
  constexpr std::array kVerbs{RepairVerb::kBypass, RepairVerb::kBypass, RepairVerb::kRetryNow,
                              RepairVerb::kSkipStep, RepairVerb::kFailAndRollBack};
  const RepairVerb verb = kVerbs.at(random.below(kVerbs.size()));
  orders_.order(executor, verb, id, root, false);
}

// A tree that goes forward would refuse the bypass. If undo steps are under way, the order waits.
bool MixedStory::bypass_what_is_undone(ProcedureExecutor& executor) {
  for (const ProcedureInfo& info : executor.inspect().list()) {
    if (info.state != ProcedureState::kFailed || info.parked) continue;
    const auto root = world_.members().find(info.root.value);
    if (root == world_.members().end()) continue;
    orders_.order(executor, RepairVerb::kBypass, info.id, root->second.spec, false);
    return true;
  }
  return false;
}

ProcedureId MixedStory::id_of(std::size_t task) const {
  for (const Client& client : clients_) {
    if (client.root == task && client.keyed.id()) return client.keyed.id();
  }
  return world_.id_of(task);
}

void MixedStory::abort(const Client& client, ProcedureExecutor& executor) {
  if (!client.keyed.id()) return;
  world_.may_be_aborted(client.root);
  Abort& abort = aborts_[client.root];
  executor.async().abort(client.keyed.id(), {.reason = "simulated", .who = "client"},
                         [&abort](const Status& status) { abort.accepted |= status.ok(); });
}

std::optional<std::uint32_t> MixedStory::limit_of(const Operation& operation) {
  if (operation.number == 0) return std::nullopt;
  return static_cast<std::uint32_t>(operation.number);
}

ResourceKey MixedStory::key_of(const Operation& operation) {
  return {ResourceClass::kHostFirst, std::string(1, static_cast<char>('a' + operation.client))};
}

void MixedStory::begin_life(ProcedureExecutor& executor) {
  world_.begin_life(executor);
  orders_.begin_life(executor);
  key_limits_.begin_life(executor);
  for (Client& client : clients_) {
    client.keyed.begin_life();
    if (!client.began || client.keyed.acknowledged()) continue;
    // It is not known whether an acknowledgement was durable; if it was, submitting again could
    // start a new run.
    client.acknowledges&& client.keyed.result() ? client.keyed.ask(executor)
                                                : submit(client, executor);
  }
}

bool MixedStory::wind_up(ProcedureExecutor& executor) {
  bool did = false;
  for (Client& client : clients_) {
    if (!client.began || client.keyed.id() || client.keyed.refused().ok()) continue;
    if (executor.inspect().live_procedures() != 0)
      continue;  // what caused the refusal is still there
    submit(client, executor);
    did = true;
  }
  return did || repair_the_rest(executor);
}

RepairVerb MixedStory::last_order() const {
  switch (world_.plan().ending) {
    case TaskPlan::Ending::kMend:
      return RepairVerb::kRetryNow;
    case TaskPlan::Ending::kSkip:
      return RepairVerb::kSkipStep;
    case TaskPlan::Ending::kLeave:
    case TaskPlan::Ending::kBypass:
      break;
  }
  return RepairVerb::kBypass;
}

bool MixedStory::repair_the_rest(ProcedureExecutor& executor) {
  constexpr std::size_t kOrdersMax = 200;
  using Ending = TaskPlan::Ending;
  const Ending ending = world_.plan().ending;
  try_again_later_ = false;
  if (ending == Ending::kLeave || parked_.empty() || last_orders_ >= kOrdersMax) return false;
  bool ordered = false;
  for (const std::uint64_t root : parked_) {
    const auto member = world_.members().find(root);
    // The procedure of the order is busy just now: try again later.
    const Status now = executor.operate().preview(ProcedureId{root}, last_order()).status();
    if (now.code() == StatusCode::kUnavailable) {
      try_again_later_ = true;
      continue;
    }
    ordered = true;
    ++last_orders_;
    if (member == world_.members().end()) continue;
    const bool mends = ending == Ending::kMend;
    orders_.order(executor, last_order(), ProcedureId{root}, member->second.spec, mends);
  }
  return ordered;
}

void MixedStory::check(ProcedureExecutor& executor, Findings& findings) {
  const auto list = executor.inspect().list();
  parked_.clear();
  for (const ProcedureInfo& info : list) {
    if (info.parked) parked_.insert(info.root.value);
  }
  keeps_others_out_ = std::any_of(list.begin(), list.end(), [this](const ProcedureInfo& info) {
    return parked_.contains(info.root.value) && info.holds_locks && !info.locks.empty();
  });
  orders_.check(executor);
  orders_.take_findings(findings);
  key_limits_.check(executor, findings);
  world_.look_at_clock();
  world_.take_findings(findings);
  for (const Client& client : clients_) {
    if (!client.keyed.trouble().empty()) findings.add(client.keyed.trouble());
  }
  for (std::string& words : found_) findings.add(std::move(words));
  found_.clear();
}

}  // namespace pv2::testing

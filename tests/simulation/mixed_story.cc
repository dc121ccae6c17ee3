// SPDX-License-Identifier: Apache-2.0
//
// Clients come in the order of the roots; a second client of the same root sends under the same
// nonce, as a duplicate does.

#include "simulation/mixed_story.h"

#include <algorithm>

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
  if (world_.plan().limits_types) {
    operations_.push_back({Kind::kLimit, 0, 1 + random.below(2)});
    if (random.below(2) == 0) operations_.push_back({Kind::kLimit, 0, 0});
  }
  for (std::size_t i = operations_.size(); i > 1; --i) {
    std::swap(operations_[i - 1], operations_[random.below(i)]);
  }
}

// Of a procedure that keeps few signals, what nobody takes would keep out what it waits for.
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
  options.max_signals = world_.plan().max_signals;
  options.retry.jitter_percent = seed_ % 3 == 0 ? 0 : 10;
  options.max_results_in_memory = seed_ % 5 == 0 ? 1 : 100;
  if (seed_ % 7 == 0) options.max_live_procedures = 2;
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
    case Kind::kAbort:
      return "client " + std::to_string(operation.client) + " aborts, if he has an id";
    case Kind::kAskUnknown:
      return "somebody asks for the result of a procedure that never was";
    case Kind::kSignal:
      return "somebody sends a signal to task " + std::to_string(operation.client);
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
      if (client.keyed.result() && !client.keyed.acknowledged()) client.keyed.acknowledge(executor);
      return;
    }
    case Kind::kUnkeyed:
      return with_task(world_, operation.client, [&](auto task) {
        executor.submit_async(std::move(task), {}, [](const Result<Submitted>&) {});
      });
    case Kind::kLimit:
      return set_limit(operation, executor);
    case Kind::kMisuse: {
      const Client& client = clients_[operation.client];
      // Only a nonce that is known to be taken, and will stay so, can be misused.
      if (!client.keyed.id() || client.acknowledges) return;
      executor.submit_async(Task<TaskSpec::Kind::kUndoable>(world_, client.root + 1'000'000),
                            {.nonce = client.keyed.nonce()},
                            [this](const Result<Submitted>& answer) {
                              if (answer.ok()) found_.push_back("a nonce was used for two things");
                            });
      return;
    }
    case Kind::kAbort:
      return abort(clients_[operation.client], executor);
    case Kind::kAskUnknown:
      return executor.wait_async(ProcedureId{UINT64_MAX}, [this](const auto& answer) {
        if (answer.ok()) found_.push_back("a procedure that never was has a result");
      });
    case Kind::kSignal:
      if (const ProcedureId id = id_of(operation.client)) world_.signals().send(id);
      return;
    case Kind::kNoise:
      if (const ProcedureId id = id_of(operation.client)) world_.signals().send_noise(id);
      return;
  }
}

ProcedureId MixedStory::id_of(std::size_t task) const {
  for (const Client& client : clients_) {
    if (client.root == task && client.keyed.id()) return client.keyed.id();
  }
  return world_.id_of(task);
}

void MixedStory::abort(const Client& client, ProcedureExecutor& executor) {
  if (!client.keyed.id()) return;
  Abort& abort = aborts_[client.root];
  executor.abort_async(client.keyed.id(), {.reason = "simulated", .who = "client"},
                       [&abort](const Status& status) { abort.accepted |= status.ok(); });
}

void MixedStory::set_limit(const Operation& operation, ProcedureExecutor& executor) {
  std::optional<std::uint32_t> limit;
  if (operation.number != 0) limit = static_cast<std::uint32_t>(operation.number);
  static_cast<void>(executor.set_type_limit("sim.Task", limit));
}

void MixedStory::begin_life(ProcedureExecutor& executor) {
  world_.begin_life(executor);
  for (Client& client : clients_) {
    client.keyed.begin_life();
    if (!client.began || client.keyed.acknowledged()) continue;
    // Whether an acknowledgement was durable is not known; submitting again could be a new run.
    client.acknowledges&& client.keyed.result() ? client.keyed.ask(executor)
                                                : submit(client, executor);
  }
}

bool MixedStory::wind_up(ProcedureExecutor& executor) {
  bool did = false;
  for (Client& client : clients_) {
    if (!client.began || client.keyed.id() || client.keyed.refused().ok()) continue;
    if (executor.live_procedures() != 0) continue;  // what refused him is still there
    submit(client, executor);
    did = true;
  }
  return did;
}

void MixedStory::check(ProcedureExecutor& executor, Findings& findings) {
  const auto list = executor.list();
  keeps_others_out_ = std::any_of(list.begin(), list.end(), [](const ProcedureInfo& info) {
    return info.parked && info.holds_locks && !info.locks.empty();
  });
  world_.look_at_clock();
  world_.take_findings(findings);
  for (const Client& client : clients_) {
    if (!client.keyed.trouble().empty()) findings.add(client.keyed.trouble());
  }
  for (std::string& words : found_) findings.add(std::move(words));
  found_.clear();
}

void MixedStory::check_end(SimulationEnd& end) {
  check(end.executor, end.findings);
  for (const Client& client : clients_) {
    if (client.began) check_client(client, end);
  }
  check_rows(end);
}

void MixedStory::check_client(const Client& client, SimulationEnd& end) {
  const KeyedClient& keyed = client.keyed;
  const std::string who = "the client of " + in_words(world_.plan(), client.root);
  const auto aborted = aborts_.find(client.root);
  const TreeFate fate = world_.plan().fate(client.root, aborted != aborts_.end());
  if (!keyed.id()) {
    if (keyed.refused().ok()) end.findings.add(who + " was never answered");
    return;
  }
  if (!keyed.result()) {
    const auto info = end.executor.describe(keyed.id());
    // Trees that wait for each other while all are being undone are opened by parking one.
    const bool may_park = fate.may_park || fate.may_wait_in_a_circle;
    const bool waits = keeps_others_out_ && info.ok();
    if (!waits && (!info.ok() || !info->parked || !may_park)) {
      end.findings.add(who + " got no result");
    }
    return;
  }
  const ProcedureResult& result = *keyed.result();
  const bool succeeded = result.state == ProcedureState::kSuccess;
  if (succeeded ? !fate.may_succeed : !fate.may_fail) {
    end.findings.add(who + " was told " + result.status.to_string());
  }
  if (succeeded && aborted != aborts_.end() && aborted->second.accepted) {
    end.findings.add(who + " had it aborted, and it succeeded");
  }
  if (succeeded != result.status.ok()) end.findings.add(who + " was told a contradiction");
  if (succeeded && result.result != world_.plan().tasks[client.root].name() + " done") {
    end.findings.add(who + " was given '" + result.result + "'");
  }
  for (const Client& other : clients_) {
    if (other.root == client.root && other.keyed.id() && other.keyed.id() != keyed.id()) {
      end.findings.add("one nonce has two procedures, " + who);
    }
  }
  check_tree(client.root, succeeded, end);
}

void MixedStory::check_tree(std::size_t root, bool succeeded, SimulationEnd& end) {
  const std::vector<std::size_t> tree = world_.plan().tree(root);
  std::size_t ran = 0;
  for (const auto& [id, member] : world_.members()) {
    const TaskSpec& spec = world_.plan().tasks[member.spec];
    if (spec.root != root) continue;
    ++ran;
    const bool stays = succeeded || (spec.kind == TaskSpec::Kind::kFinal && member.finished);
    for (std::uint32_t step = 1; step <= spec.steps.size(); ++step) {
      const auto effect = member.effects.find(step);
      const bool there = effect != member.effects.end() && effect->second;
      if (succeeded && (!there || !member.ended.contains(step))) {
        end.findings.add("step " + std::to_string(step) + " of procedure " + std::to_string(id) +
                         " is missing, though its tree succeeded");
      }
      if (!stays && there && spec.kind != TaskSpec::Kind::kCommitting) {
        end.findings.add("step " + std::to_string(step) + " of procedure " + std::to_string(id) +
                         " was not undone, though its tree was");
      }
    }
  }
  if (succeeded && ran != tree.size()) {
    end.findings.add("only " + std::to_string(ran) + " of " + std::to_string(tree.size()) +
                     " tasks of a tree that succeeded ever ran");
  }
}

// A row was written by exactly one run of its visit; nothing of a failed attempt is left.
void MixedStory::check_rows(SimulationEnd& end) {
  const Status scanned = end.store.scan(Space::kHost, "", [&](const StoredRow& row) {
    if (row.key.starts_with("bad/")) end.findings.add("a failed attempt left a row");
    if (row.key.starts_with("r/") && row.value != "1") {
      end.findings.add("the row " + std::string(row.key) + " is " + std::string(row.value));
    }
    return Status();
  });
  if (!scanned.ok()) end.findings.add(scanned.to_string());
  for (const auto& [id, member] : world_.members()) {
    const TaskSpec& spec = world_.plan().tasks[member.spec];
    for (const auto& [visit, life] : member.advanced) {
      // The visits of a task without repeated steps are its steps.
      const bool repeats = std::any_of(spec.steps.begin(), spec.steps.end(), [](const auto& step) {
        return step.does == StepSpec::Does::kAgain;
      });
      if (repeats || !spec.steps.at(visit).writes_row || visit >= member.visit) continue;
      const auto row =
          end.store.get(Space::kHost, "r/" + std::to_string(id) + "/" + std::to_string(visit));
      if (!row.ok() || !*row) {
        end.findings.add("the row of visit " + std::to_string(visit) + " of procedure " +
                         std::to_string(id) + " is missing, though a later one ran");
      }
    }
  }
}

}  // namespace pv2::testing

// SPDX-License-Identifier: Apache-2.0
//
// StepContext forwards to its run: to the frame (which step runs) and to the effects (what takes
// effect with the record). It takes the state mutex only to read what other threads publish while
// the step runs: the ends of children, and signals.

#include "pv2/engine/step_context.h"

#include <fmt/format.h>

#include <stdexcept>

#include "core/state_lock.h"
#include "model/tree_walk.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/limits.h"
#include "pv2/engine/procedure_registry.h"
#include "steps/offloads.h"
#include "steps/step_run.h"

namespace pv2 {
namespace {

// The step fails, and an undo is tried again, as for any exception, whatever user code answers: it
// may catch what is thrown here, and what it asked for is missing.
template <class Thrown>
[[noreturn]] void refuse(StepEffects& effects, const std::string& why) {
  if (effects.thrown.ok()) {
    effects.thrown = {StatusCode::kInternal, fmt::format("step {} of {}: {}", effects.frame.name(),
                                                         effects.frame.execution.type->name, why)};
  }
  throw Thrown(why);
}

// Throws at once. Otherwise a step that loops without end would take all memory before its record
// is found to be too large.
void check_count(StepEffects& effects, std::size_t already, std::size_t most, const char* verb,
                 const char* things) {
  if (already < most) return;
  refuse<std::length_error>(effects,
                            fmt::format("a step may {} at most {} {}", verb, most, things));
}

[[noreturn]] void cannot_spawn(StepEffects& effects, std::string_view type, std::string_view why) {
  refuse<std::invalid_argument>(effects, fmt::format("cannot spawn a '{}': {}", type, why));
}

[[noreturn]] void awaits_another_thing(StepEffects& effects) {
  refuse<std::logic_error>(effects,
                           "a step that runs again has to await the same things in the same order");
}

}  // namespace

ProcedureId StepContext::id() const noexcept { return run_.frame_.execution.id; }
ProcedureId StepContext::root_id() const noexcept { return run_.frame_.execution.root()->id; }
std::uint32_t StepContext::step() const noexcept { return run_.frame_.step; }
std::uint32_t StepContext::attempt() const noexcept { return run_.frame_.execution.record.attempt; }
bool StepContext::unsure() const noexcept { return run_.frame_.unsure; }
bool StepContext::timed_out() const noexcept { return run_.frame_.timed_out; }
WallTime StepContext::now() const { return run_.frame_.now; }
Random& StepContext::random() { return run_.frame_.random; }

std::string StepContext::effect_key() const {
  const std::string key = "p" + std::to_string(id().value) + ".s" + std::to_string(step());
  if (!run_.frame_.undo) return key + ".v" + std::to_string(run_.frame_.execution.record.visits);
  // The visits do not change while the procedure is undone. The turns differ in the position of
  // their entry in the undo list. A step that was never recorded has no entry yet; it takes the
  // position that its entry gets when its undo waits.
  const auto& undo = run_.frame_.execution.record.undo;
  const bool listed = !undo.empty() && undo.back().step == step();
  return key + ".undo" + std::to_string(undo.size() - (listed ? 1 : 0));
}

std::vector<ChildOutcome> StepContext::children() const {
  const Execution& self = run_.frame_.execution;
  std::vector<ChildOutcome> outcomes;
  // The children have ended and do not change while their parent runs, so a list of any length may
  // be read in pieces.
  const Execution* child = nullptr;
  for (bool first = true; first || child != nullptr; first = false) {
    // Other threads published the children.
    StateLock lock(run_.frame_.core, Width::kNarrow);
    if (first) child = self.children().last;
    for (; child != nullptr && run_.frame_.core.looks.have_room(); child = older_of_spawn(*child)) {
      outcomes.push_back(
          {.id = child->id,
           .type = child->name_of_type(),
           .state = child->record.state,
           .error = child->record.failure() ? child->record.failure()->error : Status(),
           .result = child->record.result()});
    }
  }
  std::reverse(outcomes.begin(), outcomes.end());
  return outcomes;
}

const std::string* StepContext::signal(std::string_view name) {
  if (!run_.effects_.inbox_use) run_.effects_.inbox_use = std::make_unique<InboxUse>();
  InboxUse& use = *run_.effects_.inbox_use;
  if (name.empty() || name.size() > limits::kSignalNameBytes) {
    run_.effects_.bad_signal = {
        StatusCode::kInvalidArgument,
        fmt::format("a step asks for a signal whose name has {} bytes, but that of a signal has 1 "
                    "to {}",
                    name.size(), limits::kSignalNameBytes)};
    return nullptr;
  }
  auto of_name = use.given_by_name.find(name);
  if (of_name == use.given_by_name.end()) {
    of_name = use.given_by_name.try_emplace(std::string(name)).first;
  }
  auto& [count, last] = of_name->second;
  {
    // The publisher adds messages while the step runs.
    StateLock lock(run_.frame_.core, Width::kNarrow);
    const Inbox* const inbox = run_.frame_.execution.inbox.get();
    const InboxMessage* const message = inbox != nullptr ? inbox->next(name, last) : nullptr;
    if (message != nullptr) {
      use.given.push_back(message->number);
      ++count;
      last = message->number;
      return &message->payload;
    }
  }
  check_count(run_.effects_, use.wanted.size(), limits::kAwaitsPerStep, "look for",
              "signals that are not there");
  use.wanted.push_back({std::string(name), count});
  return nullptr;
}

void StepContext::spawn_erased(std::string_view type, std::unique_ptr<Procedure> child,
                               SpawnOptions options) {
  StepEffects& effects = run_.effects_;
  const ProcedureType* const known = run_.frame_.core.options.registry.find(type);
  if (known == nullptr) {
    cannot_spawn(effects, type, "the type is not in the executor's ProcedureRegistry");
  }
  if (const Status status = known->check_class_of(*child); !status.ok()) {
    cannot_spawn(effects, type, status.message());
  }
  if (options.on_failure > OnFailure::kReport || options.undo_order > UndoOrder::kConcurrent) {
    cannot_spawn(effects, type, "SpawnOptions has a value that its kind does not have");
  }
  check_count(effects, effects.children.size(), limits::kSpawnsPerStep, "spawn", "children");
  effects.children.spawn(*known, std::move(child), options);
}

void StepContext::submit_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                                SubmitOptions options) {
  StepEffects& effects = run_.effects_;
  check_count(effects, effects.roots.size(), limits::kSubmitsPerStep, "submit", "procedures");
  if (options.owner.empty()) options.owner = run_.frame_.execution.owner();
  effects.roots.submit(std::string(type), std::move(procedure), std::move(options));
}

AwaitSlot* StepContext::slot(std::size_t index, const std::type_info& type) {
  if (index >= run_.frame_.execution.slots.size()) return nullptr;
  AwaitSlot& known = run_.frame_.execution.slots[index];
  if (known.type() != type) awaits_another_thing(run_.effects_);
  return &known;
}

void StepContext::add_slot(Ref<AwaitSlot> slot) {
  check_count(run_.effects_, run_.frame_.execution.slots.size(), limits::kAwaitsPerStep, "await",
              "things at once");
  run_.frame_.execution.slots.push_back(std::move(slot));
}

bool StepContext::await(const Event& event) {
  auto* known = static_cast<EventSlot*>(slot(next_slot_++, typeid(EventSlot)));
  if (known == nullptr) {
    auto made = make_ref<EventSlot>(wake_target(), id(), wait_epoch(), event);
    known = made.get();
    // First: with a slot that is not subscribed, the next runs would wait for ever.
    made->subscribe();
    add_slot(std::move(made));
  } else if (!known->waits_for(event)) {
    awaits_another_thing(run_.effects_);
  }
  return known->ready();
}

Ref<WakeTarget> StepContext::wake_target() const { return Ref(&run_.wake_target_); }
std::uint32_t StepContext::wait_epoch() const noexcept { return run_.frame_.execution.wait.epoch; }

void StepContext::completed_by(ProcedureId producer) noexcept {
  run_.frame_.commit.producer = producer;
}

const Clock& StepContext::clock() const noexcept { return run_.frame_.core.clock; }

bool StepContext::may_offload(std::size_t index, OffloadOptions options) {
  return options.beside_earlier || run_.frame_.core.offloads->may_start(
                                       run_.frame_.execution, run_.frame_.place_of_work(index));
}

void StepContext::start_offloaded(std::size_t index,
                                  std::unique_ptr<internal::OffloadedWork> work) {
  const Status started = run_.frame_.core.offloads->start(
      run_.frame_.execution, run_.frame_.place_of_work(index), std::move(work));
  if (!started.ok()) refuse<std::length_error>(run_.effects_, std::string(started.message()));
}

Result<std::optional<std::string>> StepContext::get_row(std::string_view key) const {
  return run_.effects_.rows.get(key);
}
void StepContext::put_row(std::string_view key, std::string_view value) {
  run_.effects_.rows.put(key, value);
}
void StepContext::erase_row(std::string_view key) { run_.effects_.rows.erase(key); }

}  // namespace pv2

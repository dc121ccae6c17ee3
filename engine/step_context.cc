// SPDX-License-Identifier: Apache-2.0
//
// StepContext forwards to the run it belongs to. Only children() and rows reach outside it, under
// the state mutex or through the store.

#include "pv2/engine/step_context.h"

#include <algorithm>
#include <stdexcept>

#include "offloads.h"
#include "pv2/engine/limits.h"
#include "step_run.h"
#include "tree_walk.h"

namespace pv2 {
namespace {

// Throws, as a defect of the step: in a loop without end it would take all memory before its record
// is found to be too large.
void check_count(std::size_t already, std::size_t most, const char* verb, const char* things) {
  if (already < most) return;
  throw std::length_error(std::string("a step may ") + verb + " at most " + std::to_string(most) +
                          " " + things);
}

}  // namespace

ProcedureId StepContext::id() const noexcept { return run_.execution_.id; }
ProcedureId StepContext::root_id() const noexcept { return run_.execution_.root->id; }
std::uint32_t StepContext::step() const noexcept { return run_.step_; }
std::uint32_t StepContext::attempt() const noexcept { return run_.execution_.record.attempt; }
bool StepContext::unsure() const noexcept { return run_.execution_.record.unsure; }
bool StepContext::timed_out() const noexcept {
  // A back-off is no wait of the step, nor is the time before a start that was put off.
  const Execution& execution = run_.execution_;
  return execution.wait.timed_out && execution.record.last_outcome() == Outcome::Kind::kWait;
}
WallTime StepContext::now() const { return run_.now_; }
Random& StepContext::random() { return run_.random_; }

std::string StepContext::effect_key() const {
  const std::string key = "p" + std::to_string(id().value) + ".s" + std::to_string(step());
  if (!run_.undo_) return key + ".v" + std::to_string(run_.execution_.record.visits);
  // Visits stand still while it is undone. What tells its turns apart is the place of the entry in
  // the list; of a step that was never recorded, the place that it gets when its undo waits.
  const auto& undo = run_.execution_.record.undo;
  const bool listed = !undo.empty() && undo.back().step == step();
  return key + ".undo" + std::to_string(undo.size() - (listed ? 1 : 0));
}

std::vector<ChildOutcome> StepContext::children() const {
  const Execution& self = run_.execution_;
  std::vector<ChildOutcome> outcomes;
  // They have ended, and stay as they are while their parent runs: so the list, however long, may
  // be gone through in pieces.
  const Execution* child = nullptr;
  for (bool first = true; first || child != nullptr; first = false) {
    StateLock lock(run_.core_);  // to see what was published by others
    if (first) child = self.links.last_child;
    for (; child != nullptr && run_.core_.looks.have_room(); child = older_of_spawn(*child)) {
      outcomes.push_back({.id = child->id,
                          .type = child->name_of_type(),
                          .state = child->record.state,
                          .error = child->record.failure ? child->record.failure->error : Status(),
                          .result = child->record.result.view()});
    }
  }
  std::reverse(outcomes.begin(), outcomes.end());
  return outcomes;
}

const std::string* StepContext::signal(std::string_view name) {
  if (!run_.inbox_use_) run_.inbox_use_ = std::make_unique<InboxUse>();
  InboxUse& use = *run_.inbox_use_;
  if (name.empty() || name.size() > limits::kSignalNameBytes) {
    run_.refused_ = Status(
        StatusCode::kInvalidArgument,
        "a step asks for a signal whose name has " + std::to_string(name.size()) +
            " bytes, but that of a signal has 1 to " + std::to_string(limits::kSignalNameBytes));
    return nullptr;
  }
  std::size_t known = 0;
  {
    StateLock lock(run_.core_);  // the publisher adds messages while the step runs
    const Inbox* const inbox = run_.execution_.inbox.get();
    for (std::size_t i = 0; inbox != nullptr && i < inbox->messages.size(); ++i) {
      const InboxMessage& message = *inbox->messages[i];
      if (message.kind != InboxMessage::Kind::kSignal || message.name != name) continue;
      if (std::find(use.given.begin(), use.given.end(), message.number) == use.given.end()) {
        use.given.push_back(message.number);
        return &message.payload;
      }
      ++known;
    }
  }
  check_count(use.wanted.size(), limits::kAwaitsPerStep, "look for", "signals that are not there");
  use.wanted.push_back({std::string(name), known});
  return nullptr;
}

void StepContext::spawn_erased(std::string_view type, std::unique_ptr<Procedure> child,
                               SpawnOptions options) {
  const ProcedureType* const known = run_.core_.options.registry.find(type);
  if (known == nullptr) {
    throw std::invalid_argument("cannot spawn a '" + std::string(type) +
                                "': the type is not in the executor's ProcedureRegistry");
  }
  if (const Status status = known->check_class_of(*child); !status.ok()) {
    throw std::invalid_argument("cannot spawn a '" + std::string(type) +
                                "': " + std::string(status.message()));
  }
  if (options.on_failure > OnFailure::kReport || options.undo_order > UndoOrder::kConcurrent) {
    throw std::invalid_argument("cannot spawn a '" + std::string(type) +
                                "': SpawnOptions has a value that its kind does not have");
  }
  check_count(run_.spawned_.size(), limits::kSpawnsPerStep, "spawn", "children");
  run_.spawned_.push_back({known, std::move(child), options});
}

void StepContext::submit_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                                SubmitOptions options) {
  check_count(run_.submitted_.size(), limits::kSubmitsPerStep, "submit", "procedures");
  if (options.owner.empty()) options.owner = run_.execution_.owner.view();
  run_.submitted_.push_back({std::string(type), std::move(procedure), std::move(options)});
}

AwaitSlot* StepContext::slot(std::size_t index, const std::type_info& type) {
  if (index >= run_.execution_.slots.size()) return nullptr;
  if (run_.execution_.slots[index]->type() != type) {
    throw std::logic_error("a step that runs again has to await the same things in the same order");
  }
  return run_.execution_.slots[index].get();
}

void StepContext::add_slot(std::shared_ptr<AwaitSlot> slot) {
  check_count(run_.execution_.slots.size(), limits::kAwaitsPerStep, "await", "things at once");
  run_.execution_.slots.push_back(std::move(slot));
}

bool StepContext::await(const Event& event) {
  auto* known = static_cast<EventSlot*>(slot(next_slot_++, typeid(Event)));
  if (known == nullptr) {
    const auto made = std::make_shared<EventSlot>(wake_target(), id(), wait_epoch(), event);
    known = made.get();
    add_slot(made);
    EventSlot::subscribe(made);
  } else if (!known->waits_for(event)) {
    throw std::logic_error("a step that runs again has to await the same things in the same order");
  }
  return known->ready();
}

std::shared_ptr<WakeTarget> StepContext::wake_target() const { return run_.wake_target_; }
std::uint32_t StepContext::wait_epoch() const noexcept { return run_.execution_.wait.epoch; }

void StepContext::completed_by(ProcedureId producer) noexcept { run_.commit_.producer = producer; }

const Clock& StepContext::clock() const noexcept { return run_.core_.clock; }
const std::shared_ptr<AwaitSlot>& StepContext::at(std::size_t index) const noexcept {
  return run_.execution_.slots[index];
}

bool StepContext::may_offload(std::size_t index, OffloadOptions options) {
  return options.beside_earlier ||
         run_.core_.offloads->may_start(run_.execution_, run_.place_of_work(index));
}

void StepContext::start_offloaded(std::size_t index,
                                  std::unique_ptr<internal::OffloadedWork> work) {
  const Status started =
      run_.core_.offloads->start(run_.execution_, run_.place_of_work(index), std::move(work));
  if (!started.ok()) throw std::length_error(std::string(started.message()));
}

Result<std::optional<std::string>> StepContext::get_row(std::string_view key) const {
  std::optional<std::optional<std::string>> own;  // what this step itself wrote comes first
  run_.rows_.for_each(
      [&](RowOperation operation, Space, std::string_view row, std::string_view value) {
        if (row != key) return;
        own = operation == RowOperation::kDelete ? std::nullopt
                                                 : std::optional<std::string>(std::string(value));
      });
  if (own) return *own;
  return run_.core_.store.get(Space::kHost, key);
}

void StepContext::put_row(std::string_view key, std::string_view value) {
  if (!run_.row_fits(key, value) || !run_.may_write_row(key)) return;
  run_.rows_.put(Space::kHost, key, value);
}

void StepContext::erase_row(std::string_view key) {
  if (!run_.row_fits(key, {}) || !run_.may_write_row(key)) return;
  run_.rows_.erase(Space::kHost, key);
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// StepContext: what a step may ask of the engine while it runs. Everything it does takes effect
// with the record of the step: children, rows, and the next state become visible together, or not
// at all.
//
// await() and offload() are remembered by the order in which a step makes them: when the step runs
// again it makes the same calls in the same order and gets the answers that have arrived meanwhile.
// They are volatile: after a crash, a retry or another step they start again from nothing.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/procedure_state.h>
#include <pv2/base/random.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "pv2/engine/completion.h"
#include "pv2/engine/event.h"
#include "pv2/engine/offload.h"
#include "pv2/engine/submit_options.h"

namespace pv2 {

class Procedure;
class StepRun;  // the engine's side of one run of a step

/// How one child ended. An undo also sees what the rollback has done since: a child that was undone
/// is kRolledBack, and its result is gone; another one is kFailed and has its result, unless it is
/// final on success and stays as it is. A child of which nothing is to be undone may be missing.
struct ChildOutcome {
  ProcedureId id;
  std::string_view type;  ///< Valid during the step.
  /// kSuccess, or kRolledBack if its failure was to be reported.
  ProcedureState state = ProcedureState::kRunnable;
  Status error;             ///< OK for a success.
  std::string_view result;  ///< The bytes it gave to done(); valid during the step.
};

/// Owned by the worker that runs the step; valid during the call only. No other thread may touch
/// it.
class StepContext {
 public:
  explicit StepContext(StepRun& run) : run_(run) {}
  StepContext(const StepContext&) = delete;
  StepContext& operator=(const StepContext&) = delete;

  [[nodiscard]] ProcedureId id() const noexcept;
  /// The procedure that was submitted; for that procedure it equals id().
  [[nodiscard]] ProcedureId root_id() const noexcept;
  /// The number of the current step (1 for a procedure without a table).
  [[nodiscard]] std::uint32_t step() const noexcept;
  /// 1 for the first attempt at this step; counts durable retries.
  [[nodiscard]] std::uint32_t attempt() const noexcept;
  /// Whether an earlier attempt at this step answered unsure(): it may have had its effect.
  /// Durable. In an undo, whether an earlier attempt at this undo did.
  [[nodiscard]] bool unsure() const noexcept;
  /// Whether the deadline of the wait before this run caused this run.
  [[nodiscard]] bool timed_out() const noexcept;
  /// Names the effect of this visit of this step: the same key over retries, crashes and failover,
  /// a different key for every other visit. In an undo it names the undoing, with a different key
  /// each time that the step is undone. For services that deduplicate.
  [[nodiscard]] std::string effect_key() const;
  /// The executor's clock and random source.
  [[nodiscard]] WallTime now() const;
  [[nodiscard]] Random& random();

  /// Adds a child. It starts when this step's record is durable; this procedure goes on when all
  /// children that the step spawned have finished. When a child fails, the whole tree is undone,
  /// unless `on_failure` says that the failure is only reported. `undo_order` says whether the
  /// child may be undone at the same time as its siblings. A child too many (limits.h), or of a
  /// type that is not registered, throws, and the step fails, whatever it answers. Not in an undo.
  template <class P>
  void spawn(P child, SpawnOptions options = {}) {
    spawn_erased(P::kType, std::make_unique<P>(std::move(child)), options);
  }
  /// Submits an independent procedure in this step's record: it exists exactly if the step is done,
  /// and starts then. Nobody joins it, and it is not undone with this tree. Its owner is this
  /// procedure's unless the options name one. If the nonce is known already, nothing is submitted;
  /// if it was used for something else, the step fails (kKeyReused); while another submitter is
  /// submitting it, the step runs again a little later. A nonce that is not known in memory is
  /// looked up in the store, on this thread. max_live_procedures does not refuse the submission.
  /// One too many (limits.h) throws, and the step fails, whatever it answers. Not in an undo.
  template <class P>
  void submit(P procedure, SubmitOptions options = {}) {
    submit_erased(P::kType, std::make_unique<P>(std::move(procedure)), std::move(options));
  }
  /// The children that the last spawning step started, in the order in which it spawned them.
  [[nodiscard]] std::vector<ChildOutcome> children() const;

  /// Starts something that ends elsewhere: `start` gets a Completion<T> and returns at once.
  /// Returns the value when it has arrived (also when `start` completed it right away), otherwise
  /// nullptr: then answer wait(). If `start` throws, the next run of the step calls it again. A
  /// step that awaits too much at once (limits.h), or in another order than in its earlier runs,
  /// gets an exception and fails, whatever it answers.
  template <class T, class Start>
  const T* await(Start&& start) {
    const std::size_t index = next_slot_++;
    AwaitSlot* known = slot(index, typeid(T));
    if (known == nullptr) {
      auto made = make_slot<T>();
      known = made.get();
      known->set_source(AwaitSlot::Source::kNotBegun);
      add_slot(std::move(made));
    }
    if (known->source() == AwaitSlot::Source::kNotBegun && !known->ready()) {
      std::forward<Start>(start)(Completion<T>(Ref(static_cast<AwaitSlotOf<T>*>(known))));
      known->set_source(AwaitSlot::Source::kCompletion);
    }
    return known->ready() ? &static_cast<AwaitSlotOf<T>*>(known)->value() : nullptr;
  }

  /// Whether `event` is set, or was set since this step began to wait for it; if not, answer
  /// wait(). Everything that one step awaits, of this and the other kinds, is one wait: the first
  /// to arrive ends it. wait_for() adds a deadline.
  bool await(const Event& event);

  /// Says that `producer` completes what this step awaits (in a step of its own or of a
  /// descendant). A deadlock over the wait is then found, and `producer` runs with this procedure's
  /// rank as long as the wait lasts. Only for a wait without a deadline, which ends in no other
  /// way, and not in an undo: there it does nothing. Call it again in every run. A procedure that
  /// waits like that for itself fails (kInvalidArgument). A producer that has ended, or that there
  /// never was, is followed nowhere: the procedure waits on as if none was named.
  void completed_by(ProcedureId producer) noexcept;

  /// Runs `work` on the pool for blocking work. `work` takes nothing, a std::stop_token or an
  /// OffloadControl&. Its value arrives as Result<R> (Status for void or Status, Result<R> as it
  /// is); what it throws arrives as a Status. `work` must own what it uses: the procedure object
  /// may be gone before the work ends.
  ///
  /// What the procedure holds covers the work: until the work has returned and was destroyed, no
  /// lock and no place in a limit is given back, the procedure does not end, and nothing of its
  /// tree is undone. Work whose value no step will take is told to stop
  /// (OffloadControl::stop_token); if it had not begun, it never does. In a new attempt the work
  /// starts when what an earlier attempt offloaded here has ended, unless the options say
  /// otherwise; the earlier value is dropped. At most 1024 pieces of a procedure are outstanding;
  /// one more throws, and the step fails, whatever it answers.
  template <class Work>
  auto offload(Work work, OffloadOptions options = {}) {
    using Call = internal::OffloadedCall<Work>;
    using Value = typename Call::Value;
    const std::size_t index = next_slot_++;
    AwaitSlot* known = slot(index, typeid(Value));
    if (known == nullptr) {
      auto made = make_slot<Value>();
      known = made.get();
      known->set_source(AwaitSlot::Source::kPutOff);
      add_slot(std::move(made));
    }
    if (known->source() == AwaitSlot::Source::kPutOff && may_offload(index, options)) {
      start_offloaded(index, std::make_unique<Call>(clock(), std::move(work),
                                                    Ref(static_cast<AwaitSlotOf<Value>*>(known))));
      known->set_source(AwaitSlot::Source::kOffload);
    }
    const Value* const none = nullptr;
    return known->ready() ? &static_cast<AwaitSlotOf<Value>*>(known)->value() : none;
  }

  /// The payload of the next signal called `name` that was sent to this procedure
  /// (ProcedureExecutor::signal) and that no step has consumed. nullptr when there is none: then
  /// answer wait() or wait_for(). Every call in one run gives the next of the signals that are
  /// durable by then; another run of the same step gets the same ones again, in the same order. A
  /// signal that was sent after another one was answered comes behind it. Of signals that are sent
  /// at the same time the later one may be durable first: a run gets it, and the next run gets the
  /// earlier one before it. The record that ends this visit of the step consumes those that its run
  /// got, exactly once; a run that waits, retries, fails or is lost in a crash consumes none.
  /// Signals that were sent before the step asked are kept. The pointer is valid during the step.
  /// With a name that no signal can have (empty, or longer than 256 bytes) the step fails.
  [[nodiscard]] const std::string* signal(std::string_view name);

  /// The host's rows in the executor's store. A change is part of this run's record, so it happens
  /// together with what the run answers or not at all: a run that retries, fails or is lost in a
  /// crash changes nothing. A run that answers wait() has a record too, and the step runs again
  /// after it: change rows in the run that ends the step, otherwise a change that depends on a row
  /// that was read (a counter) is made twice. A row that is read is durable, or was written by this
  /// run. Reading locks nothing: siblings share the locks of their parent, so two may read the same
  /// value, and what one makes of it is overwritten by the other. Reading asks the store on this
  /// thread: LevelDB answers from memory what was written or read lately, and looks on the disk for
  /// the rest.
  [[nodiscard]] Result<std::optional<std::string>> get_row(std::string_view key) const;
  void put_row(std::string_view key, std::string_view value);
  void erase_row(std::string_view key);

 private:
  template <class T>
  Ref<AwaitSlotOf<T>> make_slot() {
    return make_ref<AwaitSlotOf<T>>(wake_target(), id(), wait_epoch());
  }
  void spawn_erased(std::string_view type, std::unique_ptr<Procedure> child, SpawnOptions options);
  void submit_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                     SubmitOptions options);
  [[nodiscard]] AwaitSlot* slot(std::size_t index, const std::type_info& type);
  void add_slot(Ref<AwaitSlot> slot);
  [[nodiscard]] Ref<WakeTarget> wake_target() const;
  [[nodiscard]] std::uint32_t wait_epoch() const noexcept;
  [[nodiscard]] const Clock& clock() const noexcept;
  [[nodiscard]] bool may_offload(std::size_t index, OffloadOptions options);
  void start_offloaded(std::size_t index, std::unique_ptr<internal::OffloadedWork> work);

  StepRun& run_;
  std::size_t next_slot_ = 0;
};

}  // namespace pv2

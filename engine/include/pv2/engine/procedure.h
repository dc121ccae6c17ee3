// SPDX-License-Identifier: Apache-2.0
//
// Procedure: what a user writes. A handful of virtuals and the fields that survive a crash; the
// engine keeps ids, state, locks held, history and queues (in its Execution, which a procedure
// never sees).
//
// A derived class declares, in public,
//
//     static constexpr std::string_view kType = "shop.PlaceOrder";  // persisted: never renamed
//     void fields(auto& f) { f.arg(1, "order", order_); f(2, "parcel", parcel_); }
//
// and may declare, in public too, what Procedure declares with a default: kChildOnly, kCountedAs,
// kFinalOnSuccess, kMaxAttempts. A name that is private, misspelt or of another type does not
// compile (procedure_class.h).
//
// How it fails: a step that throws fails for good (kInternal names the exception); the engine
// discards the object, and the next run starts from the last durable image, exactly as after a
// crash.

#pragma once

#include <pv2/base/block_cache.h>
#include <pv2/base/resource.h>
#include <pv2/scheduler/priority.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/engine/outcome.h"

namespace pv2 {

class StepContext;

namespace internal {
/// The type of Procedure::kSteps: there is no table.
struct NoSteps {};
}  // namespace internal

/// What an error says about trying again.
enum class ErrorKind : std::uint8_t {
  kTransient,  ///< It was not done, and may work later.
  kPermanent,  ///< It was not done, and never will be.
  kAmbiguous,  ///< Whether it was done is not known.
};

/// kUnavailable, kBusy, kResourceExhausted, kStopping and kDeadlock are transient, kUnknownOutcome
/// and kDeadlineExceeded ambiguous, all others permanent.
[[nodiscard]] ErrorKind kind_of(StatusCode code) noexcept;

/// One operation. The engine calls it from one thread at a time, on any worker, never under a lock
/// of the engine. Steps must not block: what takes time goes through StepContext::offload() or
/// await().
///
/// An object lives while its steps follow one another. When a step waits or fails for now, or the
/// process ends, the engine makes another object for the next run and decodes its fields: a member
/// that is not a field has its initial value again.
///
/// Procedure has an operator new and an operator delete, which use free blocks of memory
/// (base/block_cache.h). A class that declares its own operator new must declare operator delete,
/// too. A class with a second base that has these operators must say which it uses
/// (`using Procedure::operator new; using Procedure::operator delete;`).
class Procedure : public Recycled {
 public:
  /// Without a step table a procedure has one step, number 1, called EXECUTE. A
  /// StateMachineProcedure declares its own: `static constexpr auto kSteps = pv2::steps(...);`.
  static constexpr internal::NoSteps kSteps{};
  /// A step parks after this many failed attempts, unless its row of the table says otherwise.
  /// 0: as RetryPolicy::max_attempts says. A derived class may declare its own.
  static constexpr std::uint32_t kMaxAttempts = 0;
  /// Whether a procedure that has succeeded stays as it is, with all that it has spawned, even if
  /// the tree around it is undone (its parent compensates). A derived class may declare its own.
  static constexpr bool kFinalOnSuccess = false;
  /// What a listing calls such procedures when it counts the finished children of their parent:
  /// "7 of 64 regions". A derived class may declare its own.
  static constexpr std::string_view kCountedAs = "children";
  /// Whether only other procedures start such a procedure, with StepContext::spawn(): it relies on
  /// the locks and checks of its parent. Submitting one fails with kInvalidArgument. A derived
  /// class may declare its own.
  static constexpr bool kChildOnly = false;

  virtual ~Procedure() = default;

  /// Does the (next) step and says what follows. May run again after a crash or a retry, even when
  /// it had already had all its effects: check, act, answer.
  virtual Outcome execute(StepContext& ctx) = 0;

  /// Undoes what execute() did. May run again, and must cope with steps that were half done.
  /// Answer undone(), retry() or wait(); fail() parks the tree for an operator, and so does an
  /// answer that says what comes next (next(), again(), done()).
  virtual Outcome rollback(StepContext& ctx);

  /// The locks that the procedure needs. Asked once, at submission, with the arguments in place.
  [[nodiscard]] virtual LockSet locks() const { return {}; }

  /// Its rank among procedures of its class; asked once, at submission.
  [[nodiscard]] virtual Priority priority() const { return Priority::kNormal; }

  /// How far it is, in words, as its fields say: "40 of 350 regions reopened". For what no join of
  /// children counts. Asked by listings that show fields, of another object than the one that runs.
  [[nodiscard]] virtual std::string progress() const { return {}; }

 protected:
  Procedure() = default;
  Procedure(const Procedure&) = default;
  Procedure& operator=(const Procedure&) = default;

  /// The same step runs once more, after others that are ready had their turn.
  [[nodiscard]] static Outcome again() { return {.kind = Outcome::Kind::kAgain}; }
  /// Finished; `result` goes to callers that wait for it, and is kept with the nonce.
  [[nodiscard]] static Outcome done(std::string result = {}) {
    return {.kind = Outcome::Kind::kDone, .result = std::move(result)};
  }
  /// The same step runs again as soon as something that it awaits arrives. A step fails, and an
  /// undo parks, if nothing can arrive any more when it answers: it awaits nothing, it has got
  /// everything that it awaits, or each Completion for the rest was dropped. One that is dropped
  /// later ends no wait, and nobody is told.
  [[nodiscard]] static Outcome wait() { return {.kind = Outcome::Kind::kWait}; }
  /// Like wait(), but at the latest after `timeout`; ctx.timed_out() then says so. A `timeout` that
  /// is not positive has passed at once. The deadline is durable. A back-off that the step did not
  /// ask for (its constructor threw, or the engine had no room for its children) does not move the
  /// deadline. If the process dies during such a back-off, the step waits for all of `timeout` once
  /// more.
  [[nodiscard]] static Outcome wait_for(Duration timeout) {
    return {.kind = Outcome::Kind::kWait, .timeout = timeout};
  }
  /// Failed for now: the same step runs again, from the last durable image, after a durable
  /// back-off.
  [[nodiscard]] static Outcome retry(Status error) {
    return {.kind = Outcome::Kind::kRetry, .error = std::move(error)};
  }
  /// Like retry(), but it is not known whether this attempt had its effect (a call timed out).
  /// StepContext::unsure() tells the next attempt, durably: it may ask what became of the call, or
  /// call again under the same effect_key(); it must not try elsewhere.
  [[nodiscard]] static Outcome unsure(Status error) {
    return {.kind = Outcome::Kind::kRetry, .error = std::move(error), .unsure = true};
  }
  /// retry(), unsure() or fail(), by the code of `error`: see kind_of().
  [[nodiscard]] static Outcome failed(Status error);
  /// Failed for good: the tree is undone; `error` becomes its result.
  [[nodiscard]] static Outcome fail(Status error) {
    return {.kind = Outcome::Kind::kFail, .error = std::move(error)};
  }
  /// From rollback only: this step is undone.
  [[nodiscard]] static Outcome undone() { return {.kind = Outcome::Kind::kUndone}; }
};

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Status and Result<T>: how every layer of pv2 reports an expected failure. Neither is an
// exception: engine code throws nothing for what it expects to happen, and user code that throws is
// turned into a Status at one guard. The code numbers are persisted with failed procedures, so a
// number is retired, never reused.

#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "pv2/base/assert.h"

namespace pv2 {

/// What kind of failure this is; decides what a caller may do about it.
enum class StatusCode : std::uint8_t {
  kOk = 0,
  kInvalidArgument = 1,     ///< The request is wrong in itself; sending it again cannot help.
  kNotFound = 2,            ///< No such thing, and there never was as far as anyone knows.
  kAlreadyExists = 3,       ///< The thing to be made is there already.
  kKeyReused = 4,           ///< The nonce was used before with other arguments; nothing was run.
  kExpired = 5,             ///< Existed once and was forgotten (an evicted result, an old nonce).
  kFailedPrecondition = 6,  ///< The state of the world does not allow it (yet).
  kAborted = 7,             ///< Ended on request: an abort, a bypass.
  kDeadlineExceeded = 8,    ///< A deadline passed; the operation may still be going on.
  kUnavailable = 9,         ///< Not now; the same request may succeed later.
  kStopping = 10,           ///< The executor or store is stopping or stopped.
  kResourceExhausted = 11,  ///< A stated limit is reached; later, when there is room, it may work.
  kCorruption = 12,         ///< Stored bytes are not what was written.
  kIoError = 13,            ///< The operating system refused or failed an operation.
  kNotSupported = 14,       ///< Understood, and not something this object does.
  kInternal = 15,           ///< A defect in pv2 or in a procedure (an unexpected exception).
  kUnknownOutcome = 16,     ///< It may or may not have happened; find out before repeating it.
  kFenced = 17,             ///< Another owner has taken over; this one must not write any more.
  kBusy = 18,               ///< Another owner holds it (a store in use by another process).
  kDeadlock = 19,           ///< Given up to end a deadlock; the same work may be submitted again.
  kStorageFull = 20,        ///< The disk, or a quota, is full; nothing works before there is room.
  kUnauthenticated = 21,    ///< The caller has not shown who it is, or may not ask.
};
inline constexpr StatusCode kStatusCodeMax = StatusCode::kUnauthenticated;

/// The stable name of a code, as printed in messages and logs ("KEY_REUSED").
[[nodiscard]] std::string_view to_string(StatusCode code) noexcept;

/// Success, or a code with a message for people. Copies share one immutable message.
/// Const methods may be called concurrently.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  /// A failure; `code` must not be kOk.
  Status(StatusCode code, std::string message);

  [[nodiscard]] bool ok() const noexcept { return rep_ == nullptr; }
  [[nodiscard]] StatusCode code() const noexcept { return rep_ ? rep_->code : StatusCode::kOk; }
  /// A view into this Status, valid as long as it or a copy of it lives.
  [[nodiscard]] std::string_view message() const& noexcept {
    return rep_ ? std::string_view(rep_->message) : std::string_view();
  }
  /// For a temporary: a string of its own, because a view would outlive the text.
  [[nodiscard]] std::string message() const&& { return rep_ ? rep_->message : std::string(); }
  /// "OK", or "CODE: message".
  [[nodiscard]] std::string to_string() const;

  /// The same failure seen from one level up: "context: message". OK stays OK.
  Status with_context(std::string_view context) const;

  friend bool operator==(const Status& a, const Status& b) noexcept {
    return a.code() == b.code() && a.message() == b.message();
  }

 private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  // Shared between copies of one failure, which travel to several waiters; immutable.
  std::shared_ptr<const Rep> rep_;
};

/// A value, or the Status that says why there is none. Never holds an OK Status.
///
/// A temporary Result gives its value away, so `for (auto& x : *console.preview(...))` is safe.
/// What `->` names lies within the Result: `for (auto& x : inspection.describe(id)->history)` reads
/// freed memory. Keep the Result, or `*result`, in a variable first.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {
    PV2_ASSERT(!std::get<1>(state_).ok(), "a Result made from a Status needs a failure");
  }

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// The failure, or OK when there is a value.
  Status status() const { return ok() ? Status() : std::get<1>(state_); }

  /// The value; asking for it when there is none is a defect of the caller.
  T& value() & {
    PV2_ASSERT(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  const T& value() const& {
    PV2_ASSERT(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  T value() && {
    PV2_ASSERT(ok(), "value() of a failed Result");
    return std::get<0>(std::move(state_));
  }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

/// What an exception that code of the host has thrown says of itself. Its what() may be anything,
/// also a null pointer.
[[nodiscard]] std::string_view text_of(const std::exception& thrown) noexcept;

}  // namespace pv2

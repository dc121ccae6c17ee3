// SPDX-License-Identifier: Apache-2.0
//
// The bodies of calls and answers, but for those of listings (listing_messages.h). pv2_remote.proto
// says the same for other languages. Numbers are never used again for something else.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/fields.h>
#include <pv2/base/ids.h>
#include <pv2/base/procedure_state.h>
#include <pv2/base/status.h>
#include <pv2/engine/procedure_result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pv2::remote {

inline constexpr std::string_view kSubmit = "pv2.submit";
inline constexpr std::string_view kFind = "pv2.find";
inline constexpr std::string_view kWait = "pv2.wait";
inline constexpr std::string_view kAcknowledge = "pv2.acknowledge";
inline constexpr std::string_view kAbort = "pv2.abort";
inline constexpr std::string_view kSignal = "pv2.signal";
inline constexpr std::string_view kRun = "pv2.run";
inline constexpr std::string_view kList = "pv2.list";
inline constexpr std::string_view kExplain = "pv2.explain";

/// A Status.
struct StatusMessage {
  std::uint32_t code = 0;
  std::string message{};

  StatusMessage() = default;
  explicit StatusMessage(const Status& status)
      : code(static_cast<std::uint32_t>(status.code())), message(status.message()) {}
  /// A code that this program does not know becomes kInternal, with the message.
  [[nodiscard]] Status status() const {
    if (code == 0) return Status();
    const bool known = code <= static_cast<std::uint32_t>(kStatusCodeMax);
    return Status(known ? static_cast<StatusCode>(code) : StatusCode::kInternal, message);
  }
  void fields(auto& f) {
    f(1, "code", code);
    f(2, "message", message);
  }
};

/// pv2.submit. The nonce and its end are the call's.
struct SubmitMessage {
  std::string type{};
  std::string arguments{};
  std::optional<Duration> delay{};
  std::optional<WallTime> start_at{};
  void fields(auto& f) {
    f(1, "type", type);
    f(2, "arguments", arguments);
    f(3, "delay", delay);
    f(4, "start_at", start_at);
  }
};

/// The answer to pv2.submit and pv2.find.
struct SubmittedMessage {
  ProcedureId id{};
  bool replayed = false;
  void fields(auto& f) {
    f(1, "id", id);
    f(2, "replayed", replayed);
  }
};

/// pv2.find.
struct NonceMessage {
  std::uint64_t group = 0;
  std::uint64_t value = 0;
  void fields(auto& f) {
    f(1, "group", group);
    f(2, "value", value);
  }
};

/// pv2.wait, pv2.acknowledge, pv2.explain.
struct IdMessage {
  ProcedureId id{};
  void fields(auto& f) { f(1, "id", id); }
};

/// The answer to pv2.wait.
struct ResultMessage {
  ProcedureResult value{};
  void fields(auto& f) {
    StatusMessage status(value.status);
    f(1, "id", value.id);
    f(2, "state", value.state);
    f(3, "status", status);
    f(4, "result", value.result);
    f(5, "bypassed", value.bypassed);
    f(6, "submitted", value.submitted);
    f(7, "finished", value.finished);
    value.status = status.status();
  }
};

/// pv2.abort. `who` counts only if the server does not know who calls.
struct AbortMessage {
  ProcedureId id{};
  std::string reason{};
  std::string who{};
  void fields(auto& f) {
    f(1, "id", id);
    f(2, "reason", reason);
    f(3, "who", who);
  }
};

/// The answer to pv2.abort.
struct AbortedMessage {
  bool had_ended = false;  ///< The root had ended before; it was aborted, perhaps by another copy.
  void fields(auto& f) { f(1, "had_ended", had_ended); }
};

/// pv2.signal. The nonce is the call's.
struct SignalMessage {
  ProcedureId id{};
  std::string name{};
  std::string payload{};
  std::uint64_t run = 0;  ///< Of the service that the signal is for.
  void fields(auto& f) {
    f(1, "id", id);
    f(2, "name", name);
    f(3, "payload", payload);
    f(4, "run", run);
  }
};

/// The answer to pv2.run.
struct RunMessage {
  std::uint64_t run = 0;
  void fields(auto& f) { f(1, "run", run); }
};

template <class Message>
[[nodiscard]] std::string to_bytes(Message message) {
  std::string bytes;
  encode_fields(message, FieldSelection::kAll, bytes);
  return bytes;
}

/// kCorruption: `bytes` are no such message.
template <class Message>
[[nodiscard]] Result<Message> from_bytes(std::string_view bytes) {
  Message message;
  const Status status = decode_fields(message, FieldSelection::kAll, bytes);
  if (!status.ok()) return status;
  return message;
}

}  // namespace pv2::remote

// SPDX-License-Identifier: Apache-2.0
//
// Status: names of the codes and the way messages are joined. Cannot fail, apart from running out
// of memory.

#include "pv2/base/status.h"

namespace pv2 {

std::string_view to_string(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::kOk:
      return "OK";
    case StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case StatusCode::kNotFound:
      return "NOT_FOUND";
    case StatusCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case StatusCode::kKeyReused:
      return "KEY_REUSED";
    case StatusCode::kExpired:
      return "EXPIRED";
    case StatusCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case StatusCode::kAborted:
      return "ABORTED";
    case StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case StatusCode::kUnavailable:
      return "UNAVAILABLE";
    case StatusCode::kStopping:
      return "STOPPING";
    case StatusCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case StatusCode::kCorruption:
      return "CORRUPTION";
    case StatusCode::kIoError:
      return "IO_ERROR";
    case StatusCode::kNotSupported:
      return "NOT_SUPPORTED";
    case StatusCode::kInternal:
      return "INTERNAL";
    case StatusCode::kUnknownOutcome:
      return "UNKNOWN_OUTCOME";
    case StatusCode::kFenced:
      return "FENCED";
    case StatusCode::kBusy:
      return "BUSY";
    case StatusCode::kDeadlock:
      return "DEADLOCK";
    case StatusCode::kStorageFull:
      return "STORAGE_FULL";
    case StatusCode::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "UNKNOWN_CODE";
}

Status::Status(StatusCode code, std::string message)
    : rep_(std::make_shared<const Rep>(Rep{code, std::move(message)})) {
  PV2_ASSERT(code != StatusCode::kOk, "a Status with a message is a failure");
}

std::string Status::to_string() const {
  if (ok()) return "OK";
  std::string text(pv2::to_string(code()));
  text += ": ";
  text += message();
  return text;
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return *this;
  std::string text(context);
  text += ": ";
  text += message();
  return Status(code(), std::move(text));
}

std::string_view text_of(const std::exception& thrown) noexcept {
  const char* const text = thrown.what();
  return text != nullptr ? text : "an exception that says nothing";
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// The defaults of Procedure, and how an exception of user code becomes a Status.

#include "pv2/engine/procedure.h"

#include <exception>

namespace pv2 {

ErrorKind kind_of(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::kUnavailable:
    case StatusCode::kBusy:
    case StatusCode::kResourceExhausted:
    case StatusCode::kStopping:
    case StatusCode::kDeadlock:
      return ErrorKind::kTransient;
    case StatusCode::kUnknownOutcome:
    case StatusCode::kDeadlineExceeded:
      return ErrorKind::kAmbiguous;
    case StatusCode::kOk:
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kAlreadyExists:
    case StatusCode::kKeyReused:
    case StatusCode::kExpired:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kAborted:
    case StatusCode::kCorruption:
    case StatusCode::kIoError:
    case StatusCode::kNotSupported:
    case StatusCode::kInternal:
    case StatusCode::kFenced:
    case StatusCode::kStorageFull:
    case StatusCode::kUnauthenticated:
      break;
  }
  return ErrorKind::kPermanent;
}

Outcome Procedure::rollback(StepContext& /*ctx*/) { return undone(); }

Outcome Procedure::failed(Status error) {
  switch (kind_of(error.code())) {
    case ErrorKind::kTransient:
      return retry(std::move(error));
    case ErrorKind::kAmbiguous:
      return unsure(std::move(error));
    case ErrorKind::kPermanent:
      break;
  }
  return fail(std::move(error));
}

namespace internal {

Status status_of_current_exception(std::string_view what) noexcept {
  std::string message(what);
  try {
    throw;
  } catch (const std::exception& exception) {
    message += " threw: ";
    message += text_of(exception);
  } catch (...) {
    message += " threw something that is no std::exception";
  }
  return Status(StatusCode::kInternal, std::move(message));
}

}  // namespace internal
}  // namespace pv2

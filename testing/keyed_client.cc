// SPDX-License-Identifier: Apache-2.0
//
// What the client concludes from the answers. An answer that a crash or a stop explains is no
// trouble: the client asks again in the next life.

#include "pv2/testing/keyed_client.h"

#include <pv2/engine/async_executor.h>

namespace pv2::testing {

KeyedClient::KeyedClient(Nonce nonce) : nonce_(nonce), seen_(std::make_shared<Seen>()) {}

void KeyedClient::begin_life() {
  seen_->told = false;
  seen_->acknowledging = false;
}

void KeyedClient::ask(ProcedureExecutor& executor) { Seen::ask(seen_, executor); }

void KeyedClient::acknowledge(ProcedureExecutor& executor) {
  seen_->acknowledging = true;
  executor.async().acknowledge(seen_->id, [seen = seen_](const Status& status) {
    seen->acknowledging = false;
    if (status.ok()) {
      seen->acknowledged = true;
    } else {
      seen->blame_the_crash(status);
    }
  });
}

void KeyedClient::Seen::submitted(const std::shared_ptr<Seen>& seen, ProcedureExecutor& executor,
                                  const Result<Submitted>& answer) {
  if (!answer.ok()) return seen->blame_the_crash(answer.status());
  seen->refused = Status();
  if (seen->id && answer->id != seen->id) seen->complain("was told another id for the same nonce");
  if (seen->id && !answer->replayed) seen->complain("was given a second run for the same nonce");
  seen->id = answer->id;
  ask(seen, executor);
}

void KeyedClient::Seen::ask(const std::shared_ptr<Seen>& seen, ProcedureExecutor& executor) {
  executor.async().wait(seen->id,
                        [seen](const Result<ProcedureResult>& answer) { seen->hear(answer); });
}

void KeyedClient::Seen::hear(const Result<ProcedureResult>& answer) {
  if (!answer.ok()) {
    // The acknowledgement of an earlier life may have become durable without an answer to the
    // client.
    const bool gone = result && answer.status().code() == StatusCode::kExpired;
    if (gone) acknowledged = true;
    if (!gone) blame_the_crash(answer.status());
    return;
  }
  told = true;
  if (result && (result->result != answer->result || result->status != answer->status ||
                 result->state != answer->state || result->finished != answer->finished)) {
    complain("was told another result than before: " + answer->status.to_string() + " '" +
             answer->result + "' instead of " + result->status.to_string() + " '" + result->result +
             "'");
  }
  result = *answer;
}

void KeyedClient::Seen::blame_the_crash(const Status& status) {
  switch (status.code()) {
    case StatusCode::kUnknownOutcome:
    case StatusCode::kIoError:
    case StatusCode::kStopping:
      return;
    case StatusCode::kUnavailable:
    case StatusCode::kResourceExhausted:
      refused = status;
      return;
    default:
      complain("was answered " + status.to_string());
  }
}

void KeyedClient::Seen::complain(std::string words) {
  if (trouble.empty())
    trouble = "the client of procedure " + std::to_string(id.value) + " " + words;
}

}  // namespace pv2::testing

// SPDX-License-Identifier: Apache-2.0
//
// One line per server, one call at a time. Calls are sent again as often as needed, because a
// server does an effect key once.

#include "master/dispatcher.h"

#include <pv2/base/fields.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "wire/message_bytes.h"
#include "wire/methods.h"
#include "wire/server_messages.h"

namespace pv2::cluster {
namespace {

// So that the server notes them in one turn of its loop. MessageBytes bounds the bytes.
constexpr std::size_t kOperationsPerCall = 1024;
// A server that is busy answers within milliseconds, because it only notes the operation.
constexpr Duration kCallTimeout = std::chrono::seconds(5);
// HBase counts to ten (HBASE-28638). Here a lease has to pass as well, which one slow call alone
// can take.
constexpr std::uint32_t kUnansweredMax = 3;

DispatchOutcome outcome_of(const CallOutcome& call) {
  const bool not_sent = call.kind == CallOutcome::Kind::kFailed;
  return {not_sent ? DispatchOutcome::Kind::kNotSent : DispatchOutcome::Kind::kUnknown,
          call.status.to_string()};
}

}  // namespace

void Dispatcher::dispatch(RemoteOperation operation, Completion<DispatchOutcome> done) {
  const ServerName server = operation.server;
  Line& line = lines_[server];
  line.waiting.push_back({std::move(operation), std::move(done)});
  // Not at once: what the same round of the loop brings goes along.
  if (!line.is_calling && line.waiting.size() == 1) {
    tasks_.post([this, server] { send(server); });
  }
}

void Dispatcher::send(const ServerName& server) {
  const auto found = lines_.find(server);
  if (found == lines_.end() || found->second.is_calling || found->second.waiting.empty()) return;
  if (events_.is_awaited(server)) return;  // came() or fail_all() goes on
  Line& line = found->second;
  DispatchRequest request{.epoch = epoch_, .operations = {}, .first = next_number_};
  std::vector<Waiting> batch;
  MessageBytes bytes;
  while (!line.waiting.empty() && batch.size() < kOperationsPerCall &&
         bytes.add(line.waiting.front().operation)) {
    request.operations.push_back(line.waiting.front().operation);
    batch.push_back(std::move(line.waiting.front()));
    line.waiting.pop_front();
  }
  next_number_ += request.operations.size();
  std::string body;
  encode_fields(request, FieldSelection::kAll, body);
  line.is_calling = true;
  links_.call(server, kServerDispatch, std::move(body),
              {.read_only = true, .timeout = kCallTimeout},
              tasks_.guarded<CallOutcome>(
                  [this, server, batch = std::move(batch)](const CallOutcome& outcome) {
                    answered(server, batch, outcome);
                  }));
}

void Dispatcher::answered(const ServerName& server, std::vector<Waiting> batch,
                          const CallOutcome& outcome) {
  DispatchReply reply;
  const bool is_reply = outcome.ok() &&
                        decode_fields(reply, FieldSelection::kAll, outcome.body).ok() &&
                        reply.answers.size() == batch.size();
  // Whatever was sent and is not unknown was answered: by a refusal.
  const bool is_refused = outcome.kind == CallOutcome::Kind::kFailed && outcome.attempts > 0;
  count(server, is_reply || is_refused);
  if (is_refused && outcome.status.code() == StatusCode::kFenced) {
    events_.on_later_epoch();
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!is_reply) {
      batch[i].done(outcome_of(outcome));
    } else if (reply.answers[i].accepted) {
      batch[i].done(DispatchOutcome{DispatchOutcome::Kind::kDone, ""});
    } else {
      batch[i].done(DispatchOutcome{DispatchOutcome::Kind::kRefused, reply.answers[i].reason});
    }
  }
  send(server);
}

// A call that did not leave counts as one without an answer: a server that says that it lives, and
// cannot be reached, holds procedures up as well.
void Dispatcher::count(const ServerName& server, bool is_answered) {
  const auto found = lines_.find(server);
  if (found == lines_.end()) return;
  Line& line = found->second;
  line.is_calling = false;
  if (is_answered) {
    line.unanswered = 0;
    return;
  }
  if (line.unanswered++ == 0) line.unanswered_since = tasks_.now();
  if (line.unanswered < kUnansweredMax || tasks_.now() - line.unanswered_since < lease_) return;
  line.unanswered = 0;
  events_.give_up(server);
}

void Dispatcher::fail_all(const ServerName& server) {
  const auto found = lines_.find(server);
  if (found == lines_.end()) return;
  std::deque<Waiting> waiting = std::move(found->second.waiting);
  lines_.erase(found);
  links_.drop(server);
  for (Waiting& entry : waiting) {
    entry.done(DispatchOutcome{DispatchOutcome::Kind::kNotSent,
                               "server " + to_string(server) + " is dead"});
  }
}

}  // namespace pv2::cluster

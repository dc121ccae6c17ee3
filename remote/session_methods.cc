// SPDX-License-Identifier: Apache-2.0
//
// A session's verbs as methods. None of them needs a nonce: each may come again.

#include "pv2/remote/session_methods.h"

#include <pv2/base/fields.h>
#include <pv2/rpc/session_messages.h>

#include <memory>
#include <utility>

namespace pv2 {
namespace {

// An answer that is given later, from a thread of the log.
std::shared_ptr<IncomingCall> shared(IncomingCall call) {
  return std::make_shared<IncomingCall>(std::move(call));
}

void answer(IncomingCall& call, const Status& status) {
  if (status.ok()) return call.reply({});
  call.refuse(status);
}

void open(ClientSessions& sessions, IncomingCall incoming) {
  SessionOpenRequest request;
  if (Status status = decode_fields(request, FieldSelection::kAll, incoming.body()); !status.ok()) {
    return incoming.fail({StatusCode::kInvalidArgument, std::string(status.message())});
  }
  std::string owner(incoming.caller());
  const auto call = shared(std::move(incoming));
  sessions.open(std::move(request.token), std::move(owner), request.window,
                [call](Result<Session> session) {
                  if (!session.ok()) return call->refuse(session.status());
                  SessionOpenReply reply{.session = session->id.value, .window = session->window};
                  std::string body;
                  encode_fields(reply, FieldSelection::kAll, body);
                  call->reply(body);
                });
}

void heartbeat(ClientSessions& sessions, IncomingCall call) {
  const SessionCall& session = call.session();
  answer(call,
         sessions.heartbeat(SessionId{session.session}, call.caller(), session.first_unacked));
}

void close(ClientSessions& sessions, IncomingCall incoming) {
  const auto call = shared(std::move(incoming));
  sessions.close(SessionId{call->session().session}, call->caller(),
                 [call](const Status& status) { answer(*call, status); });
}

}  // namespace

void add_session_methods(RpcMethods& methods, ClientSessions& sessions) {
  const auto add = [&](std::string_view name, void (*handle)(ClientSessions&, IncomingCall)) {
    methods[std::string(name)] = [&sessions, handle](IncomingCall call) {
      handle(sessions, std::move(call));
    };
  };
  add(kSessionOpen, open);
  add(kSessionHeartbeat, heartbeat);
  add(kSessionClose, close);
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// The verbs of ClientSessions and RequestOwner; what they mean is in session_table.cc.

#include "pv2/idempotency/client_sessions.h"

#include <pv2/base/assert.h>
#include <pv2/base/latch.h>

#include <algorithm>
#include <utility>

#include "give.h"
#include "session_table.h"

namespace pv2 {

// ---- RequestOwner ----

// What this owned ends without a verdict, with `taken`.
RequestOwner& RequestOwner::operator=(RequestOwner&& other) noexcept {
  RequestOwner taken(std::move(other));
  std::swap(table_, taken.table_);
  std::swap(session_, taken.session_);
  std::swap(number_, taken.number_);
  std::swap(saved_, taken.saved_);
  std::swap(moves_mark_to_, taken.moves_mark_to_);
  return *this;
}

RequestOwner::~RequestOwner() {
  if (table_) table_->said_nothing(session_, number_, moves_mark_to_);
}

void RequestOwner::save(RowBatch& effect, Response response) {
  if (!table_) return;
  PV2_ASSERT(saved_ == nullptr, "a request is saved once");
  auto saved = std::make_shared<const Response>(std::move(response));
  moves_mark_to_ = table_->save(session_, number_, saved, effect);
  saved_ = std::move(saved);
}

// A verdict is given by an owner that only this call has: an answer to a copy may end the other one
// meanwhile. If there is no memory for the verdict, that owner ends without one.
void RequestOwner::done() {
  if (!table_) return;
  PV2_ASSERT(saved_ != nullptr, "a request that is done has a response");
  RequestOwner taken(std::move(*this));
  taken.table_->done(taken.session_, taken.number_, taken.saved_, taken.moves_mark_to_);
  taken.table_ = nullptr;
}

void RequestOwner::refuse() {
  if (!table_) return;
  RequestOwner taken(std::move(*this));
  taken.table_->refuse(taken.session_, taken.number_, taken.moves_mark_to_);
  taken.table_ = nullptr;
}

// ---- ClientSessions ----

Result<std::unique_ptr<ClientSessions>> ClientSessions::load(RowLog& log, SessionOptions options) {
  auto table = std::make_shared<SessionTable>(log, std::move(options));
  if (Status status = table->load(); !status.ok()) return status.with_context("loading sessions");
  return std::unique_ptr<ClientSessions>(new ClientSessions(std::move(table)));
}

ClientSessions::~ClientSessions() { stop(); }

void ClientSessions::open(std::string token, std::string owner, std::uint32_t window,
                          std::function<void(Result<Session>)> answer) {
  table_->open({std::move(token), std::move(owner)}, window, std::move(answer));
}

void ClientSessions::close(SessionId session, std::string_view owner,
                           std::function<void(Status)> answer) {
  table_->close(session, owner, std::move(answer));
}

std::uint64_t ClientSessions::begin_async(const SessionRequest& request, Answer answer) {
  SessionTable::Waiter waiter{table_->new_ticket(), request.deadline, std::move(answer)};
  const std::uint64_t ticket = waiter.ticket;
  auto at_once = table_->decide(request, &waiter);
  if (!at_once) return ticket;
  give(waiter.answer, *std::move(at_once));
  return 0;
}

bool ClientSessions::cancel(SessionId session, std::uint64_t number, std::uint64_t ticket) {
  return table_->cancel(session, number, ticket);
}

SessionAnswer ClientSessions::begin(const SessionRequest& request, Duration timeout,
                                    std::stop_token stop) {
  if (auto answer = table_->decide(request, nullptr)) return *std::move(answer);
  const auto latch = std::make_shared<Latch<SessionAnswer>>();
  const std::uint64_t ticket =
      begin_async(request, [latch](SessionAnswer answer) { latch->set(std::move(answer)); });
  const auto gave_up = [&] { return SessionTable::in_progress(request); };
  const std::stop_callback on_stop(stop, [&] {
    if (cancel(request.session, request.number, ticket)) latch->set(gave_up());
  });
  const bool in_time = timeout == Duration::max() ||
                       arrives_in_time(latch, table_->clock(), std::max(timeout, Duration::zero()));
  if (!in_time && cancel(request.session, request.number, ticket)) return gave_up();
  latch->wait();
  return *std::move(latch->value);
}

bool ClientSessions::resolve_done(SessionId session, std::uint64_t number, Response response) {
  return table_->resolve_done(session, number, std::move(response));
}

bool ClientSessions::resolve_not_done(SessionId session, std::uint64_t number) {
  return table_->resolve_not_done(session, number);
}

Status ClientSessions::heartbeat(SessionId session, std::string_view owner,
                                 std::uint64_t first_unacked) {
  return table_->heartbeat(session, owner, first_unacked);
}

void ClientSessions::maintain(std::function<void(Status)> done) {
  table_->maintain(std::move(done));
}

void ClientSessions::stop() { table_->stop(); }
std::size_t ClientSessions::live() const { return table_->live(); }
std::size_t ClientSessions::responses() const { return table_->responses(); }

}  // namespace pv2

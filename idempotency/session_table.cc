// SPDX-License-Identifier: Apache-2.0
//
// Read decide() first: it is the table of answers, in the order in which they are looked for.

#include "session_table.h"

#include <pv2/base/assert.h>

#include <algorithm>

#include "give.h"

namespace pv2 {
namespace {

// Ids are reserved this many at a time; a crash skips at most as many.
constexpr std::uint64_t kIdsAtOnce = 1000;
// Rows of responses that one batch deletes besides those of a window: far below what a store takes
// in a batch.
constexpr std::size_t kErasedAtOnce = 1000;
// Sessions, and rows that they delete, in one critical section of maintain(): well below a
// millisecond. The last session of a section may exceed it.
constexpr std::size_t kLooksAtOnce = 1024;
// Of a token, and of an owner: both are written with each mark.
constexpr std::size_t kNameBytesMax = 1024;
// What one response takes in memory beside its text: a node of a tree and the shared object.
constexpr std::size_t kResponseBytes = 256;

std::size_t bytes_of(const Response& response) {
  return kResponseBytes + (response.ok() ? response->size() : response.status().message().size());
}

std::string name_of(SessionId id) { return "session " + std::to_string(id.value); }
std::string name_of(const SessionRequest& request) {
  return "request " + std::to_string(request.number) + " of " + name_of(request.session);
}

SessionAnswer refused(Refusal refusal, Status status) {
  SessionAnswer answer;
  answer.refusal = refusal;
  answer.status = std::move(status);
  return answer;
}
SessionAnswer refused(Refusal refusal, StatusCode code, std::string text) {
  return refused(refusal, Status(code, std::move(text)));
}
SessionAnswer with(SavedResponse response) {
  SessionAnswer answer;
  answer.response = std::move(response);
  return answer;
}
SessionAnswer expired(SessionId id) {
  return refused(
      Refusal::kSessionExpired, StatusCode::kExpired,
      name_of(id) +
          " is not known (any more), so nothing was run. The client has to find out what "
          "became of requests without a response, before it sends them in a new session");
}
SessionAnswer ended_silently(SessionId id, std::uint64_t number) {
  return refused(Refusal::kUnknown, StatusCode::kUnknownOutcome,
                 "request " + std::to_string(number) + " of " + name_of(id) +
                     " ended without a verdict; the server knows the outcome after a restart, or "
                     "when its host has found out");
}
SessionAnswer stale(SessionId id, std::uint64_t number) {
  return refused(Refusal::kStale, StatusCode::kFailedPrecondition,
                 "request " + std::to_string(number) + " of " + name_of(id) +
                     " is below the client's mark: the client has its answer; nothing was run");
}
SessionAnswer too_late(SessionId id, std::uint64_t number) {
  return refused(Refusal::kDeadlinePassed, StatusCode::kDeadlineExceeded,
                 "request " + std::to_string(number) + " of " + name_of(id) +
                     " came after its deadline; nothing was run");
}
// Whether the log has refused a batch, and wrote nothing of it (RowLog::commit).
bool was_refused(const Status& status) { return status.code() == StatusCode::kInvalidArgument; }
Status being_given_up(SessionId id) {
  return Status(StatusCode::kUnavailable,
                name_of(id) + " is just being given up; nothing was run. Try again");
}
SessionAnswer server_stops() {
  return refused(Refusal::kOther, StatusCode::kStopping,
                 "the server stops; send the same request again later");
}

}  // namespace

SessionTable::SessionTable(RowLog& log, SessionOptions options)
    : log_(log), options_(std::move(options)) {
  if (!options_.clock) options_.clock = std::make_shared<SystemClock>();
}

SessionAnswer SessionTable::in_progress(const SessionRequest& request) {
  return refused(Refusal::kInProgress, StatusCode::kDeadlineExceeded,
                 name_of(request) + " is still running for an earlier copy; send it again");
}

SessionTable::Live* SessionTable::find(SessionId id) {
  const auto at = sessions_.find(id.value);
  return at != sessions_.end() ? &at->second : nullptr;
}

// A session of somebody else is answered like one that does not exist.
SessionTable::Live* SessionTable::find(SessionId id, std::string_view owner) {
  Live* const session = find(id);
  if (session == nullptr || session->state == Live::State::kOpening) return nullptr;
  return session->row.owner == owner ? session : nullptr;
}

// ---- Requests ----

void SessionTable::hear(Live& session, std::uint64_t first_unacked) {
  session.heard = options_.clock->steady_now();
  if (first_unacked <= session.row.first_unacked) return;
  session.row.first_unacked = first_unacked;
  auto at = session.requests.begin();
  while (at != session.requests.end() && at->first < first_unacked) {
    if (at->second.state != Request::State::kDone) {
      ++at;  // it goes on; its response will not be kept
      continue;
    }
    session.superfluous.push_back(at->first);
    drop(session, bytes_of(*at->second.response));
    at = session.requests.erase(at);
  }
}

void SessionTable::keep(Live& session, Request& request, SavedResponse response) {
  const std::size_t bytes = bytes_of(*response);
  session.bytes += bytes;
  bytes_ += bytes;
  request.state = Request::State::kDone;
  request.response = std::move(response);
}

void SessionTable::drop(Live& session, std::size_t bytes) {
  PV2_ASSERT(session.bytes >= bytes && bytes_ >= bytes, "what is dropped was counted");
  session.bytes -= bytes;
  bytes_ -= bytes;
}

Status SessionTable::why_no_room(const Live& session) const {
  const bool is_its = session.bytes >= options_.session_bytes_max;
  if (!is_its && bytes_ < options_.bytes_max) return Status();
  return Status(
      StatusCode::kResourceExhausted,
      (is_its
           ? "the saved responses of " + name_of(session.row.id) + " take " +
                 std::to_string(session.bytes) + " bytes, and the limit (session_bytes_max) is " +
                 std::to_string(options_.session_bytes_max)
           : "the saved responses of all sessions take " + std::to_string(bytes_) +
                 " bytes, and the limit (bytes_max) is " + std::to_string(options_.bytes_max)) +
          "; nothing was run. Send it when earlier responses have arrived");
}

std::optional<SessionAnswer> SessionTable::decide(const SessionRequest& request, Waiter* waiter) {
  TableLock lock(*this);
  if (stopping_) return server_stops();
  Live* const session = find(request.session, request.owner);
  if (session == nullptr) return expired(request.session);
  if (session->state == Live::State::kEnding) {
    return refused(Refusal::kOther, being_given_up(request.session));
  }
  if (request.number == 0) {
    return refused(Refusal::kOther, StatusCode::kInvalidArgument,
                   "requests of a session are numbered from 1 on; nothing was run");
  }
  if (request.first_unacked > request.number) {
    return refused(Refusal::kOther, StatusCode::kInvalidArgument,
                   name_of(request) + " says that the client has all responses below " +
                       std::to_string(request.first_unacked) +
                       ", its own among them; nothing was run");
  }
  hear(*session, request.first_unacked);
  const std::uint64_t mark = session->row.first_unacked;
  if (request.number < mark) return stale(request.session, request.number);
  if (request.number - mark >= session->row.window) {
    return refused(Refusal::kWindowFull, StatusCode::kResourceExhausted,
                   name_of(request) + " is beyond the window of " +
                       std::to_string(session->row.window) + " requests from " +
                       std::to_string(mark) +
                       " on; nothing was run. Send it when earlier responses have arrived");
  }
  const auto known = session->requests.find(request.number);
  if (known == session->requests.end()) {
    if (request.deadline && *request.deadline <= options_.clock->wall_now()) {
      return too_late(request.session, request.number);
    }
    // The client cannot say that it has the session's responses before it has the one at the mark.
    // So that one has room, or there would be none ever again.
    if (request.number != mark || session->bytes == 0) {
      if (Status full = why_no_room(*session); !full.ok()) {
        return refused(Refusal::kWindowFull, std::move(full));
      }
    }
    session->requests[request.number].fingerprint = request.fingerprint;
    ++session->running;
    SessionAnswer answer;
    answer.owner = RequestOwner(shared_from_this(), request.session, request.number);
    return answer;
  }
  Request& earlier = known->second;
  if (earlier.fingerprint != request.fingerprint) {
    return refused(Refusal::kKeyReused, StatusCode::kKeyReused,
                   name_of(request) + " was used before for something else; nothing was run");
  }
  if (earlier.state == Request::State::kDone) return with(earlier.response);
  if (earlier.state == Request::State::kUnknown) {
    return ended_silently(request.session, request.number);
  }
  if (waiter == nullptr) return std::nullopt;
  if (!earlier.waiters) earlier.waiters = std::make_unique<Waiters>();
  if (earlier.waiters->size() >= options_.waiters_max) {
    return refused(Refusal::kInProgress, StatusCode::kResourceExhausted,
                   std::to_string(earlier.waiters->size()) + " copies wait for " +
                       name_of(request) +
                       ", which is the limit (waiters_max); send it again later");
  }
  earlier.waiters->push_back(std::move(*waiter));
  return std::nullopt;
}

bool SessionTable::cancel(SessionId id, std::uint64_t number, std::uint64_t ticket) {
  ClientSessions::Answer dropped;  // destroyed without the mutex: it is the host's
  TableLock lock(*this);
  Live* const session = find(id);
  if (session == nullptr) return false;
  const auto request = session->requests.find(number);
  if (request == session->requests.end() || !request->second.waiters) return false;
  Waiters& waiters = *request->second.waiters;
  const auto waiter = std::ranges::find(waiters, ticket, &Waiter::ticket);
  if (waiter == waiters.end()) return false;
  dropped = std::move(waiter->answer);
  waiters.erase(waiter);
  return true;
}

Status SessionTable::heartbeat(SessionId id, std::string_view owner, std::uint64_t first_unacked) {
  TableLock lock(*this);
  if (stopping_) return server_stops().status;
  Live* const session = find(id, owner);
  if (session == nullptr) return expired(id).status;
  if (session->state == Live::State::kEnding) return being_given_up(id);
  hear(*session, first_unacked);
  return Status();
}

// ---- The owner of a request ----

std::uint64_t SessionTable::mark_to_move(const Live& session) {
  const bool has_moved = session.row.first_unacked != session.durable_mark;
  const bool has_work = has_moved || !session.superfluous.empty();
  if (!has_work || session.mark_is_moving) return 0;
  return session.row.first_unacked;
}

// If this throws, for want of memory, the mark is not on its way.
std::uint64_t SessionTable::add_mark(Live& session, RowBatch& batch) {
  const std::uint64_t mark = mark_to_move(session);
  if (mark == 0) return 0;
  const std::size_t count = std::min(session.superfluous.size(), kErasedAtOnce);
  const auto first = session.superfluous.end() - static_cast<std::ptrdiff_t>(count);
  session.being_erased.assign(first, session.superfluous.end());
  put_session(session.row, batch);
  for (const std::uint64_t number : session.being_erased) {
    erase_response(session.row.id, number, batch);
  }
  session.superfluous.erase(first, session.superfluous.end());
  session.mark_is_moving = true;
  return mark;
}

void SessionTable::mark_is_durable(Live& session, std::uint64_t mark) {
  PV2_ASSERT(session.mark_is_moving, "a mark that becomes durable was on its way");
  PV2_ASSERT(mark >= session.durable_mark, "marks become durable in order");
  session.mark_is_moving = false;
  session.durable_mark = mark;
  session.being_erased.clear();
}

void SessionTable::mark_stays(Live& session) {
  PV2_ASSERT(session.mark_is_moving, "a mark that stays was on its way");
  // First, as it may throw for want of memory.
  session.superfluous.insert(session.superfluous.end(), session.being_erased.begin(),
                             session.being_erased.end());
  session.being_erased.clear();
  session.mark_is_moving = false;
}

std::uint64_t SessionTable::save(SessionId id, std::uint64_t number, const SavedResponse& response,
                                 RowBatch& effect) {
  TableLock lock(*this);
  Live* const session = find(id);
  PV2_ASSERT(session != nullptr, "a session with a running request is not given up");
  const std::uint64_t mark = mark_to_move(*session);
  // Only a mark that is durable with this batch, or before it, makes the response superfluous.
  if (number >= std::max(mark, session->durable_mark)) {
    put_response({id, number, session->requests.at(number).fingerprint, response}, effect);
  }
  // Last: nothing may throw when the mark is on its way.
  return add_mark(*session, effect);
}

void SessionTable::done(SessionId id, std::uint64_t number, SavedResponse response,
                        std::uint64_t mark) {
  std::unique_ptr<Waiters> waiters;
  {
    TableLock lock(*this);
    Live* const session = find(id);
    PV2_ASSERT(session != nullptr, "a session with a running request is not given up");
    Request& request = session->requests.at(number);
    PV2_ASSERT(request.state == Request::State::kRunning, "a request is done once");
    const bool is_given_up = number < session->row.first_unacked;  // it may have a row
    // Before anything is changed, as it may throw for want of memory.
    if (is_given_up) session->superfluous.push_back(number);
    if (mark != 0) mark_is_durable(*session, mark);
    --session->running;
    session->heard = options_.clock->steady_now();  // its client has time to take the response
    waiters = std::move(request.waiters);
    if (is_given_up) {
      session->requests.erase(number);
    } else {
      keep(*session, request, response);
    }
  }
  if (!waiters) return;
  for (const Waiter& waiter : *waiters) give(waiter.answer, with(response));
}

// Why a copy that has waited does not run now; nullopt: it runs.
std::optional<SessionAnswer> SessionTable::why_not_after_all(const Live& session,
                                                             std::uint64_t number,
                                                             const Waiter& waiter) const {
  if (number < session.row.first_unacked) return stale(session.row.id, number);
  if (waiter.deadline && *waiter.deadline <= options_.clock->wall_now()) {
    return too_late(session.row.id, number);
  }
  return std::nullopt;
}

// Takes one copy at a time: the words for it may throw for want of memory, and then the request
// still has its owner, and the other copies wait.
void SessionTable::refuse(SessionId id, std::uint64_t number, std::uint64_t& mark) {
  for (bool is_owned = false; !is_owned;) {
    ClientSessions::Answer next;
    std::optional<SessionAnswer> refusal;
    {
      TableLock lock(*this);
      Live* const session = find(id);
      PV2_ASSERT(session != nullptr, "a session with a running request is not given up");
      if (mark != 0) mark_stays(*session);  // its batch was thrown away
      mark = 0;
      session->heard = options_.clock->steady_now();
      Request& request = session->requests.at(number);
      if (!request.waiters || request.waiters->empty()) {
        --session->running;
        session->requests.erase(number);
        return;
      }
      refusal = why_not_after_all(*session, number, request.waiters->front());
      next = std::move(request.waiters->front().answer);
      request.waiters->pop_front();
    }
    is_owned = !refusal;
    SessionAnswer answer = is_owned ? SessionAnswer() : *std::move(refusal);
    // Made without the mutex: an owner that ends takes it.
    if (is_owned) answer.owner = RequestOwner(shared_from_this(), id, number);
    give(next, std::move(answer));
  }
}

void SessionTable::said_nothing(SessionId id, std::uint64_t number, std::uint64_t mark) {
  std::unique_ptr<Waiters> waiters;
  {
    TableLock lock(*this);
    Live* const session = find(id);
    PV2_ASSERT(session != nullptr, "a session with a running request is not given up");
    Request& request = session->requests.at(number);
    request.state = Request::State::kUnknown;
    request.moves_mark_to = mark;  // no other batch moves it: this one may yet become durable
    waiters = std::move(request.waiters);
  }
  if (!waiters) return;
  for (const Waiter& waiter : *waiters) give(waiter.answer, ended_silently(id, number));
}

// Owns nothing if the outcome of the request is not unknown.
RequestOwner SessionTable::take_unknown(SessionId id, std::uint64_t number) {
  RequestOwner owner;
  TableLock lock(*this);
  Live* const session = find(id);
  if (session == nullptr) return owner;
  const auto request = session->requests.find(number);
  if (request == session->requests.end()) return owner;
  if (request->second.state != Request::State::kUnknown) return owner;
  request->second.state = Request::State::kRunning;
  owner = RequestOwner(shared_from_this(), id, number);
  owner.moves_mark_to_ = request->second.moves_mark_to;
  return owner;
}

bool SessionTable::resolve_done(SessionId id, std::uint64_t number, Response response) {
  auto saved = std::make_shared<const Response>(std::move(response));
  RequestOwner owner = take_unknown(id, number);
  if (!owner.table_) return false;
  owner.saved_ = std::move(saved);
  owner.done();
  return true;
}

bool SessionTable::resolve_not_done(SessionId id, std::uint64_t number) {
  RequestOwner owner = take_unknown(id, number);
  if (!owner.table_) return false;
  owner.refuse();
  return true;
}

// ---- Opening ----

void SessionTable::open(Asker asker, std::uint32_t window, Opened answer) {
  const std::uint32_t granted =
      window == 0 ? options_.window : std::min(window, options_.window_max);
  open({std::move(asker), granted, std::move(answer)});
}

// The answer to an opening that needs no new session.
std::optional<Result<Session>> SessionTable::answer_opening(const Opening& opening) {
  if (stopping_) return server_stops().status;
  if (opening.asker.token.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "a session is opened with a token that the client has chosen");
  }
  if (std::max(opening.asker.token.size(), opening.asker.owner.size()) > kNameBytesMax) {
    return Status(StatusCode::kInvalidArgument,
                  "the token of a session has " + std::to_string(opening.asker.token.size()) +
                      " bytes and its owner " + std::to_string(opening.asker.owner.size()) +
                      "; each may have " + std::to_string(kNameBytesMax));
  }
  if (const auto known = by_asker_.find(opening.asker); known != by_asker_.end()) {
    Live& session = sessions_.at(known->second.value);
    PV2_ASSERT(session.state != Live::State::kOpening, "a session that is opened has an answer");
    if (session.state == Live::State::kEnding) {
      return being_given_up(known->second);
    }
    session.heard = options_.clock->steady_now();
    return Session{session.row.id, session.row.window};
  }
  if (sessions_.size() < options_.sessions_max) return std::nullopt;
  return Status(StatusCode::kResourceExhausted,
                std::to_string(sessions_.size()) +
                    " sessions are open, which is the limit (sessions_max); try again later");
}

// An opening with the token of another one that is on its way joins it.
bool SessionTable::joins(Opening& opening) {
  const auto known = by_asker_.find(opening.asker);
  if (known == by_asker_.end()) return false;
  Live& session = sessions_.at(known->second.value);
  if (session.state != Live::State::kOpening) return false;
  session.openers.push_back(std::move(opening.answer));
  return true;
}

void SessionTable::open(Opening opening) {
  RowBatch batch;
  SessionId id;
  std::optional<Result<Session>> at_once;
  Opened answer;
  {
    TableLock lock(*this);
    if (joins(opening)) return;
    at_once = answer_opening(opening);
    if (at_once) answer = std::move(opening.answer);
    if (!at_once && next_id_ == id_bound_) {
      waiting_for_ids_.push_back(std::move(opening));
    } else if (!at_once) {
      id = {next_id_++};
      Live& session = sessions_[id.value];
      session.row = {id, opening.asker.token, opening.asker.owner, opening.window};
      session.state = Live::State::kOpening;
      session.openers.push_back(std::move(opening.answer));
      by_asker_.emplace(std::move(opening.asker), id);
      put_session(session.row, batch);
    }
  }
  if (at_once) return give(answer, *std::move(at_once));
  if (id == SessionId{}) return reserve_ids();
  log_.commit(std::move(batch),
              [self = shared_from_this(), id](const Status& status) { self->opened(id, status); });
}

// One reservation is on its way at a time, so bounds become durable in order.
void SessionTable::reserve_ids() {
  RowBatch batch;
  std::uint64_t bound = 0;
  {
    TableLock lock(*this);
    if (std::exchange(ids_are_on_their_way_, true)) return;
    bound = id_bound_ + kIdsAtOnce;
    put_id_bound(bound, batch);
  }
  log_.commit(std::move(batch), [self = shared_from_this(), bound](const Status& status) {
    self->ids_are_reserved(bound, status);
  });
}

void SessionTable::ids_are_reserved(std::uint64_t bound, const Status& status) {
  std::vector<Opening> openings;
  {
    TableLock lock(*this);
    ids_are_on_their_way_ = false;
    if (status.ok()) id_bound_ = bound;
    openings = std::exchange(waiting_for_ids_, {});
  }
  for (Opening& opening : openings) {
    status.ok() ? open(std::move(opening)) : give(opening.answer, Result<Session>(status));
  }
}

void SessionTable::opened(SessionId id, const Status& status) {
  std::vector<Opened> openers;
  Result<Session> answer = status.ok() ? Result<Session>(Session{}) : Result<Session>(status);
  {
    TableLock lock(*this);
    Live& session = sessions_.at(id.value);
    openers = std::move(session.openers);
    if (status.ok()) {
      session.state = Live::State::kLive;
      session.heard = options_.clock->steady_now();
      answer = Session{id, session.row.window};
    } else {
      by_asker_.erase({session.row.token, session.row.owner});
      sessions_.erase(id.value);
    }
  }
  for (const Opened& opener : openers) give(opener, answer);
}

// ---- The end of sessions ----

RowBatch SessionTable::end(Live& session) {
  RowBatch batch;
  erase_session(session.row.id, batch);
  for (const auto& [number, request] : session.requests) {
    erase_response(session.row.id, number, batch);
  }
  for (const std::uint64_t number : session.superfluous) {
    erase_response(session.row.id, number, batch);
  }
  session.state = Live::State::kEnding;  // last: what throws leaves it open
  return batch;
}

void SessionTable::ended(SessionId id, const Status& status) {
  // After a failure it may be in the store or not: it stays refused until a restart tells.
  if (!status.ok() && !was_refused(status)) return;
  TableLock lock(*this);
  Live& session = sessions_.at(id.value);
  if (was_refused(status)) {
    session.state = Live::State::kLive;
    return;
  }
  drop(session, session.bytes);
  by_asker_.erase({session.row.token, session.row.owner});
  sessions_.erase(id.value);
}

void SessionTable::close(SessionId id, std::string_view owner, std::function<void(Status)> answer) {
  RowBatch batch;
  Status refusal;
  {
    TableLock lock(*this);
    Live* const session = find(id, owner);
    if (stopping_) {
      refusal = server_stops().status;
    } else if (session == nullptr) {
      refusal = expired(id).status;
    } else if (session->state == Live::State::kEnding) {
      refusal = being_given_up(id);
    } else if (session->mark_is_moving || session->superfluous.size() > kErasedAtOnce) {
      refusal = Status(StatusCode::kUnavailable,
                       name_of(id) + " is just being cleaned up (maintain()); try again");
    } else if (session->running != 0) {
      refusal = Status(StatusCode::kFailedPrecondition,
                       name_of(id) + " has a request that runs; close it when that has ended");
    } else {
      batch = end(*session);
    }
  }
  if (!refusal.ok()) return give(answer, std::move(refusal));
  log_.commit(std::move(batch),
              [self = shared_from_this(), id, answer = std::move(answer)](const Status& status) {
                self->ended(id, status);
                give(answer, status);
              });
}

void SessionTable::mark_moved(SessionId id, std::uint64_t mark, const Status& status) {
  // After a failure the mark may be durable or not: no later batch moves it.
  if (!status.ok() && !was_refused(status)) return;
  TableLock lock(*this);
  Live* const session = find(id);
  if (session == nullptr) return;
  status.ok() ? mark_is_durable(*session, mark) : mark_stays(*session);
}

SessionTable::Section SessionTable::begin_changes(std::uint64_t first) {
  Section section;
  std::size_t looks = 0;
  TableLock lock(*this);
  const SteadyTime now = options_.clock->steady_now();
  for (auto at = sessions_.lower_bound(first); at != sessions_.end(); ++at) {
    if (looks >= kLooksAtOnce) {
      section.next = at->first;
      break;
    }
    ++looks;
    Live& session = at->second;
    if (session.state != Live::State::kLive || session.mark_is_moving) continue;
    const bool is_silent = now >= later(session.heard, options_.timeout);
    const bool is_clean = session.superfluous.size() <= kErasedAtOnce;
    Change change{session.row.id, 0, {}};
    if (is_silent && session.running == 0 && is_clean) {
      change.batch = end(session);
    } else {
      change.mark = add_mark(session, change.batch);
      if (change.mark == 0) continue;
    }
    looks += change.batch.operations();
    section.changes.push_back(std::move(change));
  }
  return section;
}

void SessionTable::maintain(std::function<void(Status)> done) {
  struct Round {
    std::atomic<std::size_t> left;
    std::atomic<bool> failed{false};
    std::atomic<bool> refused{false};
    std::function<void(Status)> done;
    void one_less(const Status& status) {
      if (!status.ok()) (was_refused(status) ? refused : failed) = true;
      if (left.fetch_sub(1) == 1) give(done, answer());
    }
    [[nodiscard]] Status answer() const {
      if (failed) return {StatusCode::kUnknownOutcome, "the log of the sessions has failed"};
      if (!refused) return {};
      return {StatusCode::kInvalidArgument,
              "the log has refused a batch of the sessions, which is too large for it"};
    }
  };
  const auto round = std::make_shared<Round>();
  round->left = 1;
  round->done = std::move(done);
  for (std::optional<std::uint64_t> first = 0; first;) {
    Section section = begin_changes(*first);
    first = section.next;
    round->left += section.changes.size();
    for (Change& change : section.changes) {
      log_.commit(std::move(change.batch), [self = shared_from_this(), round, id = change.id,
                                            mark = change.mark](const Status& status) {
        mark != 0 ? self->mark_moved(id, mark, status) : self->ended(id, status);
        round->one_less(status);
      });
    }
    if (first) waiting_.give_way();
  }
  round->one_less(Status());
}

void SessionTable::stop() {
  std::vector<Waiter> waiters;
  std::vector<Opening> openings;
  {
    TableLock lock(*this);
    stopping_ = true;
    openings = std::exchange(waiting_for_ids_, {});
    for (auto& [id, session] : sessions_) {
      for (auto& [number, request] : session.requests) {
        if (!request.waiters) continue;
        for (Waiter& waiter : *request.waiters) waiters.push_back(std::move(waiter));
        request.waiters.reset();
      }
    }
  }
  for (const Waiter& waiter : waiters) give(waiter.answer, server_stops());
  for (const Opening& opening : openings) {
    give(opening.answer, Result<Session>(server_stops().status));
  }
}

// ---- Loading ----

Status SessionTable::load_session(const StoredRow& stored) {
  auto row = decode_session(stored.key, stored.value);
  if (!row.ok()) return row.status();
  TableLock lock(*this);
  Live& session = sessions_[row->id.value];
  session.durable_mark = row->first_unacked;
  session.heard = options_.clock->steady_now();
  by_asker_.emplace(Asker{row->token, row->owner}, row->id);
  next_id_ = std::max(next_id_, row->id.value + 1);
  id_bound_ = std::max(id_bound_, next_id_);
  session.row = *std::move(row);
  return Status();
}

// A response below the mark was saved in a batch that overtook the one that moved the mark.
Status SessionTable::load_response(const StoredRow& stored) {
  auto row = decode_response(stored.key, stored.value);
  if (!row.ok()) return row.status();
  TableLock lock(*this);
  Live* const session = find(row->session);
  if (session == nullptr) {
    return Status(StatusCode::kCorruption,
                  "there is a response of " + name_of(row->session) + ", which has no row");
  }
  if (row->number < session->row.first_unacked) {
    session->superfluous.push_back(row->number);
    return Status();
  }
  Request& request = session->requests[row->number];
  request.fingerprint = row->fingerprint;
  keep(*session, request, std::move(row->response));
  return Status();
}

// The log is called without the mutex; each row takes it.
Status SessionTable::load() {
  if (options_.window == 0 || options_.window > options_.window_max) {
    return Status(StatusCode::kInvalidArgument, "the window of a session is 1 to window_max (" +
                                                    std::to_string(options_.window_max) +
                                                    "), not " + std::to_string(options_.window));
  }
  bool has_bound = false;
  Status status = log_.scan(id_bound_key(), [&, this](const StoredRow& row) {
    has_bound = true;
    const auto bound = decode_id_bound(row.value);
    TableLock lock(*this);
    if (bound.ok()) next_id_ = id_bound_ = *bound;
    return bound.status();
  });
  if (!status.ok()) return status;
  status = log_.scan(all_sessions(), [&, this](const StoredRow& row) {
    if (has_bound) return load_session(row);
    return Status(StatusCode::kCorruption,
                  "the row of the session ids that may be in use is missing, though there are "
                  "sessions: ids of closed ones would be given again; restore the rows from a "
                  "backup");
  });
  if (!status.ok()) return status;
  return log_.scan(all_responses(), [this](const StoredRow& row) { return load_response(row); });
}

std::size_t SessionTable::live() const {
  TableLock lock(*this);
  return static_cast<std::size_t>(std::ranges::count_if(
      sessions_, [](const auto& one) { return one.second.state == Live::State::kLive; }));
}

std::size_t SessionTable::responses() const {
  TableLock lock(*this);
  std::size_t count = 0;
  for (const auto& [id, session] : sessions_) {
    for (const auto& [number, request] : session.requests) {
      count += request.state == Request::State::kDone ? 1 : 0;
    }
  }
  return count;
}

}  // namespace pv2

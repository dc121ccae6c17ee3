// SPDX-License-Identifier: Apache-2.0
//
// Numbers requests and keeps the mark. `mutex_` guards the numbers; calls are made, and callers
// told, without it.

#include "pv2/rpc/rpc_session.h"

#include <fmt/format.h>
#include <pv2/base/assert.h>
#include <pv2/base/fields.h>
#include <pv2/base/latch.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "pv2/rpc/nonce_source.h"
#include "pv2/rpc/session_messages.h"

namespace pv2 {
namespace {

// A request that waits for room in the window may exceed its time limit by this much.
constexpr Duration kRoomLookPeriod = std::chrono::milliseconds(100);
// A timer may be early by less than this.
constexpr Duration kHeartbeatLookMin = std::chrono::milliseconds(1);
constexpr std::size_t kSessionTokenBytesMax = 1024;

std::string random_token() {
  const Nonce nonce = NonceSource().next();
  return fmt::format("{:016x}{:016x}", nonce.group, nonce.value);
}

// What the host's code throws is swallowed, as SessionDone promises.
void tell(const SessionDone& done, SessionOutcome outcome) {
  if (!done) return;
  try {
    done(std::move(outcome));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

SessionOutcome not_sent(Status why) {
  return {.outcome = {.kind = CallOutcome::Kind::kFailed, .status = std::move(why)}};
}

}  // namespace

class RpcSession::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(RpcClient& client, RpcSessionOptions options)
      : client_(client), options_(std::move(options)) {}

  struct Request {
    std::string method;
    std::string body;
    CallOptions options;
    SessionDone done;
    SteadyTime deadline{};
    std::uint64_t number = 0;
  };

  void add(Request request);
  void ask_again(Request request);
  void give_up(std::uint64_t number);
  void close(std::function<void(Status)> done);
  void look();
  void shut();

  [[nodiscard]] Transport& transport() const noexcept { return client_.transport(); }
  [[nodiscard]] std::uint64_t id() const {
    const MutexLock lock(mutex_);
    return id_;
  }
  [[nodiscard]] std::uint64_t first_unacked() const {
    const MutexLock lock(mutex_);
    return mark();
  }

 private:
  enum class Phase : std::uint8_t { kNew, kOpening, kOpen, kEnded };
  /// How soon the timer is due.
  enum class Looks : std::uint8_t {
    kNever,   ///< It is not set.
    kSeldom,  ///< For the next heartbeat.
    kOften,   ///< Requests wait for room, and have time limits. Or a task that sets it is posted.
  };

  [[nodiscard]] SteadyTime now() const { return client_.transport().clock().steady_now(); }
  [[nodiscard]] std::uint64_t mark() const PV2_REQUIRES(mutex_) {
    return without_outcome_.empty() ? next_ : *without_outcome_.begin();
  }
  [[nodiscard]] CallOptions open_options() const;
  void pump();
  void begin_to_open();
  void opened(CallOutcome outcome);
  void send(Request request, std::uint64_t first_unacked);
  void ended(std::uint64_t number, const SessionDone& done, CallOutcome outcome);
  void end_all(const Status& why);
  static void tell_late(const std::vector<Request>& late);
  void heartbeat();
  void look_later();

  RpcClient& client_;
  const RpcSessionOptions options_;

  mutable Mutex mutex_;
  Phase phase_ PV2_GUARDED_BY(mutex_) = Phase::kNew;
  Status why_ended_ PV2_GUARDED_BY(mutex_);
  std::uint64_t id_ PV2_GUARDED_BY(mutex_) = 0;
  std::uint32_t window_ PV2_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_ PV2_GUARDED_BY(mutex_) = 1;
  std::set<std::uint64_t> without_outcome_ PV2_GUARDED_BY(mutex_);
  std::deque<Request> waiting_ PV2_GUARDED_BY(mutex_);
  SteadyTime told_at_ PV2_GUARDED_BY(mutex_);  // when the server last heard of this session
  Looks looks_ PV2_GUARDED_BY(mutex_) = Looks::kNever;

  TimerId timer_;  // of the loop's thread
};

// --- requests

void RpcSession::Core::add(Request request) {
  request.deadline = later(now(), request.options.timeout);
  bool is_full = false;
  SessionDone refused;
  {
    const MutexLock lock(mutex_);
    is_full = waiting_.size() >= options_.waiting_max;
    if (is_full) {
      refused = std::move(request.done);
    } else {
      waiting_.push_back(std::move(request));
    }
  }
  if (!is_full) return pump();
  client_.transport().post([refused = std::move(refused), most = options_.waiting_max] {
    tell(refused, not_sent({StatusCode::kResourceExhausted,
                            fmt::format("{} requests wait for room in the window "
                                        "(RpcSessionOptions::waiting_max)",
                                        most)}));
  });
}

void RpcSession::Core::pump() {
  std::vector<Request> ready;
  std::vector<Request> late;
  std::uint64_t first_unacked = 0;
  bool opens = false;
  bool must_look = false;
  {
    const MutexLock lock(mutex_);
    if (phase_ == Phase::kNew && !waiting_.empty()) {
      phase_ = Phase::kOpening;
      opens = true;
    }
    const SteadyTime now_is = now();
    while (phase_ == Phase::kOpen && !waiting_.empty() && next_ < mark() + window_) {
      Request request = std::move(waiting_.front());
      waiting_.pop_front();
      if (request.deadline <= now_is) {
        late.push_back(std::move(request));
        continue;
      }
      request.number = next_++;
      without_outcome_.insert(request.number);
      ready.push_back(std::move(request));
    }
    first_unacked = mark();
    const bool is_slow = looks_ != Looks::kOften && !waiting_.empty();
    must_look = phase_ != Phase::kEnded && (looks_ == Looks::kNever || is_slow);
    if (must_look) looks_ = Looks::kOften;
  }
  if (opens) begin_to_open();
  if (must_look) {
    client_.transport().post([self = shared_from_this()] { self->look_later(); });
  }
  if (!late.empty()) {
    client_.transport().post([late = std::move(late)] { tell_late(late); });
  }
  for (Request& request : ready) send(std::move(request), first_unacked);
  const MutexLock lock(mutex_);
  if (phase_ == Phase::kEnded && !waiting_.empty()) {
    client_.transport().post([self = shared_from_this(), why = why_ended_] { self->end_all(why); });
  }
}

void RpcSession::Core::send(Request request, std::uint64_t first_unacked) {
  CallOptions options = std::move(request.options);
  options.nonce = {};
  {
    const MutexLock lock(mutex_);
    options.session = {.session = id_, .number = request.number, .first_unacked = first_unacked};
    told_at_ = now();
  }
  options.timeout = std::max(request.deadline - now(), Duration::zero());
  client_.call(std::move(request.method), std::move(request.body), std::move(options),
               [self = shared_from_this(), number = request.number, done = std::move(request.done)](
                   CallOutcome outcome) { self->ended(number, done, std::move(outcome)); });
}

void RpcSession::Core::ended(std::uint64_t number, const SessionDone& done, CallOutcome outcome) {
  {
    const MutexLock lock(mutex_);
    const bool has_expired = outcome.was_refused && outcome.status.code() == StatusCode::kExpired;
    if (has_expired && phase_ == Phase::kOpen) {
      phase_ = Phase::kEnded;
      why_ended_ = outcome.status;
    }
    if (outcome.kind != CallOutcome::Kind::kUnknown) without_outcome_.erase(number);
  }
  pump();
  tell(done, {.outcome = std::move(outcome), .number = number});
}

void RpcSession::Core::ask_again(Request request) {
  request.deadline = later(now(), request.options.timeout);
  request.options.resumed = true;
  std::uint64_t first_unacked = 0;
  {
    const MutexLock lock(mutex_);
    first_unacked = mark();
    if (!without_outcome_.contains(request.number)) first_unacked = 0;
  }
  if (first_unacked != 0) return send(std::move(request), first_unacked);
  client_.transport().post([done = std::move(request.done), number = request.number] {
    SessionOutcome outcome = not_sent(
        {StatusCode::kFailedPrecondition,
         fmt::format("request {} is not without an outcome, so it is not asked again", number)});
    outcome.number = number;
    outcome.outcome.kind = CallOutcome::Kind::kUnknown;  // it was sent once, and perhaps run
    tell(done, std::move(outcome));
  });
}

void RpcSession::Core::give_up(std::uint64_t number) {
  {
    const MutexLock lock(mutex_);
    without_outcome_.erase(number);
  }
  pump();
}

void RpcSession::Core::end_all(const Status& why) {
  std::deque<Request> waiting;
  {
    const MutexLock lock(mutex_);
    waiting.swap(waiting_);
  }
  for (const Request& request : waiting) {
    tell(request.done, not_sent(why));
  }
}

// --- the session

CallOptions RpcSession::Core::open_options() const {
  return {.read_only = true, .timeout = options_.open_timeout};  // the token makes it repeatable
}

void RpcSession::Core::begin_to_open() {
  SessionOpenRequest request{.token = options_.token, .window = options_.window};
  std::string body;
  encode_fields(request, FieldSelection::kAll, body);
  client_.call(
      std::string(kSessionOpen), std::move(body), open_options(),
      [self = shared_from_this()](CallOutcome outcome) { self->opened(std::move(outcome)); });
}

void RpcSession::Core::opened(CallOutcome outcome) {
  SessionOpenReply reply;
  Status status = outcome.status;
  if (outcome.ok()) status = decode_fields(reply, FieldSelection::kAll, outcome.body);
  {
    const MutexLock lock(mutex_);
    if (phase_ != Phase::kOpening) return;
    phase_ = status.ok() ? Phase::kOpen : Phase::kNew;  // the next request tries again
    id_ = reply.session;
    window_ = std::max(reply.window, std::uint32_t{1});
    told_at_ = now();
  }
  if (!status.ok()) return end_all(status.with_context("the session cannot be opened"));
  pump();
}

void RpcSession::Core::close(std::function<void(Status)> done) {
  SessionCall session;
  Status status;
  {
    const MutexLock lock(mutex_);
    if (!without_outcome_.empty() || !waiting_.empty() || phase_ == Phase::kOpening) {
      status = {StatusCode::kFailedPrecondition,
                fmt::format("the session is not closed: {} of its requests have no outcome",
                            without_outcome_.size() + waiting_.size())};
    } else {
      session = {.session = id_, .first_unacked = next_};
      phase_ = Phase::kEnded;
      why_ended_ = {StatusCode::kFailedPrecondition, "the session is closed"};
    }
  }
  if (!done) done = [](const Status&) {};
  if (!status.ok() || session.session == 0) return done(status);
  CallOptions options = open_options();
  options.session = session;
  client_.call(std::string(kSessionClose), {}, std::move(options),
               [done = std::move(done)](CallOutcome outcome) {
                 // An earlier attempt has closed it.
                 const bool is_gone = outcome.status.code() == StatusCode::kExpired;
                 done(outcome.ok() || is_gone ? Status() : outcome.status);
               });
}

void RpcSession::Core::heartbeat() {
  CallOptions options = open_options();
  {
    const MutexLock lock(mutex_);
    if (phase_ != Phase::kOpen || now() - told_at_ < options_.heartbeat_every) return;
    options.session = {.session = id_, .first_unacked = mark()};
    told_at_ = now();
  }
  client_.call(std::string(kSessionHeartbeat), {}, std::move(options),
               [self = shared_from_this()](CallOutcome outcome) {
                 if (outcome.status.code() != StatusCode::kExpired) return;
                 {
                   const MutexLock lock(self->mutex_);
                   if (self->phase_ != Phase::kOpen) return;
                   self->phase_ = Phase::kEnded;
                   self->why_ended_ = outcome.status;
                 }
                 self->pump();
               });
}

// --- time

void RpcSession::Core::look_later() {
  Duration period = options_.heartbeat_every;
  {
    const MutexLock lock(mutex_);
    if (phase_ == Phase::kEnded) {
      looks_ = Looks::kNever;
      return;
    }
    if (phase_ == Phase::kOpen) {
      const Duration left = later(told_at_, options_.heartbeat_every) - now();
      period = std::max(left, kHeartbeatLookMin);
    }
    looks_ = waiting_.empty() ? Looks::kSeldom : Looks::kOften;
    if (looks_ == Looks::kOften) period = std::min(period, kRoomLookPeriod);
  }
  Transport& transport = client_.transport();
  transport.cancel(timer_);
  timer_ = transport.call_at(later(now(), period), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look();
  });
}

void RpcSession::Core::tell_late(const std::vector<Request>& late) {
  for (const Request& request : late) {
    tell(request.done,
         not_sent({StatusCode::kDeadlineExceeded,
                   "its time was over before it could be sent: the session was being opened, or "
                   "the window had no room, because earlier requests have no outcome"}));
  }
}

void RpcSession::Core::look() {
  std::vector<Request> late;
  {
    const MutexLock lock(mutex_);
    const SteadyTime now_is = now();
    const auto first_late = std::stable_partition(
        waiting_.begin(), waiting_.end(),
        [now_is](const Request& request) { return request.deadline > now_is; });
    std::move(first_late, waiting_.end(), std::back_inserter(late));
    waiting_.erase(first_late, waiting_.end());
  }
  tell_late(late);
  heartbeat();
  look_later();
}

void RpcSession::Core::shut() {
  client_.transport().cancel(timer_);
  {
    const MutexLock lock(mutex_);
    phase_ = Phase::kEnded;
    why_ended_ = {StatusCode::kStopping, "the session's client is being destroyed"};
  }
  end_all({StatusCode::kStopping, "the session's client is being destroyed"});
}

// --- the verbs

RpcSession::RpcSession(std::shared_ptr<Core> core) : core_(std::move(core)) {}

Result<std::unique_ptr<RpcSession>> RpcSession::open(RpcClient& client, RpcSessionOptions options) {
  if (options.token.empty()) options.token = random_token();
  if (options.token.size() > kSessionTokenBytesMax) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("RpcSessionOptions::token has {} bytes, and {} are allowed",
                              options.token.size(), kSessionTokenBytesMax));
  }
  if (options.waiting_max == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "RpcSessionOptions::waiting_max is 0, so no request could begin");
  }
  if (options.heartbeat_every <= Duration::zero()) {
    return Status(StatusCode::kInvalidArgument,
                  "RpcSessionOptions::heartbeat_every has to be positive");
  }
  return std::unique_ptr<RpcSession>(
      new RpcSession(std::make_shared<Core>(client, std::move(options))));
}

RpcSession::~RpcSession() {
  run_on_loop(core_->transport(), [this] { core_->shut(); });
}

void RpcSession::call(std::string method, std::string body, CallOptions options, SessionDone done) {
  core_->add({.method = std::move(method),
              .body = std::move(body),
              .options = std::move(options),
              .done = std::move(done)});
}

SessionOutcome RpcSession::call(std::string method, std::string body, CallOptions options) {
  Transport& transport = core_->transport();
  if (!transport.has_own_thread() || transport.on_loop()) {
    return not_sent({StatusCode::kFailedPrecondition,
                     "a request that waits, on the thread that would receive the response; use "
                     "the call with a callback"});
  }
  const auto arrived = std::make_shared<Latch<SessionOutcome>>();
  call(std::move(method), std::move(body), std::move(options),
       [arrived](SessionOutcome outcome) { arrived->set(std::move(outcome)); });
  arrived->wait();
  return std::move(*arrived->value);
}

void RpcSession::ask_again(std::uint64_t number, std::string method, std::string body,
                           CallOptions options, SessionDone done) {
  core_->ask_again({.method = std::move(method),
                    .body = std::move(body),
                    .options = std::move(options),
                    .done = std::move(done),
                    .number = number});
}

void RpcSession::give_up(std::uint64_t number) { core_->give_up(number); }

void RpcSession::close(std::function<void(Status)> done) { core_->close(std::move(done)); }

std::uint64_t RpcSession::id() const { return core_->id(); }

std::uint64_t RpcSession::first_unacked() const { return core_->first_unacked(); }

}  // namespace pv2

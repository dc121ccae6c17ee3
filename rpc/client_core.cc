// SPDX-License-Identifier: Apache-2.0
//
// From a call to its attempts, and from what becomes of them to one outcome.

#include "client_core.h"

#include <fmt/format.h>
#include <pv2/base/assert.h>
#include <pv2/base/time.h>

#include <algorithm>
#include <random>
#include <utility>

#include "common_limits.h"

namespace pv2 {
namespace {

// Memory for a crowd of new calls is given back; that for usual ones is used again.
constexpr std::size_t kSpareCallsMax = 1024;
// What a frame has besides method and body.
constexpr std::size_t kFrameFieldsMax = 256;

std::uint64_t seed_of(std::uint64_t given) {
  if (given != 0) return given;
  std::random_device system;
  return (std::uint64_t{system()} << 32) | system();
}

// The server did nothing, or does not know, and may answer differently soon.
bool is_worth_another_try(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::kUnavailable:
    case StatusCode::kStopping:
    case StatusCode::kResourceExhausted:
    case StatusCode::kBusy:
    case StatusCode::kUnknownOutcome:
    case StatusCode::kDeadlineExceeded:
      return true;
    default:
      return false;
  }
}

// Each counter has one writer, the loop's thread or whoever holds a mutex, so a plain addition will
// do.
std::uint64_t count(std::atomic<std::uint64_t>& counter, std::uint64_t more = 1) noexcept {
  const std::uint64_t sum = counter.load(std::memory_order_relaxed) + more;
  counter.store(sum, std::memory_order_release);
  return sum;
}
// What has ended is read first, so there is never more of it than has been added.
std::uint64_t waiting(const std::atomic<std::uint64_t>& ended,
                      const std::atomic<std::uint64_t>& added) noexcept {
  const std::uint64_t gone = ended.load(std::memory_order_acquire);
  return added.load(std::memory_order_relaxed) - gone;
}

// The one place that may say that a call without an outcome was not done.
CallOutcome::Kind without_answer(const OutgoingCall& call) noexcept {
  return call.may_be_done ? CallOutcome::Kind::kUnknown : CallOutcome::Kind::kFailed;
}

}  // namespace

ClientCore::ClientCore(Transport& transport, RpcClientOptions options)
    : options_(std::move(options)), transport_(&transport), random_(seed_of(options_.seed)) {}

ClientCore::~ClientCore() { PV2_ASSERT(open_calls_.empty(), "each call has had its outcome"); }

// --- from any thread

CallTicket ClientCore::add(std::unique_ptr<OutgoingCall> call) {
  if (const std::size_t bytes = waiting(ended_bytes_, added_bytes_);
      bytes + call->bytes() > options_.bytes_max) {
    call->method.clear();
    call->body = std::string();
    call->last = {StatusCode::kResourceExhausted,
                  fmt::format("the calls without an outcome have {} bytes; {} are allowed "
                              "(RpcClientOptions::bytes_max)",
                              bytes, options_.bytes_max)};
  }
  std::uint64_t ticket = 0;
  {
    const MutexLock lock(added_mutex_);
    if (is_closed_) return {};
    const std::size_t bytes = call->bytes();
    ticket = tickets_.load(std::memory_order_relaxed) + 1;
    call->ticket = ticket;
    added_.push_back(std::move(call));
    if (added_.size() == 1) {
      try {
        transport_->post([self = shared_from_this()] { self->take_added(); });
      } catch (...) {
        call = std::move(added_.back());  // destroyed outside of the mutex
        added_.pop_back();
        throw;
      }
    }
    count(tickets_);
    count(added_bytes_, bytes);
  }
  return {ticket};
}

void ClientCore::cancel(CallTicket ticket) {
  transport_->post([self = shared_from_this(), ticket] {
    self->take_added();
    const auto* const call = self->open_calls_.find(ticket.value);
    if (call == nullptr) return;
    self->give_up(**call, {StatusCode::kAborted, "the caller has cancelled the call"});
  });
}

RpcClientCounts ClientCore::counts() const {
  return {.calls = waiting(answered_, tickets_),
          .bytes = waiting(ended_bytes_, added_bytes_),
          .sent = sent_.load(std::memory_order_relaxed),
          .answered = answered_.load(std::memory_order_relaxed),
          .connections = connections_.load(std::memory_order_relaxed)};
}

// --- a call begins

void ClientCore::take_added() {
  std::vector<std::unique_ptr<OutgoingCall>> added = std::exchange(spare_, {});
  {
    const MutexLock lock(added_mutex_);
    added.swap(added_);
  }
  const SteadyTime start = now();
  for (auto& call : added) begin(std::move(call), start);
  added.clear();
  if (added.capacity() <= kSpareCallsMax) spare_ = std::move(added);
  pump();
  // Most calls are sent at once. Only those that wait are due before that.
  for (auto it = queue_.rbegin(); it != queue_.rend() && !it->is_due(); ++it) due_.insert(*it);
  arm();
}

void ClientCore::begin(std::unique_ptr<OutgoingCall> call, SteadyTime start) {
  OutgoingCall& it = *call;
  open_calls_.insert(it.ticket, std::move(call));
  it.may_be_done = it.options.resumed;
  it.deadline = later(start, std::max(it.options.timeout, Duration::zero()));
  it.due = it.deadline;
  queue_.push_back(it);
  if (is_shut_) return give_up(it, {StatusCode::kStopping, "the client is being destroyed"});
  if (!it.last.ok()) return give_up(it, it.last);
  if (it.method.empty() || it.method.size() > kMethodBytesMax) {
    give_up(it, {StatusCode::kInvalidArgument,
                 fmt::format("the name of a method has 1 to {} bytes, and this one has {}",
                             kMethodBytesMax, it.method.size())});
  }
}

void ClientCore::pump() {
  if (queue_.empty() || is_shut_) return;
  if (link_ == nullptr) return connect();
  const SteadyTime now_is = now();
  while (!queue_.empty() && link_ != nullptr && link_->has_room(options_.calls_max)) {
    OutgoingCall& call = queue_.front();
    const std::size_t frame_bytes = call.method.size() + call.body.size() + kFrameFieldsMax;
    if (frame_bytes > link_->frame_bytes_max()) {
      give_up(call, {StatusCode::kInvalidArgument,
                     fmt::format("the call of {} has {} bytes; the server takes frames of {}",
                                 call.method, frame_bytes, link_->frame_bytes_max())});
      continue;
    }
    if (call.deadline <= now_is) {
      give_up(call, {StatusCode::kDeadlineExceeded, "the time for the call is over"});
      continue;
    }
    if (call.options.expires_at && transport_->clock().wall_now() > *call.options.expires_at) {
      give_up(call, {StatusCode::kExpired,
                     fmt::format("the time until which {} was to be sent is over", call.method)});
      continue;
    }
    if (is_too_late(call, now_is)) {
      give_up(call, {StatusCode::kExpired,
                     "the server may have forgotten the nonce (RpcClientOptions::nonce_kept); "
                     "expires_at makes it remember longer"});
      continue;
    }
    queue_.pop_front();
    send(call, now_is);
  }
  if (link_ != nullptr) link_->flush();
}

// A copy that comes when the server has forgotten the nonce would be run again.
bool ClientCore::is_too_late(const OutgoingCall& call, SteadyTime now_is) const {
  return call.options.nonce && !call.options.expires_at && !call.options.nonce_stays &&
         call.first_sent_at && now_is - *call.first_sent_at > options_.nonce_kept;
}

Duration ClientCore::attempt_timeout(const OutgoingCall& call) const {
  return std::max(call.options.attempt_timeout.value_or(options_.attempt_timeout),
                  options_.pause_min);
}

void ClientCore::send(OutgoingCall& call, SteadyTime now_is) {
  // What cannot be sent again has all the time there is.
  const Duration timeout = call.is_repeatable() ? attempt_timeout(call) : Duration::max();
  ++call.attempts;
  count(sent_);
  call.phase = OutgoingCall::Phase::kSent;
  call.sent_at = now_is;
  if (!call.first_sent_at) call.first_sent_at = now_is;
  link_->send(call, now_is, timeout);
  set_due(call, std::min(call.deadline, later(now_is, timeout)));
}

// --- what becomes of an attempt

void ClientCore::on_reply(ClientLink& link, OutgoingCall& call, const RpcFrame& reply) {
  take_reply(call, reply);
  if (&link != link_.get()) end_if_unused(link);
}

// The server has sent the link away, and waits for this end to close it.
void ClientCore::end_if_unused(ClientLink& link) {
  if (link.in_flight() != 0 || link.has_ended()) return;
  link.end({StatusCode::kUnavailable, "the server has sent the client away"});
}

void ClientCore::take_reply(OutgoingCall& call, const RpcFrame& reply) {
  failures_ = 0;
  rejections_ = 0;
  Status status =
      reply.status == StatusCode::kOk ? Status() : Status(reply.status, std::string(reply.message));
  if (reply.reply == ReplyKind::kRefusal) return take_refusal(call, std::move(status));
  const auto kind = status.ok() ? CallOutcome::Kind::kOk : CallOutcome::Kind::kFailed;
  finish(call, {.kind = kind, .body = std::string(reply.body), .status = std::move(status)});
}

void ClientCore::take_refusal(OutgoingCall& call, Status why) {
  if (why.code() == StatusCode::kUnknownOutcome) call.may_be_done = true;
  if (!call.may_be_done) call.first_sent_at.reset();  // no server remembers the nonce
  const bool may_go_again = !call.may_be_done || call.is_repeatable();
  if (!is_worth_another_try(why.code()) || !may_go_again) {
    return finish(call,
                  {.kind = without_answer(call), .status = std::move(why), .was_refused = true});
  }
  call.last = std::move(why);
  pause(call);
}

void ClientCore::attempt_is_late(OutgoingCall& call, SteadyTime now_is) {
  ClientLink& link = *call.link;
  const bool is_silent = !link.has_heard_since(call.sent_at);
  call.may_be_done = true;
  call.last = {StatusCode::kDeadlineExceeded, "an attempt was not answered in time"};
  link.cancel(call);
  pause(call);
  if (is_silent) link.doubt(now_is, attempt_timeout(call) / 2);
  if (!link.has_ended()) link.flush();
}

void ClientCore::queue_again(OutgoingCall& call) {
  call.phase = OutgoingCall::Phase::kQueued;
  set_due(call, call.deadline);
  queue_.push_back(call);
}

void ClientCore::pause(OutgoingCall& call) {
  call.phase = OutgoingCall::Phase::kPausing;
  set_due(call, std::min(call.deadline, later(now(), pause_after(++call.retries))));
}

Duration ClientCore::pause_after(std::uint32_t failures) {
  const std::uint32_t doublings = std::min(failures - 1, std::uint32_t{20});
  const Duration pause =
      std::min(options_.pause_min * (std::int64_t{1} << doublings), options_.pause_max);
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  return pause - Duration(half == 0 ? 0 : random_.below(half + 1));
}

void ClientCore::set_due(OutgoingCall& call, SteadyTime due) {
  if (call.is_due()) due_.erase(due_.iterator_to(call));
  call.due = due;
  due_.insert(due_.end(), call);  // most calls have the same timeout, so the newest is due last
}

void ClientCore::arm() {
  if (due_.empty() || is_shut_) return;
  const SteadyTime first = due_.begin()->due;
  if (first >= due_timer_at_ || first == SteadyTime::max()) return;
  transport_->cancel(due_timer_);
  due_timer_at_ = first;
  due_timer_ = transport_->call_at(first, [this] { look_at_due(); });
}

void ClientCore::look_at_due() {
  due_timer_at_ = SteadyTime::max();
  const SteadyTime now_is = now();
  while (!due_.empty() && due_.begin()->due <= now_is) {
    OutgoingCall& call = *due_.begin();
    if (call.deadline <= now_is) {
      give_up(call, {StatusCode::kDeadlineExceeded, "the time for the call is over"});
    } else if (call.phase == OutgoingCall::Phase::kPausing) {
      queue_again(call);
    } else {
      attempt_is_late(call, now_is);
    }
  }
  pump();
  arm();
}

// --- a call ends

void ClientCore::give_up(OutgoingCall& call, const Status& why) {
  if (call.phase == OutgoingCall::Phase::kSent && call.link != nullptr) {
    call.may_be_done = true;
    ClientLink& link = *call.link;
    link.cancel(call);
    link.flush();
  }
  Status status = why;
  const Status& before = call.last.ok() ? last_failure_ : call.last;
  if (!before.ok() && !(before == why)) {
    status = {why.code(), fmt::format("{}; before that: {}", why.message(), before.to_string())};
  }
  finish(call, {.kind = without_answer(call), .status = std::move(status)});
}

void ClientCore::finish(OutgoingCall& call, CallOutcome outcome) {
  PV2_ASSERT(call.link == nullptr, "no link waits for a call that has its outcome");
  if (call.is_queued()) queue_.erase(queue_.iterator_to(call));
  if (call.is_due()) due_.erase(due_.iterator_to(call));
  const auto owned = open_calls_.take(call.ticket);
  count(ended_bytes_, owned->bytes());
  count(answered_);
  outcome.nonce = owned->options.nonce;
  outcome.attempts = owned->attempts;
  outcome.may_be_repeat = owned->may_be_done;
  try {
    if (owned->done) owned->done(std::move(outcome));
  } catch (...) {  // NOLINT(bugprone-empty-catch): as CallDone promises
  }
}

void ClientCore::on_note(OutgoingCall& call, std::string_view body) {
  try {
    if (call.options.on_note) call.options.on_note(body);
  } catch (...) {  // NOLINT(bugprone-empty-catch): as CallDone promises
  }
}

void ClientCore::shut() {
  is_shut_ = true;
  {
    const MutexLock lock(added_mutex_);
    is_closed_ = true;
  }
  take_added();
  const Status why(StatusCode::kStopping, "the client is being destroyed");
  std::vector<std::uint64_t> tickets;
  open_calls_.for_each([&](std::uint64_t ticket, const auto&) { tickets.push_back(ticket); });
  std::sort(tickets.begin(), tickets.end());
  for (const std::uint64_t ticket : tickets) {
    if (const auto* const call = open_calls_.find(ticket); call != nullptr) give_up(**call, why);
  }
  transport_->cancel(due_timer_);
  transport_->cancel(connect_timer_);
  link_.reset();
  going_.clear();
}

// --- connections

void ClientCore::connect() {
  if (connecting_ != Connecting::kNo) return;
  connecting_ = Connecting::kYes;
  transport_->connect(options_.addresses[address_], options_.connect_timeout,
                      [weak = weak_from_this()](Result<std::unique_ptr<Stream>> stream) {
                        const auto self = weak.lock();
                        if (self != nullptr && !self->is_shut_) self->connected(std::move(stream));
                      });
}

void ClientCore::connected(Result<std::unique_ptr<Stream>> stream) {
  connecting_ = Connecting::kNo;
  if (!stream.ok()) {
    rejections_ = 0;  // this one was not asked
    const std::string where = fmt::format("cannot connect to {}", options_.addresses[address_]);
    return connect_later(stream.status().with_context(where));
  }
  count(connections_);
  link_ =
      std::make_unique<ClientLink>(*transport_, *this, std::move(*stream),
                                   ClientLink::Settings{.token = options_.token,
                                                        .frame_bytes_max = options_.frame_bytes_max,
                                                        .ping_after = options_.ping_after,
                                                        .hello_timeout = options_.connect_timeout});
  link_->start();
}

// The first round over all addresses has no pauses.
void ClientCore::connect_later(const Status& why) {
  last_failure_ = why;
  next_address();
  ++failures_;
  if (failures_ < options_.addresses.size()) return pump();
  connecting_ = Connecting::kPausing;
  const auto rounds = static_cast<std::uint32_t>(failures_ / options_.addresses.size());
  connect_timer_ = transport_->call_at(later(now(), pause_after(rounds)), [this] {
    connecting_ = Connecting::kNo;
    pump();
    arm();
  });
}

void ClientCore::next_address() noexcept { address_ = (address_ + 1) % options_.addresses.size(); }

void ClientCore::on_open(ClientLink&) {
  last_failure_ = {};
  pump();
  arm();
}

void ClientCore::on_room(ClientLink& link) {
  if (&link == link_.get()) pump();
  arm();
}

void ClientCore::on_go_away(ClientLink& link, const Status& why) {
  last_failure_ = why;
  if (&link != link_.get()) return;
  const bool was_open = link.was_open();
  bury(link);
  // With pauses, like any failure: a server may let clients in only to send them away.
  if (!was_open) return link.end(why);
  connect_later(why);
  end_if_unused(link);
}

void ClientCore::rejected(const Status& why) {
  if (++rejections_ < options_.addresses.size()) return;
  rejections_ = 0;
  while (!queue_.empty()) give_up(queue_.front(), why);
}

void ClientCore::on_end(ClientLink& link, const Status& why,
                        std::vector<OutgoingCall*> unanswered) {
  const bool was_open = link.was_open();
  const bool was_current = &link == link_.get();
  bury(link);
  // In the order in which they were sent, before what was not sent yet.
  for (auto it = unanswered.rbegin(); it != unanswered.rend(); ++it) {
    OutgoingCall& call = **it;
    call.may_be_done = true;
    call.last = why;
    if (!call.is_repeatable()) {
      give_up(call, why);
      continue;
    }
    queue_again(call);
    queue_.splice(queue_.begin(), queue_, queue_.iterator_to(call));
  }
  if (is_shut_) return;
  if (!was_open &&
      (why.code() == StatusCode::kUnauthenticated || why.code() == StatusCode::kNotSupported)) {
    rejected(why);
  }
  if (was_current || !was_open) {
    connect_later(why);
  } else {
    pump();
  }
  arm();
}

// The link may be on the stack: it is deleted later.
void ClientCore::bury(ClientLink& link) {
  if (&link == link_.get()) going_.push_back(std::move(link_));
  if (is_shut_) return;
  transport_->post([self = shared_from_this()] {
    std::erase_if(self->going_, [](const auto& going) { return going->has_ended(); });
  });
}

}  // namespace pv2

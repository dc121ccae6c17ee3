// SPDX-License-Identifier: Apache-2.0
//
// What one client says, frame by frame, and what it is told.

#include "server_connection.h"

#include <fmt/format.h>
#include <pv2/base/assert.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "server_core.h"

namespace pv2 {
namespace {

// Before a peer has shown who it is, it gets no more memory than a hello needs.
constexpr std::size_t kHelloBytesMax = 4096;
// What a call costs besides its bytes.
constexpr std::size_t kCallBytes = 256;
// How long a client that was told to go away may take to do so.
constexpr Duration kLinger = std::chrono::seconds(1);
// What the memory for answers may keep when it is empty.
constexpr std::size_t kSpareBytesMax = std::size_t{256} << 10;
static_assert(IdWindow::kWindow >= 2 * 1024, "the default of RpcLimits::calls_max fits twice");

}  // namespace

ServerConnection::ServerConnection(std::shared_ptr<ServerCore> core, std::unique_ptr<Stream> stream,
                                   std::uint64_t number)
    : core_(std::move(core)),
      number_(number),
      stream_(std::move(stream)),
      reader_(kHelloBytesMax),
      opened_at_(core_->now()),
      heard_at_(opened_at_),
      unsent_since_(opened_at_) {}

ServerConnection::~ServerConnection() {
  const MutexLock lock(answers_mutex_);
  PV2_ASSERT(is_closed_, "a connection is closed before it goes");
}

void ServerConnection::start() { stream_->start(*this); }

// --- what the client says

void ServerConnection::on_bytes(std::string_view bytes) {
  const auto self = shared_from_this();  // it may be closed in here
  guarded([&] { read(bytes); });
}

void ServerConnection::guarded(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    close(core_->no_memory());
  } catch (const std::exception& thrown) {
    close({StatusCode::kUnavailable, std::string(text_of(thrown))});
  }
}

void ServerConnection::read(std::string_view bytes) {
  heard_at_ = core_->now();
  {
    const MutexLock lock(answers_mutex_);
    flush_is_due_ = true;  // at the end of this
  }
  bool has_frames = false;
  reader_.feed(bytes);
  while (phase_ < Phase::kBroken) {
    const FrameReader::Next next = reader_.next();
    if (!next.status.ok()) {
      break_off(next.status);
      break;
    }
    if (!next.has_frame) break;
    has_frames = true;
    if (kept_counted_ != 0) count_kept();  // from here on it counts as a call, or not at all
    const auto frame = decode_rpc_frame(next.bytes);
    if (!frame.ok()) {
      break_off(frame.status());
      break;
    }
    take(*frame);
  }
  if (reader_.kept() == 0) {
    frame_since_.reset();
  } else if (has_frames || !frame_since_) {
    frame_since_ = heard_at_;
  }
  if (phase_ < Phase::kBroken) count_kept();
  flush();
}

// Frames that have not arrived whole count as calls do: a client may send much and never the end.
void ServerConnection::count_kept() {
  const std::size_t before = std::exchange(kept_counted_, reader_.kept());
  if (kept_counted_ == before) return;
  core_->memory.fetch_add(kept_counted_ - before, std::memory_order_relaxed);  // may wrap around
  if (kept_counted_ <= kHelloBytesMax) return;
  const std::size_t memory_max = core_->limits().memory_max;
  if (core_->memory.load(std::memory_order_relaxed) <= memory_max) return;
  break_off({StatusCode::kResourceExhausted,
             fmt::format("the calls and answers of all clients take {} bytes; there is no room for "
                         "the rest of this frame",
                         memory_max)});
}

void ServerConnection::take(const RpcFrame& frame) {
  if (phase_ == Phase::kHello) {
    if (frame.kind == FrameKind::kHello) return take_hello(frame);
    return break_off(
        {StatusCode::kFailedPrecondition,
         fmt::format("a connection begins with a hello, and not with {}", to_string(frame.kind))});
  }
  switch (frame.kind) {
    case FrameKind::kCall:
      return take_call(frame);
    case FrameKind::kCancel:
      return take_cancel(frame.id);
    case FrameKind::kPing:
      return send_frame({.kind = FrameKind::kPong, .id = frame.id});
    case FrameKind::kHello:  // a network that repeats frames repeats this one too
    case FrameKind::kPong:
      return;
    case FrameKind::kWelcome:
    case FrameKind::kReply:
    case FrameKind::kNote:
    case FrameKind::kGoAway:
      break;
  }
  break_off({StatusCode::kInvalidArgument,
             fmt::format("a client does not send {}", to_string(frame.kind))});
}

void ServerConnection::take_hello(const RpcFrame& hello) {
  if (hello.version != kRpcVersion) {
    return break_off({StatusCode::kNotSupported,
                      fmt::format("the client speaks version {} of the protocol, and this server "
                                  "version {}",
                                  hello.version, kRpcVersion)});
  }
  const auto owner = core_->owner_of(hello.token);
  if (!owner) {
    ServerCore::count(core_->turned_away);
    return break_off({StatusCode::kUnauthenticated,
                      hello.token.empty() ? "this server asks for a token, and the hello has none"
                                          : "the token of the hello is not known here"});
  }
  owner_ = *owner;
  phase_ = Phase::kOpen;
  reader_.set_limit(core_->limits().frame_bytes_max);
  send_frame({.kind = FrameKind::kWelcome,
              .version = kRpcVersion,
              .calls_max = core_->limits().calls_max,
              .frame_bytes_max = core_->limits().frame_bytes_max});
}

Status ServerConnection::admit(const RpcFrame& call, const RpcMethods::value_type*& method,
                               std::string& body) {
  const RpcLimits& limits = core_->limits();
  if (phase_ == Phase::kClosing) return {StatusCode::kStopping, "the server is stopping"};
  method = core_->find(call.method);
  if (method == nullptr) {
    return {StatusCode::kNotSupported,
            fmt::format("this server has no method '{}'", call.method.substr(0, 256))};
  }
  const std::size_t bytes = call.method.size() + call.body.size() + kCallBytes;
  if (core_->memory.load(std::memory_order_relaxed) + bytes > limits.memory_max) {
    return {StatusCode::kResourceExhausted,
            fmt::format("the calls and answers of all clients take {} bytes; try again later",
                        limits.memory_max)};
  }
  body = call.body;  // before the call counts, because there may be no memory for it
  const MutexLock lock(answers_mutex_);
  if (in_flight_.size() >= limits.calls_max) {
    return {StatusCode::kResourceExhausted,
            fmt::format("{} calls of this connection are not answered yet; try again later",
                        limits.calls_max)};
  }
  in_flight_.insert(call.id, bytes);
  core_->memory.fetch_add(bytes, std::memory_order_relaxed);
  core_->calls_in_flight.fetch_add(1, std::memory_order_relaxed);
  return {};
}

void ServerConnection::take_call(const RpcFrame& call) {
  if (!ids_.is_new(call.id)) {
    ServerCore::count(core_->repeated);
    return;  // the first copy is being answered, or was
  }
  const RpcMethods::value_type* method = nullptr;
  std::string body;
  if (const Status status = admit(call, method, body); !status.ok()) {
    ServerCore::count(core_->refused);
    return refuse(call.id, status);
  }
  ServerCore::count(core_->calls);
  const auto& [name, handler] = *method;
  core_->guard(name, [&, &name = name, &handler = handler] {
    handler(IncomingCall(shared_from_this(), call, name, std::move(body), owner_, heard_at_));
  });
}

void ServerConnection::take_cancel(std::uint64_t id) {
  cancel_one(id, {StatusCode::kAborted, "the client has cancelled the call"});
}

void ServerConnection::cancel_one(std::uint64_t id, const Status& why) {
  Cancelled cancelled;
  {
    const MutexLock lock(answers_mutex_);
    if (in_flight_.find(id) == nullptr || !all_cancelled_.ok()) return;
    Watched& call = watched_[id];
    if (!call.why.ok()) return;
    call.why = why;
    cancelled = std::exchange(call.cancelled, nullptr);
  }
  if (cancelled) give_up(cancelled, why);
}

void ServerConnection::give_up(const Cancelled& cancelled, const Status& why) {
  core_->guard("a call that is cancelled", [&] { cancelled(why); });
}

void ServerConnection::break_off(Status why) {
  if (why.code() != StatusCode::kUnauthenticated) {
    ServerCore::count(core_->broken);
  }
  send_frame({.kind = FrameKind::kGoAway, .status = why.code(), .message = why.message()});
  phase_ = Phase::kBroken;
  stream_->pause();
}

// --- what the client is told

// `freed` is what the server's memory counts no more, unless this throws.
bool ServerConnection::append(const RpcFrame& frame, std::size_t freed) {
  if (is_closed_ || is_too_much_) {
    core_->memory.fetch_sub(freed, std::memory_order_relaxed);
    return false;
  }
  if (!flush_is_due_) {
    // Under the mutex, because close() takes it, and the transport may go after that.
    core_->transport().post([self = shared_from_this()] { self->guarded([&] { self->flush(); }); });
    flush_is_due_ = true;
  }
  const std::size_t before = out_.size();
  append_rpc_frame(out_, frame);
  const std::size_t added = out_.size() - before;
  counted_ += added;
  const std::size_t change = added - freed;  // may wrap around
  const std::size_t memory = core_->memory.fetch_add(change, std::memory_order_relaxed) + change;
  const RpcLimits& limits = core_->limits();
  if (memory > limits.memory_max && counted_ > limits.unsent_bytes_max) {
    give_up_answers();
  }
  return true;
}

// They are lost with the connection; the client asks again.
void ServerConnection::give_up_answers() noexcept {
  is_too_much_ = true;
  core_->memory.fetch_sub(out_.size(), std::memory_order_relaxed);
  counted_ -= out_.size();
  out_ = std::string();
}

void ServerConnection::send_frame(const RpcFrame& frame) {
  const MutexLock lock(answers_mutex_);
  append(frame);
}

void ServerConnection::refuse(std::uint64_t id, const Status& why) {
  send_frame({.kind = FrameKind::kReply,
              .id = id,
              .reply = ReplyKind::kRefusal,
              .status = why.code(),
              .message = why.message()});
}

ServerConnection::Cancelled ServerConnection::answer(const RpcFrame& reply) {
  if (reply.body.size() + kCallBytes > core_->limits().frame_bytes_max) {
    return answer({.kind = FrameKind::kReply,
                   .id = reply.id,
                   .reply = ReplyKind::kRefusal,
                   .status = StatusCode::kUnknownOutcome,
                   .message = "the answer is larger than a frame may be"});
  }
  const MutexLock lock(answers_mutex_);
  const std::size_t* const bytes = in_flight_.find(reply.id);
  PV2_ASSERT(bytes != nullptr, "a call is answered once");
  append(reply, *bytes);  // if there is no memory for it, the call is still to be answered
  return remove(reply.id);
}

ServerConnection::Cancelled ServerConnection::remove(std::uint64_t id) noexcept {
  in_flight_.take(id);
  core_->calls_in_flight.fetch_sub(1, std::memory_order_relaxed);
  if (watched_.empty()) return {};
  const auto watched = watched_.find(id);
  if (watched == watched_.end()) return {};
  Cancelled cancelled = std::move(watched->second.cancelled);
  watched_.erase(watched);
  return cancelled;
}

void ServerConnection::forget(std::uint64_t id) noexcept {
  Cancelled cancelled;  // destroyed outside of the mutex: it is the host's
  const MutexLock lock(answers_mutex_);
  const std::size_t* const bytes = in_flight_.find(id);
  PV2_ASSERT(bytes != nullptr, "only a call without an answer is forgotten");
  core_->memory.fetch_sub(*bytes, std::memory_order_relaxed);
  cancelled = remove(id);
  if (!is_closed_) give_up_answers();
}

bool ServerConnection::note(std::uint64_t id, std::string_view body) {
  const RpcLimits& limits = core_->limits();
  if (body.size() + kCallBytes > limits.frame_bytes_max) return false;
  const MutexLock lock(answers_mutex_);
  if (counted_ + body.size() > limits.unsent_bytes_max) return false;
  return append({.kind = FrameKind::kNote, .id = id, .body = body});
}

void ServerConnection::flush() {
  const auto self = shared_from_this();
  {
    const MutexLock lock(answers_mutex_);
    flush_is_due_ = false;
    if (is_closed_) return;
    std::swap(out_, spare_);
  }
  if (end_if_too_much()) return;
  if (!spare_.empty()) {
    if (stream_->unsent() == 0) unsent_since_ = core_->now();
    given_ += spare_.size();
    stream_->send(spare_);
    spare_.clear();
    if (spare_.capacity() > kSpareBytesMax) spare_ = std::string();
  }
  count_unsent();
  end_if_done();
}

bool ServerConnection::end_if_too_much() {
  {
    const MutexLock lock(answers_mutex_);
    if (is_closed_ || !is_too_much_) return false;
  }
  ServerCore::count(core_->broken);
  close({StatusCode::kUnavailable,
         "there is no memory for the answers that the client has not taken"});
  return true;
}

void ServerConnection::on_drained() {
  const auto self = shared_from_this();
  unsent_since_ = core_->now();
  guarded([this] {
    count_unsent();
    end_if_done();
  });
}

// A client that does not take its answers gives no more calls.
void ServerConnection::count_unsent() {
  const std::size_t unsent = stream_->unsent();
  {
    const MutexLock lock(answers_mutex_);
    core_->memory.fetch_sub(counted_, std::memory_order_relaxed);
    counted_ = out_.size() + unsent;
    core_->memory.fetch_add(counted_, std::memory_order_relaxed);
  }
  if (phase_ == Phase::kBroken) return;
  const bool is_full = unsent > core_->limits().unsent_bytes_max;
  if (is_full && !is_paused_) {
    is_paused_ = true;
    stream_->pause();
  } else if (is_paused_ && unsent <= core_->limits().unsent_bytes_max / 2) {
    is_paused_ = false;
    // What it has said meanwhile was not read: its time limits begin anew.
    heard_at_ = core_->now();
    if (frame_since_) frame_since_ = heard_at_;
    stream_->resume();
  }
}

// --- how it ends

void ServerConnection::on_cancel(std::uint64_t id, std::optional<SteadyTime> deadline,
                                 Cancelled cancelled) {
  Cancelled replaced;  // destroyed outside of the mutex: it is the host's
  Status why;
  {
    const MutexLock lock(answers_mutex_);
    PV2_ASSERT(in_flight_.find(id) != nullptr, "only a call without an answer can be cancelled");
    why = all_cancelled_;
    if (!why.ok()) {
      if (const auto watched = watched_.find(id); watched != watched_.end()) {
        replaced = std::move(watched->second.cancelled);
        watched_.erase(watched);
      }
    } else {
      Watched& call = watched_[id];
      why = call.why;
      if (why.ok()) {
        std::swap(call.cancelled, cancelled);
        call.deadline = deadline;
        if (deadline) deadline_min_ = std::min(deadline_min_, *deadline);
      }
    }
  }
  if (!why.ok() && cancelled) give_up(cancelled, why);
}

// One at a time: the host may answer other calls in there, and then nobody tells those.
void ServerConnection::cancel_all(const Status& why) {
  {
    const MutexLock lock(answers_mutex_);
    if (!all_cancelled_.ok()) return;
    all_cancelled_ = why;
  }
  while (const auto watched = take_watched()) {
    if (watched->cancelled) give_up(watched->cancelled, why);
  }
}

std::optional<ServerConnection::Watched> ServerConnection::take_watched() {
  const MutexLock lock(answers_mutex_);
  const auto first = watched_.begin();
  if (first == watched_.end()) return std::nullopt;
  std::optional<Watched> taken = std::move(first->second);
  watched_.erase(first);
  return taken;
}

void ServerConnection::finish(const Status& why) {
  if (phase_ >= Phase::kClosing) return;
  const auto self = shared_from_this();
  send_frame({.kind = FrameKind::kGoAway, .status = why.code(), .message = why.message()});
  phase_ = Phase::kClosing;
  cancel_all(why);
}

void ServerConnection::end_if_done() {
  if (phase_ != Phase::kClosing && phase_ != Phase::kBroken) return;
  if (stream_->unsent() > 0) return;
  {
    const MutexLock lock(answers_mutex_);
    if (!out_.empty() || (phase_ == Phase::kClosing && !in_flight_.empty())) return;
  }
  if (phase_ == Phase::kClosing) {
    // The client ends the connection when it has heard that. If this end did so first while
    // something of the client's was on its way, the system would throw the last answers away.
    if (!done_at_) done_at_ = core_->now();
    return;
  }
  close({StatusCode::kUnavailable, "the server has closed the connection"});
}

void ServerConnection::on_closed(const Status& why) {
  close({StatusCode::kUnavailable,
         why.ok() ? std::string("the client has closed the connection") : why.to_string()});
}

void ServerConnection::close(const Status& why) {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();
  phase_ = Phase::kClosed;
  stream_.reset();
  {
    const MutexLock lock(answers_mutex_);
    is_closed_ = true;
    core_->memory.fetch_sub(counted_ + kept_counted_, std::memory_order_relaxed);
    counted_ = 0;
    kept_counted_ = 0;
    out_ = std::string();
  }
  cancel_all(why);
  core_->remove(*this);
}

// --- time limits

void ServerConnection::look(SteadyTime now) {
  const RpcLimits& limits = core_->limits();
  const auto self = shared_from_this();
  if (phase_ == Phase::kHello && now - opened_at_ > limits.hello_timeout) {
    break_off({StatusCode::kDeadlineExceeded, "no hello has arrived in time"});
  }
  if (done_at_ && now - *done_at_ > kLinger) {
    return close({StatusCode::kUnavailable, "the server has closed the connection"});
  }
  cancel_late(now);
  if (end_if_too_much()) return;
  look_at_frame(now);
  look_at_unsent(now);
}

void ServerConnection::look_at_frame(SteadyTime now) {
  const RpcLimits& limits = core_->limits();
  if (phase_ >= Phase::kBroken || is_paused_) return;
  if (frame_since_ && now - *frame_since_ > limits.frame_timeout) {
    break_off({StatusCode::kDeadlineExceeded, "the rest of a frame has not arrived in time"});
  } else if (now - heard_at_ > limits.idle_timeout) {
    // A handler that does not answer keeps no connection of a client that is gone.
    if (phase_ == Phase::kClosing) return close({StatusCode::kUnavailable, "the client is silent"});
    finish({StatusCode::kUnavailable, "nothing was heard for too long; ping when idle"});
  }
}

void ServerConnection::look_at_unsent(SteadyTime now) {
  if (phase_ == Phase::kClosed) return;
  const std::size_t unsent = stream_->unsent();
  const std::uint64_t taken = given_ - unsent;
  if (unsent == 0 || taken != taken_seen_) unsent_since_ = now;
  taken_seen_ = taken;
  if (now - unsent_since_ <= core_->limits().stalled_timeout) return;
  ServerCore::count(core_->broken);
  close({StatusCode::kUnavailable, "the client does not read its answers"});
}

void ServerConnection::cancel_late(SteadyTime now) {
  std::vector<std::uint64_t> late;
  {
    const MutexLock lock(answers_mutex_);
    if (now < deadline_min_) return;
    late.reserve(watched_.size());
    deadline_min_ = SteadyTime::max();
    for (const auto& [id, call] : watched_) {
      if (!call.cancelled || !call.deadline) continue;
      if (*call.deadline > now) {
        deadline_min_ = std::min(deadline_min_, *call.deadline);
      } else {
        late.push_back(id);
      }
    }
  }
  const Status why(StatusCode::kDeadlineExceeded, "the deadline of the call has passed");
  for (const std::uint64_t id : late) cancel_one(id, why);
}

}  // namespace pv2

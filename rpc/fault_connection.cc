// SPDX-License-Identifier: Apache-2.0
//
// FaultConnection. How a connection ends, which is most of what it has to think of:
//
//     one end closes         the other gets what is in its pipe, then is closed
//     ... but reads nothing  it is closed when it has taken nothing for `linger`
//     ... half-open          the other hears nothing; it ends when both have closed
//     cut                    both are closed: at once, or when the last frame was passed on
//
// Nothing calls back from within Stream::send() or a Stream's destructor, so the only calls from
// outside are those of the streams, of the timers, and of the plan.

#include "fault_connection.h"

#include <pv2/base/assert.h>
#include <pv2/base/clock.h>
#include <pv2/base/frame.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace pv2 {
namespace {

constexpr std::size_t kMethodsMax = 1024;  // the number that FaultPlan promises
// A longer name is not remembered: 1024 of them are 256 KiB.
constexpr std::size_t kKeptNameBytesMax = 256;

constexpr Direction opposite(Direction direction) noexcept {
  return direction == Direction::kToServer ? Direction::kToClient : Direction::kToServer;
}

}  // namespace

FaultConnection::FaultConnection(std::shared_ptr<FaultWorld> world, std::uint64_t number,
                                 std::function<void()> ended)
    : world_(std::move(world)),
      number_(number),
      ended_(std::move(ended)),
      ways_{Way(world_->counters.to_server, world_->options),
            Way(world_->counters.to_client, world_->options)} {}

FaultConnection::~FaultConnection() {
  cancel_timer(Direction::kToServer);
  cancel_timer(Direction::kToClient);
}

FaultConnection::Way& FaultConnection::way(Direction direction) noexcept {
  return ways_[static_cast<std::size_t>(direction)];
}

FaultConnection::End& FaultConnection::source_of(Direction direction) noexcept {
  return direction == Direction::kToServer ? client_ : server_;
}

FaultConnection::End& FaultConnection::sink_of(Direction direction) noexcept {
  return source_of(opposite(direction));
}

void FaultConnection::start(std::unique_ptr<Stream> client) {
  client_.stream = std::move(client);
  client_.stream->start(client_);
  const FaultProxyOptions& options = world_->options;
  options.transport->connect(options.target, options.connect_timeout,
                             [weak = weak_from_this()](Result<std::unique_ptr<Stream>> server) {
                               if (const auto self = weak.lock())
                                 self->on_connected(std::move(server));
                             });
}

void FaultConnection::end() {
  if (std::exchange(is_over_, true)) return;
  const auto self = shared_from_this();
  for (const Direction direction : {Direction::kToServer, Direction::kToClient}) {
    cancel_timer(direction);
    source_of(direction).stream.reset();
    way(direction).reading = Reading::kSwallows;
    way(direction).pipe.clear();
  }
  methods_.clear();
  if (const auto ended = std::exchange(ended_, nullptr)) ended();
}

void FaultConnection::half_open(Direction by, Fate::HalfOpen what) {
  if (what == Fate::HalfOpen::kNo || is_over_) return;
  swallow(by);
  if (what == Fate::HalfOpen::kBoth) swallow(opposite(by));
}

/// A direction that is over stays so: the news of its end is among what is still passed.
void FaultConnection::swallow(Direction direction) {
  Way& from = way(direction);
  if (from.reading != Reading::kPasses) return;
  from.reading = Reading::kSwallows;
  ++from.counts.half_opened;
}

std::size_t FaultConnection::kept() const noexcept {
  std::size_t sum = 0;
  for (const Way& way : ways_) sum += way.pipe.kept() + way.reader.kept();
  return sum;
}

void FaultConnection::on_connected(Result<std::unique_ptr<Stream>> server) {
  const auto self = shared_from_this();
  if (is_over_) return;
  is_connecting_ = false;
  if (!server) {
    ++world_->counters.connects_failed;
    end();
    return;
  }
  server_.stream = *std::move(server);
  server_.stream->start(server_);
  pump();
}

void FaultConnection::on_bytes(Direction direction, std::string_view bytes) {
  const auto self = shared_from_this();
  if (way(direction).reading != Reading::kPasses) {
    way(direction).counts.swallowed_bytes += bytes.size();
    return;
  }
  if (world_->options.unit == FaultProxyOptions::Unit::kFrames) {
    read_frames(direction, bytes);
  } else {
    pass({.direction = direction}, std::string(bytes));
  }
  pump();  // both ways: the fate of a frame may be that of the connection
}

void FaultConnection::on_drained(Direction source) {
  const auto self = shared_from_this();
  pump(opposite(source));
}

void FaultConnection::on_closed(Direction direction) {
  const auto self = shared_from_this();
  source_of(direction).stream.reset();
  Way& closed = way(direction);
  if (closed.reading == Reading::kPasses) nothing_more_comes(direction);
  // Nobody is there to read what goes the other way.
  Way& back = way(opposite(direction));
  back.pipe.clear();
  if (back.reading != Reading::kOver) back.reading = Reading::kSwallows;
  if (sink_of(direction).stream != nullptr || is_connecting_) {
    pump();
  } else {
    end();
  }
}

void FaultConnection::nothing_more_comes(Direction direction) {
  Way& from = way(direction);
  from.reading = Reading::kOver;
  from.over_since = world_->options.transport->clock().steady_now();
  from.pipe.no_more_comes();
}

void FaultConnection::read_frames(Direction direction, std::string_view bytes) {
  Way& from = way(direction);
  from.reader.feed(bytes);
  while (!is_over_) {
    const FrameReader::Next next = from.reader.next();
    if (next.status.ok() && !next.has_frame) return;
    if (from.reading != Reading::kPasses) {
      // An earlier frame of these bytes has closed the direction.
      if (!next.has_frame) return;
      from.counts.swallowed_bytes += next.bytes.size() + kFrameHeaderBytes;
      continue;
    }
    Result<RpcFrame> frame =
        next.status.ok() ? decode_rpc_frame(next.bytes) : Result<RpcFrame>(next.status);
    if (!frame) {
      ++from.counts.undecodable;
      end();
      return;
    }
    std::string passed;
    append_frame(passed, next.bytes);
    const std::string method = method_of(*frame);
    pass({.direction = direction, .kind = frame->kind, .method = method, .id = frame->id},
         std::move(passed));
  }
}

/// Of a call the name, and of what is said about it later too.
std::string FaultConnection::method_of(const RpcFrame& frame) {
  if (frame.kind == FrameKind::kCall) {
    if (frame.method.size() <= kKeptNameBytesMax) methods_[frame.id] = frame.method;
    if (methods_.size() > kMethodsMax) methods_.erase(methods_.begin());
    return std::string(frame.method);
  }
  if (frame.kind != FrameKind::kReply && frame.kind != FrameKind::kNote &&
      frame.kind != FrameKind::kCancel) {
    return {};
  }
  const auto found = methods_.find(frame.id);
  if (found == methods_.end()) return {};
  std::string method = found->second;
  if (frame.kind == FrameKind::kReply) methods_.erase(found);
  return method;
}

void FaultConnection::pass(PassingFrame frame, std::string bytes) {
  Way& from = way(frame.direction);
  frame.connection = number_;
  frame.index = from.next_index++;
  frame.size = bytes.size();
  const Result<Fate> fate = ask_plan(frame);
  if (is_over_) return;  // the plan has called cut_all()
  if (!fate) {
    ++from.counts.plan_failures;
    end();
    return;
  }
  const Fate& f = *fate;
  if (f.half_open != Fate::HalfOpen::kNo) {
    half_open(frame.direction, f.half_open);
    from.counts.swallowed_bytes += bytes.size();
    return;
  }
  const bool is_dropped = f.copies == 0 && world_->options.unit == FaultProxyOptions::Unit::kFrames;
  if (is_dropped) ++from.counts.dropped;
  if (f.cut == Fate::Cut::kBefore || (is_dropped && f.cut == Fate::Cut::kAfter)) {
    ++from.counts.cut;
    end();
    return;
  }
  if (!is_dropped) put_into_pipe(frame, f, std::move(bytes));
}

void FaultConnection::put_into_pipe(const PassingFrame& frame, const Fate& fate,
                                    std::string bytes) {
  Way& from = way(frame.direction);
  const bool is_frame = world_->options.unit == FaultProxyOptions::Unit::kFrames;
  const SteadyTime now = world_->options.transport->clock().steady_now();
  if (fate.delay > Duration::zero()) ++from.counts.delayed;
  FaultPipe::Item item{.bytes = std::move(bytes),
                       .copies = is_frame ? fate.copies : 1,
                       .due = later(now, fate.delay),
                       .is_last = fate.cut == Fate::Cut::kAfter};
  const bool is_last = item.is_last;
  // A frame that the connection ends with has no later ones to wait for.
  if (is_frame && fate.behind > 0 && !is_last) {
    from.pipe.hold_back(std::move(item), fate.behind, later(now, fate.hold_back));
  } else {
    from.pipe.append(std::move(item));
  }
  if (is_last) nothing_more_comes(frame.direction);
}

/// The plan is anybody's code.
Result<Fate> FaultConnection::ask_plan(const PassingFrame& frame) const {
  if (!world_->options.plan) return Fate();
  try {
    const Fate fate = world_->options.plan->fate(frame);
    if (Status status = check(fate); !status.ok()) return status;
    return fate;
  } catch (const std::exception& thrown) {
    return Status(StatusCode::kInternal, "fault plan: " + std::string(text_of(thrown)));
  } catch (...) {
    return Status(StatusCode::kInternal, "fault plan: threw something unknown");
  }
}

void FaultConnection::pump() {
  const auto self = shared_from_this();
  pump(Direction::kToServer);
  pump(Direction::kToClient);
}

void FaultConnection::pump(Direction direction) {
  if (is_over_) return;
  Way& from = way(direction);
  const SteadyTime now = world_->options.transport->clock().steady_now();
  if (Stream* const out = sink_of(direction).stream.get()) {
    from.pipe.pump(*out, now, world_->bytes_per_second);
  }
  if (from.pipe.has_sent_last()) cut_after_last(direction);
  if (has_passed_all(direction) || lingers_too_long(direction, now)) {
    end();
    return;
  }
  pause_or_resume(direction);
  set_timer(direction);
}

/// The last frame is with the stream; when that is drained, the connection ends. What the receiver
/// answers meanwhile comes too late.
void FaultConnection::cut_after_last(Direction direction) {
  PV2_ASSERT(way(direction).reading == Reading::kOver, "nothing comes after the last frame");
  ++way(direction).counts.cut;
  way(direction).pipe.clear();
  way(opposite(direction)).pipe.clear();
  way(opposite(direction)).reading = Reading::kSwallows;
}

bool FaultConnection::has_passed_all(Direction direction) {
  const Stream* const out = sink_of(direction).stream.get();
  return way(direction).reading == Reading::kOver && way(direction).pipe.is_empty() &&
         (out == nullptr || out->unsent() == 0);
}

SteadyTime FaultConnection::lingers_until(Direction direction) {
  const Way& from = way(direction);
  return later(std::max(from.over_since, from.pipe.last_sent_at()), world_->options.linger);
}

bool FaultConnection::lingers_too_long(Direction direction, SteadyTime now) {
  const Way& from = way(direction);
  return from.reading == Reading::kOver && sink_of(direction).stream != nullptr &&
         from.pipe.waits_for_reader() && now >= lingers_until(direction);
}

/// Reads as long as there is room for what is read.
void FaultConnection::pause_or_resume(Direction direction) {
  Way& from = way(direction);
  Stream* const in = source_of(direction).stream.get();
  if (in == nullptr) return;
  const Stream* const out = sink_of(direction).stream.get();
  const std::size_t kept = from.pipe.kept() + (out != nullptr ? out->unsent() : 0);
  const std::size_t most = world_->options.kept_bytes_max;
  // A direction that swallows reads on, whatever it still has to pass.
  const bool may_read = from.reading != Reading::kPasses || kept < most;
  if (!from.is_paused && !may_read) {
    from.is_paused = true;
    in->pause();
  } else if (from.is_paused && (from.reading != Reading::kPasses || kept <= most / 2)) {
    from.is_paused = false;
    in->resume();
  }
}

void FaultConnection::set_timer(Direction direction) {
  Way& from = way(direction);
  std::optional<SteadyTime> when;
  // Without a sink, the pipe has nothing to do before it is connected, and is pumped then.
  if (sink_of(direction).stream != nullptr) {
    when = from.pipe.wakes_at();
    if (!when && from.reading == Reading::kOver) when = lingers_until(direction);
  }
  if (when && from.timer && from.timer_at == *when) return;
  cancel_timer(direction);
  if (!when) return;
  from.timer_at = *when;
  from.timer = world_->options.transport->call_at(*when, [weak = weak_from_this(), direction] {
    const auto self = weak.lock();
    if (!self) return;
    self->way(direction).timer = {};
    self->pump(direction);
  });
}

void FaultConnection::cancel_timer(Direction direction) {
  world_->options.transport->cancel(std::exchange(way(direction).timer, {}));
}

}  // namespace pv2

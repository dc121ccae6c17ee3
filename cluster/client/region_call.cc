// SPDX-License-Identifier: Apache-2.0
//
// An attempt is: find the region, call its server. Refusals that may pass, and silence, lead to the
// next attempt; every other answer is the outcome.

#include "client/region_call.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace pv2::cluster {
namespace {

// A server that lives answers in milliseconds. One that does not is soon replaced, and only the map
// tells by whom.
constexpr Duration kFirstPatience = std::chrono::milliseconds(500);

bool may_pass(StatusCode code) {
  switch (code) {
    case StatusCode::kNotFound:  // the region is elsewhere
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

}  // namespace

void RegionCall::begin(RegionCallGround ground, Request request, Done done) {
  const std::shared_ptr<RegionCall> call(
      new RegionCall(ground, std::move(request), std::move(done)));
  call->attempt();
}

RegionCall::RegionCall(RegionCallGround ground, Request request, Done done)
    : ground_(ground),
      request_(std::move(request)),
      done_(std::move(done)),
      deadline_(later(ground.tasks.now(), request_.options.timeout)),
      pause_(ground.options.pause_min),
      patience_(std::min(kFirstPatience, ground.options.call_timeout)),
      may_be_done_(request_.options.resumed) {}

Duration RegionCall::time_left() const { return deadline_ - ground_.tasks.now(); }

void RegionCall::attempt() {
  ground_.map.find(request_.table, request_.row,
                   [self = shared_from_this()](const Result<RegionPlace>& place) {
                     if (place.ok()) return self->send(*place);
                     if (place.status().code() == StatusCode::kNotFound) {
                       return self->finish(place.status());
                     }
                     self->try_again(place.status());
                   });
}

void RegionCall::send(const RegionPlace& place) {
  Result<std::string> body = request_.body(place.region);
  if (!body.ok()) {
    // The map may be old. The next attempt reads it anew, and then this is so.
    if (is_fresh_) return finish(body.status());
    ground_.map.forget(request_.table);
    is_fresh_ = true;
    return attempt();
  }
  const Duration left = time_left();
  if (left <= Duration::zero()) return finish({StatusCode::kDeadlineExceeded, "the time is over"});
  CallOptions options = request_.options;
  options.resumed = may_be_done_;
  options.timeout = request_.is_long ? left : std::min(patience_, left);
  if (request_.is_long) options.attempt_timeout = left;
  patience_ = std::min(2 * patience_, ground_.options.call_timeout);
  ++sends_;
  is_out_ = true;
  const CallTicket ticket = ground_.connections.call(
      place.address, request_.method, *std::move(body), options,
      ground_.tasks.guarded<CallOutcome>([self = shared_from_this(), place](CallOutcome outcome) {
        self->take(place, std::move(outcome));
      }));
  if (request_.is_long && is_out_) look_at_map_later(place.address, ticket);
}

// A dead server does not answer, and the call would wait for it until its time is over. So the call
// leaves a server when the map says that the region is elsewhere. It stays with a server that still
// has the region, because a new attempt would begin a long compaction once more.
void RegionCall::look_at_map_later(const std::string& address, CallTicket ticket) {
  look_timer_ = ground_.tasks.after(
      ground_.options.call_timeout, [self = shared_from_this(), address, ticket] {
        self->ground_.map.forget(self->request_.table);
        self->ground_.map.find(
            self->request_.table, self->request_.row,
            [self, address, ticket, send = self->sends_](const Result<RegionPlace>& place) {
              if (!self->is_out_ || self->sends_ != send) return;
              const bool is_elsewhere = place.ok() ? place->address != address
                                                   : place.status().code() == StatusCode::kNotFound;
              if (!is_elsewhere) return self->look_at_map_later(address, ticket);
              self->has_moved_ = true;
              self->ground_.connections.cancel(address, ticket);
            });
      });
}

void RegionCall::take(const RegionPlace& place, CallOutcome outcome) {
  is_out_ = false;
  if (request_.is_long) ground_.tasks.cancel(look_timer_);
  attempts_ += outcome.attempts;
  outcome.attempts = attempts_;
  if (outcome.ok()) return done_(std::move(outcome), place.region);
  if (outcome.kind == CallOutcome::Kind::kUnknown) may_be_done_ = true;
  if (std::exchange(has_moved_, false) && outcome.status.code() == StatusCode::kAborted) {
    outcome.status = {StatusCode::kUnavailable, "the region is on another server meanwhile"};
  }
  if (!may_pass(outcome.status.code())) return finish(outcome.status);
  try_again(outcome.status);
}

void RegionCall::try_again(const Status& why) {
  if (time_left() <= pause_) return finish(why);
  ground_.map.forget(request_.table);
  is_fresh_ = true;
  // A random part of up to half off, so that clients do not return together.
  const auto half = static_cast<std::uint64_t>(pause_.count() / 2 + 1);
  const Duration pause = pause_ - Duration(ground_.random.below(half));
  pause_ = std::min(2 * pause_, ground_.options.pause_max);
  ground_.tasks.after(pause, [self = shared_from_this()] { self->attempt(); });
}

void RegionCall::finish(const Status& why) {
  using Kind = CallOutcome::Kind;
  done_({.kind = may_be_done_ ? Kind::kUnknown : Kind::kFailed,
         .status = why,
         .nonce = request_.options.nonce,
         .attempts = attempts_},
        {});
}

}  // namespace pv2::cluster

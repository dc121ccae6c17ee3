// SPDX-License-Identifier: Apache-2.0
//
// ClientLink: one connection of a client, from the hello to its end: which calls wait for an answer
// on it, and whether the other end is still heard. What becomes of a call without an answer is
// decided by its owner.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "id_table.h"
#include "pv2/rpc/frame_reader.h"
#include "pv2/rpc/rpc_frame.h"
#include "pv2/rpc/transport.h"

namespace pv2 {

class ClientLink;
struct OutgoingCall;

/// Hears of a link, on the loop's thread.
class ClientLinkOwner {
 public:
  virtual ~ClientLinkOwner() = default;
  virtual void on_open(ClientLink& link) = 0;
  /// The link has room again.
  virtual void on_room(ClientLink& link) = 0;
  virtual void on_reply(ClientLink& link, OutgoingCall& call, const RpcFrame& reply) = 0;
  virtual void on_note(OutgoingCall& call, std::string_view body) = 0;
  /// The server takes no more calls on this link; answers may still come.
  virtual void on_go_away(ClientLink& link, const Status& why) = 0;
  /// It is over. `unanswered`, in the order in which they were sent. The owner deletes the link,
  /// not within this call.
  virtual void on_end(ClientLink& link, const Status& why,
                      std::vector<OutgoingCall*> unanswered) = 0;
};

/// Used on the loop's thread.
class ClientLink final : public StreamListener {
 public:
  struct Settings {
    std::string_view token;
    std::size_t frame_bytes_max = 0;
    Duration ping_after{};
    Duration hello_timeout{};
  };
  ClientLink(Transport& transport, ClientLinkOwner& owner, std::unique_ptr<Stream> stream,
             const Settings& settings);
  ~ClientLink() override;

  /// Says hello.
  void start();
  [[nodiscard]] bool is_open() const noexcept { return phase_ == Phase::kOpen; }
  [[nodiscard]] bool was_open() const noexcept { return was_open_; }
  [[nodiscard]] bool has_ended() const noexcept { return stream_ == nullptr; }
  [[nodiscard]] bool has_room(std::size_t calls_max) const noexcept;
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_.size(); }
  [[nodiscard]] bool has_heard_since(SteadyTime time) const noexcept { return heard_at_ >= time; }
  /// The largest frame that the server takes.
  [[nodiscard]] std::size_t frame_bytes_max() const noexcept { return server_frame_bytes_max_; }

  /// Sends an attempt; flush() has to follow.
  void send(OutgoingCall& call, SteadyTime now, Duration attempt_timeout);
  /// The owner does not wait for this attempt any more.
  void cancel(OutgoingCall& call);
  /// An attempt was not answered in time. Asks whether the other end is there; ends the link if it
  /// was asked before and has not been heard since.
  void doubt(SteadyTime now, Duration patience);
  void flush();
  /// As if the connection had been lost.
  void end(const Status& why);

  void on_bytes(std::string_view bytes) override;
  void on_drained() override;
  void on_closed(const Status& why) override;

 private:
  enum class Phase : std::uint8_t { kHello, kOpen, kGoneAway };

  void take(const RpcFrame& frame);
  void take_reply(const RpcFrame& reply);
  void take_welcome(const RpcFrame& welcome);
  void take_go_away(const RpcFrame& go_away);
  void ping(SteadyTime now);
  void look();
  void look_later();
  [[nodiscard]] SteadyTime now() const { return transport_.clock().steady_now(); }

  Transport& transport_;
  ClientLinkOwner& owner_;
  std::unique_ptr<Stream> stream_;  // nullptr: ended
  const Settings settings_;
  Phase phase_ = Phase::kHello;
  bool was_open_ = false;
  FrameReader reader_;
  std::string out_;
  std::uint64_t last_id_ = 0;
  IdTable<OutgoingCall*> in_flight_;
  std::size_t server_calls_max_ = 0;
  std::size_t server_frame_bytes_max_ = 0;
  SteadyTime heard_at_;
  SteadyTime asked_at_;
  TimerId timer_;
  // A link may be ended by what it tells its owner; what it was doing then stops.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace pv2

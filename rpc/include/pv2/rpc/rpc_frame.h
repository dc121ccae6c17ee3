// SPDX-License-Identifier: Apache-2.0
//
// RpcFrame: the one message of the protocol, as bytes of protobuf's wire format within a frame of
// base/frame.h (checksum, length, bytes). rpc/pv2_rpc.proto describes the same for other languages;
// docs/rpc.md says who sends what, and when.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace pv2 {

/// The protocol's version, in hello and welcome.
inline constexpr std::uint64_t kRpcVersion = 1;

/// Sent; numbers are never reused.
enum class FrameKind : std::uint8_t {
  kHello = 1,    ///< The client's first frame: version, token.
  kWelcome = 2,  ///< The server's answer: version, its limits.
  kCall = 3,
  kReply = 4,   ///< The answer to a call; the last frame about it.
  kNote = 5,    ///< The server tells something about a call that still runs.
  kCancel = 6,  ///< The client does not wait for the reply any more.
  kPing = 7,
  kPong = 8,
  kGoAway = 9,  ///< The server takes no more calls from this connection, and says why.
};
/// "a call"; for messages.
[[nodiscard]] std::string_view to_string(FrameKind kind) noexcept;

/// What a reply says.
enum class ReplyKind : std::uint8_t {
  /// How the operation ended: status OK with a body, or a definite failure. Each copy of the call
  /// gets the same.
  kOutcome = 1,
  /// This copy of the call was not run. Whether another copy was, it does not say.
  kRefusal = 2,
};

/// The fields of all kinds; what a kind does not use is 0 or empty, and not sent. Decoded, the
/// texts are views into the bytes that they were read from.
struct RpcFrame {
  FrameKind kind = FrameKind::kPing;
  /// Of a call, and of all that is said about it. Chosen by the client, not 0, each once in a
  /// connection. In a ping and its pong: any number.
  std::uint64_t id = 0;
  // call
  std::string_view method{};
  Nonce nonce{};
  std::uint64_t expires_at_us = 0;  ///< The promise about the nonce: us since 1970; 0: none.
  std::uint64_t timeout_us = 0;     ///< How long the client will wait; 0: for ever.
  std::uint64_t session = 0;
  std::uint64_t number = 0;         ///< Of the request in its session.
  std::uint64_t first_unacked = 0;  ///< The client has all responses below this number.
  // call, reply, note
  std::string_view body{};
  // reply, go away
  ReplyKind reply = ReplyKind::kOutcome;
  StatusCode status = StatusCode::kOk;
  std::string_view message{};
  // hello, welcome
  std::uint64_t version = 0;
  std::string_view token{};
  std::uint64_t calls_max = 0;        ///< In flight, of one connection.
  std::uint64_t frame_bytes_max = 0;  ///< Of a frame that the server takes.
};

/// Appends `frame`, with its header.
void append_rpc_frame(std::string& out, const RpcFrame& frame);
/// The contents of one frame, without its header. kCorruption says what is wrong: no protobuf, a
/// field of another type, a number that no enum knows, a call without id or method.
[[nodiscard]] Result<RpcFrame> decode_rpc_frame(std::string_view bytes);

}  // namespace pv2

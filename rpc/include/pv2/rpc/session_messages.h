// SPDX-License-Identifier: Apache-2.0
//
// The methods by which a client opens, keeps and closes a session, and what their bodies hold
// (protobuf's wire format; rpc/pv2_rpc.proto). A heartbeat's body is empty: the frame of the call
// says which session, and up to where its responses have arrived.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pv2 {

inline constexpr std::string_view kSessionOpen = "pv2.session.open";
inline constexpr std::string_view kSessionHeartbeat = "pv2.session.heartbeat";
inline constexpr std::string_view kSessionClose = "pv2.session.close";

/// The body of a call of kSessionOpen. May be sent again: the same token gets the same session.
struct SessionOpenRequest {
  std::string token;
  std::uint32_t window = 0;  ///< 0: as the server likes.
  void fields(auto& f) {
    f(1, "token", token);
    f(2, "window", window);
  }
};

/// The body of its answer.
struct SessionOpenReply {
  std::uint64_t session = 0;
  std::uint32_t window = 0;
  void fields(auto& f) {
    f(1, "session", session);
    f(2, "window", window);
  }
};

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// The bytes under which a nonce remembers the outcome of a call: one for the status code, then the
// body, or the failure's message. Persisted.

#pragma once

#include <pv2/base/status.h>
#include <pv2/idempotency/client_sessions.h>

#include <optional>
#include <string>
#include <string_view>

namespace pv2 {

[[nodiscard]] inline std::string encode_response(const Response& response) {
  const Status status = response.status();
  std::string bytes(1, static_cast<char>(status.code()));
  bytes += response.ok() ? std::string_view(*response) : status.message();
  return bytes;
}

/// None: no outcome was encoded like this.
[[nodiscard]] inline std::optional<Response> decode_response(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto code = static_cast<StatusCode>(bytes[0]);
  bytes.remove_prefix(1);
  if (code > kStatusCodeMax) return std::nullopt;
  if (code == StatusCode::kOk) return Response(std::string(bytes));
  return Response(Status(code, std::string(bytes)));
}

}  // namespace pv2

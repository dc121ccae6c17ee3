// SPDX-License-Identifier: Apache-2.0
//
// The requests of the counter service, and how they are written as the body of a call: words with
// one blank between them, so that a person can read a trace. An answer is a decimal number: the
// value, or the length of the text, after the operation.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace counter {

inline constexpr std::size_t kNameBytesMax = 64;
inline constexpr std::size_t kPieceBytesMax = 4096;
/// Of a text, in one answer.
inline constexpr std::size_t kReadBytesMax = std::size_t{1} << 20;
/// Far from where sums would overflow.
inline constexpr std::uint64_t kAmountMax = 1'000'000'000;

/// "a 5" or "purse 5 1000": adds 5, unless the value would be above 1000 (a definite failure).
struct AddRequest {
  std::string name;
  std::uint64_t amount = 0;
  std::optional<std::uint64_t> not_above{};
};
[[nodiscard]] std::string to_body(const AddRequest& request);
[[nodiscard]] pv2::Result<AddRequest> parse_add(std::string_view body);

/// "diary <piece>": all that follows the first blank is appended.
struct AppendRequest {
  std::string name;
  std::string piece;
};
[[nodiscard]] std::string to_body(const AppendRequest& request);
[[nodiscard]] pv2::Result<AppendRequest> parse_append(std::string_view body);

/// "a", or "diary 4096": reads a text from that byte on, as far as one answer goes.
struct ReadRequest {
  std::string name;
  std::uint64_t from = 0;
};
[[nodiscard]] std::string to_body(const ReadRequest& request);
[[nodiscard]] pv2::Result<ReadRequest> parse_read(std::string_view body);

/// A decimal number and nothing else.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text);

}  // namespace counter

// SPDX-License-Identifier: Apache-2.0
//
// Words with blanks between them. What a peer sends is checked here, against the stated bounds.

#include "requests.h"

#include <fmt/format.h>

#include <charconv>

namespace counter {
namespace {

pv2::Status bad_request(std::string message) {
  return {pv2::StatusCode::kInvalidArgument, std::move(message)};
}

/// What is before the next blank; the rest is what is behind it.
std::string_view take_word(std::string_view& rest) {
  const std::size_t end = rest.find(' ');
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return word;
}

// A '/' would end the name in a row's key.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax && text.find('/') == std::string_view::npos;
}

pv2::Status bad_name() {
  return bad_request(fmt::format("a name has 1 to {} bytes, no blank and no '/'", kNameBytesMax));
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string to_body(const AddRequest& request) {
  std::string body = fmt::format("{} {}", request.name, request.amount);
  if (request.not_above) body += fmt::format(" {}", *request.not_above);
  return body;
}

pv2::Result<AddRequest> parse_add(std::string_view body) {
  AddRequest request;
  request.name = take_word(body);
  if (!is_name(request.name)) return bad_name();
  const auto amount = parse_number(take_word(body));
  if (!amount || *amount == 0 || *amount > kAmountMax) {
    return bad_request(fmt::format("an amount is a number from 1 to {}", kAmountMax));
  }
  request.amount = *amount;
  if (body.empty()) return request;
  request.not_above = parse_number(body);
  if (!request.not_above) return bad_request("a limit is a number");
  return request;
}

std::string to_body(const AppendRequest& request) { return request.name + ' ' + request.piece; }

pv2::Result<AppendRequest> parse_append(std::string_view body) {
  AppendRequest request;
  request.name = take_word(body);
  if (!is_name(request.name)) return bad_name();
  if (body.empty() || body.size() > kPieceBytesMax) {
    return bad_request(fmt::format("a piece of text has 1 to {} bytes", kPieceBytesMax));
  }
  request.piece = body;
  return request;
}

std::string to_body(const ReadRequest& request) {
  return fmt::format("{} {}", request.name, request.from);
}

pv2::Result<ReadRequest> parse_read(std::string_view body) {
  ReadRequest request;
  request.name = take_word(body);
  if (!is_name(request.name)) return bad_name();
  if (body.empty()) return request;
  const auto from = parse_number(body);
  if (!from) return bad_request("a text is read from a number of bytes on");
  request.from = *from;
  return request;
}

}  // namespace counter

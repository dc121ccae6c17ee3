// SPDX-License-Identifier: Apache-2.0
//
// The one message of the protocol, and the reader that cuts a stream into frames.

#include "pv2/rpc/rpc_frame.h"

#include <pv2/base/frame.h>
#include <pv2/base/random.h>
#include <pv2/base/wire.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/rpc/frame_reader.h"
#include "support/catch.h"

namespace pv2::testing::rpc_frame_test {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

/// One frame of each kind, with each field that the kind has.
std::vector<RpcFrame> each_kind() {
  return {
      {.kind = FrameKind::kHello, .version = kRpcVersion, .token = "0123456789abcdef"},
      {.kind = FrameKind::kWelcome,
       .version = kRpcVersion,
       .calls_max = 1024,
       .frame_bytes_max = kLargest},
      {.kind = FrameKind::kCall,
       .id = kLargest,
       .method = "increment",
       .nonce = {kLargest, 1},
       .expires_at_us = 1'700'000'000'000'000,
       .timeout_us = 2'000'000,
       .session = 3,
       .number = 4,
       .first_unacked = 2,
       .body = std::string_view("any\0bytes\xff", 10)},
      {.kind = FrameKind::kReply, .id = 1, .body = "answer"},
      {.kind = FrameKind::kReply,
       .id = 1,
       .status = StatusCode::kFailedPrecondition,
       .message = "the account is empty"},
      {.kind = FrameKind::kReply,
       .id = 1,
       .reply = ReplyKind::kRefusal,
       .status = StatusCode::kUnavailable,
       .message = "not now"},
      {.kind = FrameKind::kNote, .id = 1, .body = "half"},
      {.kind = FrameKind::kCancel, .id = 1},
      {.kind = FrameKind::kPing, .id = 7},
      {.kind = FrameKind::kPong, .id = 7},
      {.kind = FrameKind::kGoAway, .status = StatusCode::kStopping, .message = "the server stops"},
  };
}

std::string framed(const RpcFrame& frame) {
  std::string bytes;
  append_rpc_frame(bytes, frame);
  return bytes;
}

/// The bytes of the message, without the header.
std::string encoded(const RpcFrame& frame) { return framed(frame).substr(kFrameHeaderBytes); }

bool is_same(const RpcFrame& a, const RpcFrame& b) {
  return a.kind == b.kind && a.id == b.id && a.method == b.method && a.nonce == b.nonce &&
         a.expires_at_us == b.expires_at_us && a.timeout_us == b.timeout_us &&
         a.session == b.session && a.number == b.number && a.first_unacked == b.first_unacked &&
         a.body == b.body && a.status == b.status && a.message == b.message &&
         a.version == b.version && a.token == b.token && a.calls_max == b.calls_max &&
         a.frame_bytes_max == b.frame_bytes_max &&
         (a.kind != FrameKind::kReply || a.reply == b.reply);
}

/// What is said about bytes that are no frame of the protocol.
std::string complaint(std::string_view bytes) {
  const auto decoded = decode_rpc_frame(bytes);
  REQUIRE_FALSE(decoded.ok());
  CHECK(decoded.status().code() == StatusCode::kCorruption);
  return std::string(decoded.status().message());
}

/// The messages that a reader finds in pieces, and why it stops.
struct Read {
  std::vector<std::string> frames;
  Status end;
};
Read read_all(FrameReader& reader, const std::vector<std::string_view>& pieces) {
  Read read;
  for (const std::string_view piece : pieces) {
    reader.feed(piece);
    for (;;) {
      const FrameReader::Next next = reader.next();
      read.end = next.status;
      if (!next.has_frame) break;
      read.frames.emplace_back(next.bytes);
    }
    if (!read.end.ok()) break;
  }
  return read;
}

}  // namespace

TEST_CASE("a frame of each kind is read as it was written") {
  for (const RpcFrame& frame : each_kind()) {
    CAPTURE(to_string(frame.kind));
    const std::string bytes = encoded(frame);

    const auto decoded = decode_rpc_frame(bytes);

    REQUIRE(decoded.ok());
    CHECK(is_same(*decoded, frame));
  }
}

TEST_CASE("a field that is 0 or empty is not sent") {
  CHECK(encoded({.kind = FrameKind::kPing}).size() == 2);
  CHECK(encoded({.kind = FrameKind::kCancel, .id = 1}).size() == 4);
  // Kind, id, reply: a reply always says which it is.
  CHECK(encoded({.kind = FrameKind::kReply, .id = 1}).size() == 6);
  // A nonce has a fixed size, because its numbers are random.
  CHECK(encoded({.kind = FrameKind::kCall, .id = 1, .method = "m", .nonce = {1, 1}}).size() ==
        7 + 2 * 9);
}

TEST_CASE("a frame is read as it was written, whatever the sizes of its texts") {
  const std::string text(70'000, 'x');
  const auto of = [&](std::size_t size) { return std::string_view(text).substr(0, size); };
  for (const std::size_t method : {0, 1, 127, 128, 230, 256, 300}) {
    for (const std::size_t body : {0, 1, 15, 60, 127, 128, 200, 250, 256, 300, 70'000}) {
      for (const std::size_t message : {0, 1, 100, 128, 255, 600}) {
        const RpcFrame frame{.kind = FrameKind::kNote,
                             .id = kLargest,
                             .method = of(method),
                             .nonce = {kLargest, kLargest},
                             .expires_at_us = kLargest,
                             .timeout_us = kLargest,
                             .session = kLargest,
                             .number = kLargest,
                             .first_unacked = kLargest,
                             .body = of(body),
                             .message = of(message),
                             .version = kLargest,
                             .token = of(message),
                             .calls_max = kLargest,
                             .frame_bytes_max = kLargest};
        std::string written = "before";
        append_rpc_frame(written, frame);
        std::string_view rest = std::string_view(written).substr(6);
        const auto bytes = read_frame(rest);
        REQUIRE(bytes.has_value());
        REQUIRE(rest.empty());
        const auto decoded = decode_rpc_frame(*bytes);
        REQUIRE(decoded.ok());
        const bool is_same = decoded->id == kLargest && decoded->method == frame.method &&
                             decoded->nonce == frame.nonce && decoded->expires_at_us == kLargest &&
                             decoded->timeout_us == kLargest && decoded->session == kLargest &&
                             decoded->number == kLargest && decoded->first_unacked == kLargest &&
                             decoded->body == frame.body && decoded->message == frame.message &&
                             decoded->version == kLargest && decoded->token == frame.token &&
                             decoded->calls_max == kLargest && decoded->frame_bytes_max == kLargest;
        REQUIRE(is_same);
      }
    }
  }
}

TEST_CASE("a reader skips fields that it does not know") {
  std::string bytes = encoded({.kind = FrameKind::kCall, .id = 1, .method = "m", .body = "b"});
  append_varint_field(bytes, 19, 5);
  append_fixed64_field(bytes, 1000, 5);
  append_length_delimited(bytes, kWireNumberMax, "something new");

  const auto decoded = decode_rpc_frame(bytes);

  REQUIRE(decoded.ok());
  CHECK(is_same(*decoded, {.kind = FrameKind::kCall, .id = 1, .method = "m", .body = "b"}));
}

TEST_CASE("a status code that is not known yet is read as a failure without a name") {
  std::string bytes = encoded({.kind = FrameKind::kReply, .id = 1});
  append_varint_field(bytes, 13, 200);

  const auto decoded = decode_rpc_frame(bytes);

  REQUIRE(decoded.ok());
  CHECK(decoded->status == StatusCode::kInternal);
}

TEST_CASE("what is wrong with a message is said") {
  const auto says = [](const std::string& part) {
    return ContainsSubstring("not a frame of this protocol: " + part);
  };
  const auto with = [](RpcFrame frame, std::uint32_t number, std::uint64_t value) {
    std::string bytes = encoded(frame);
    append_varint_field(bytes, number, value);
    return bytes;
  };
  const RpcFrame reply{.kind = FrameKind::kReply, .id = 1};

  CHECK_THAT(complaint(""), says("its kind is 0"));
  CHECK_THAT(complaint(with({.kind = FrameKind::kPing}, 1, 10)), says("its kind is 10"));
  CHECK_THAT(complaint(with({.kind = FrameKind::kPing}, 1, 256)), says("a number that no version"));
  CHECK_THAT(complaint(with(reply, 12, 1000)), says("a number that no version knows"));
  CHECK_THAT(complaint(with(reply, 12, 0)), says("a reply that is neither"));
  CHECK_THAT(complaint(with(reply, 12, 3)), says("a reply that is neither"));
  CHECK_THAT(complaint(with(reply, 12, 2)), says("a refusal with the status OK"));
  CHECK_THAT(complaint(encoded({.kind = FrameKind::kReply})), says("a reply without an id"));
  CHECK_THAT(complaint(encoded({.kind = FrameKind::kCall, .method = "m"})),
             says("a call without an id"));
  CHECK_THAT(complaint(encoded({.kind = FrameKind::kCall, .id = 1})),
             says("a call without a method"));
  CHECK_THAT(complaint(encoded({.kind = FrameKind::kNote})), says("a note without an id"));
  CHECK_THAT(complaint(encoded({.kind = FrameKind::kCancel})), says("a cancel without an id"));
  CHECK_THAT(complaint(encoded({.kind = FrameKind::kGoAway})), says("a go-away with the status"));
}

TEST_CASE("bytes that are no protobuf, or fields of another type, are refused") {
  for (const RpcFrame& frame : each_kind()) {
    const std::string bytes = encoded(frame);
    CHECK_FALSE(decode_rpc_frame(bytes + '\x08').ok());                   // a tag without a value
    CHECK_FALSE(decode_rpc_frame(bytes + std::string(11, '\xff')).ok());  // a varint without an end
  }
  const std::string call = encoded({.kind = FrameKind::kCall, .id = 1, .method = "m"});
  std::string id_as_bytes = call;
  append_length_delimited(id_as_bytes, 2, "1");
  CHECK_THAT(complaint(id_as_bytes), ContainsSubstring("2"));
  std::string method_as_number = call;
  append_varint_field(method_as_number, 3, 1);
  CHECK_THAT(complaint(method_as_number), ContainsSubstring("3"));
  std::string nonce_as_varint = call;
  append_varint_field(nonce_as_varint, 5, 1);
  CHECK_THAT(complaint(nonce_as_varint), ContainsSubstring("5"));
}

TEST_CASE("the reader finds the same frames wherever the stream is cut") {
  std::string stream;
  std::vector<std::string> expected;
  for (const RpcFrame& frame : each_kind()) {
    append_rpc_frame(stream, frame);
    expected.push_back(encoded(frame));
  }
  const std::string_view whole = stream;

  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    FrameReader reader(4096);
    const Read read = read_all(reader, {whole.substr(0, cut), whole.substr(cut)});
    REQUIRE(read.end.ok());
    REQUIRE(read.frames == expected);
    REQUIRE(reader.kept() == 0);
  }
  FrameReader byte_by_byte(4096);
  std::vector<std::string_view> bytes;
  for (std::size_t i = 0; i < whole.size(); ++i) bytes.push_back(whole.substr(i, 1));
  CHECK(read_all(byte_by_byte, bytes).frames == expected);

  Random random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string_view> pieces;
    for (std::string_view left = whole; !left.empty();) {
      const std::size_t size = random.below(left.size() + 1);
      pieces.push_back(left.substr(0, size));
      left.remove_prefix(size);
    }
    FrameReader reader(4096);
    REQUIRE(read_all(reader, pieces).frames == expected);
  }
}

TEST_CASE("the reader keeps the beginning of a frame that has not arrived whole") {
  const std::string bytes = framed({.kind = FrameKind::kNote, .id = 1, .body = "half"});
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    FrameReader reader(4096);
    CHECK(read_all(reader, {std::string_view(bytes).substr(0, cut)}).frames.empty());
    CHECK(reader.kept() == cut);
  }
}

TEST_CASE("the reader refuses a frame that is too large before it keeps any of it") {
  const std::string body(4097, 'x');
  std::string bytes;
  append_frame(bytes, body);
  const std::string_view whole = bytes;

  FrameReader at_once(4096);
  const Read read = read_all(at_once, {whole});
  CHECK(read.frames.empty());
  CHECK(read.end.code() == StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(read.end.message()), ContainsSubstring("4097 bytes, and 4096 are"));
  CHECK(at_once.kept() == 0);

  FrameReader in_pieces(4096);
  CHECK(read_all(in_pieces, {whole.substr(0, 5), whole.substr(5, 3)}).end.code() ==
        StatusCode::kResourceExhausted);
  CHECK(in_pieces.kept() <= kFrameHeaderBytes);

  FrameReader with_room(4096);
  with_room.set_limit(4097);
  CHECK(read_all(with_room, {whole}).frames == std::vector{body});
}

TEST_CASE("the reader refuses a frame whose bytes are not those of its checksum") {
  const std::string good = framed({.kind = FrameKind::kPing, .id = 1});
  for (std::size_t place = 0; place < good.size(); ++place) {
    if (place >= 4 && place < 8) continue;  // the length: then another frame is waited for
    std::string bytes = good + good;
    bytes[good.size() + place] ^= 0x10;
    for (const std::size_t cut : {std::size_t{0}, good.size() + 3, bytes.size() - 1}) {
      CAPTURE(place, cut);
      FrameReader reader(4096);
      const Read read = read_all(
          reader, {std::string_view(bytes).substr(0, cut), std::string_view(bytes).substr(cut)});
      CHECK(read.frames.size() == 1);
      CHECK(read.end.code() == StatusCode::kCorruption);
      CHECK_THAT(std::string(read.end.message()), ContainsSubstring("checksum"));
    }
  }
  std::string shorter = good;
  --shorter[4];
  FrameReader reader(4096);
  CHECK(read_all(reader, {shorter}).end.code() == StatusCode::kCorruption);
}

}  // namespace pv2::testing::rpc_frame_test

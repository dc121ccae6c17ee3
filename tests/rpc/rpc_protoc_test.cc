// SPDX-License-Identifier: Apache-2.0
//
// protoc reads our frames by pv2_rpc.proto, and we read what it writes: so the file says what the
// code does. If protoc is not installed, the test says so and passes.

#include <pv2/base/fields.h>
#include <pv2/base/frame.h>
#include <pv2/base/random.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "pv2/rpc/rpc_frame.h"
#include "pv2/rpc/session_messages.h"
#include "support/catch.h"
#include "support/protoc.h"

namespace pv2::testing::rpc_protoc_test {
namespace {

const std::string kFrame = "pv2.rpc.Frame";

std::string the_proto() {
  std::ifstream file(PV2_SOURCE_DIR "/rpc/pv2_rpc.proto");
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string encoded(const RpcFrame& frame) {
  std::string bytes;
  append_rpc_frame(bytes, frame);
  return bytes.substr(kFrameHeaderBytes);
}

/// Every field, whatever its kind would use.
RpcFrame full_frame(FrameKind kind) {
  return {.kind = kind,
          .id = 2,
          .method = "\xff method",
          .nonce = {5, 6},
          .expires_at_us = 7,
          .timeout_us = 8,
          .session = 9,
          .number = 10,
          .first_unacked = 11,
          .body = "\xff body",
          .reply = ReplyKind::kRefusal,
          .status = StatusCode::kBusy,
          .message = "\xff message",
          .version = 15,
          .token = "\xff token",
          .calls_max = 17,
          .frame_bytes_max = 18};
}

/// Numbers of all lengths, and texts of any bytes.
class AnyFrame {
 public:
  explicit AnyFrame(std::uint64_t seed) : random_(seed) {}

  RpcFrame next() {
    for (std::string& text : texts_) text = any_text();
    RpcFrame frame = full_frame(static_cast<FrameKind>(1 + random_.below(9)));
    for (std::uint64_t* number :
         {&frame.id, &frame.nonce.group, &frame.nonce.value, &frame.expires_at_us,
          &frame.timeout_us, &frame.session, &frame.number, &frame.first_unacked, &frame.version,
          &frame.calls_max, &frame.frame_bytes_max}) {
      *number = any_number();
    }
    frame.method = texts_[0];
    frame.body = texts_[1];
    frame.message = texts_[2];
    frame.token = texts_[3];
    frame.status =
        static_cast<StatusCode>(1 + random_.below(static_cast<std::uint64_t>(kStatusCodeMax)));
    return frame;
  }

 private:
  std::uint64_t any_number() { return 1 + (random_.next() >> (1 + random_.below(63))); }
  std::string any_text() {
    std::string text(1 + random_.below(200), '\0');
    for (char& byte : text) byte = static_cast<char>(random_.below(256));
    return text;
  }

  Random random_;
  std::array<std::string, 4> texts_;
};

}  // namespace

TEST_CASE("protoc reads the fields of a frame by their names and values") {
  if (!has_protoc()) return;
  Protoc protoc(the_proto());

  const std::string text = protoc.text_of(kFrame, encoded(full_frame(FrameKind::kReply)));

  for (const char* line :
       {"kind: FRAME_KIND_REPLY", "id: 2", R"(method: "\377 method")", R"(body: "\377 body")",
        "nonce_group: 5", "nonce_value: 6", "expires_at_us: 7", "timeout_us: 8", "session: 9",
        "number: 10", "first_unacked: 11", "reply: REPLY_KIND_REFUSAL", "status: STATUS_BUSY",
        R"(message: "\377 message")", "version: 15", R"(token: "\377 token")", "calls_max: 17",
        "frame_bytes_max: 18"}) {
    CHECK_THAT(text, ContainsSubstring(line));
  }
}

TEST_CASE("each kind and each status code has its name in the proto file") {
  if (!has_protoc()) return;
  Protoc protoc(the_proto());
  const std::vector<std::string> kinds{"HELLO",  "WELCOME", "CALL", "REPLY",  "NOTE",
                                       "CANCEL", "PING",    "PONG", "GO_AWAY"};
  std::string all;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string bytes = encoded({.kind = static_cast<FrameKind>(i + 1), .id = 1});
    CHECK_THAT(protoc.text_of(kFrame, bytes), ContainsSubstring("kind: FRAME_KIND_" + kinds[i]));
  }
  for (unsigned code = 1; code <= static_cast<unsigned>(kStatusCodeMax); ++code) {
    const auto status = static_cast<StatusCode>(code);
    const std::string text = protoc.text_of(kFrame, encoded({.status = status}));
    CHECK_THAT(text, ContainsSubstring("status: STATUS_" + std::string(to_string(status))));
  }
}

TEST_CASE("protoc writes the same bytes for the same frame") {
  if (!has_protoc()) return;
  Protoc protoc(the_proto());
  AnyFrame frames(3);
  for (int i = 0; i < 30; ++i) {
    const std::string ours = encoded(frames.next());

    const std::string theirs = protoc.bytes_of(kFrame, protoc.text_of(kFrame, ours));

    REQUIRE((theirs == ours));  // in brackets: the difference is unreadable as text
  }
}

TEST_CASE("a frame that protoc has written is read") {
  if (!has_protoc()) return;
  Protoc protoc(the_proto());

  const std::string bytes = protoc.bytes_of(
      kFrame,
      R"(kind: FRAME_KIND_CALL id: 18446744073709551615 method: "append" body: "\000\377"
         nonce_group: 18446744073709551615 nonce_value: 1 expires_at_us: 1700000000000000
         timeout_us: 2000000 session: 3 number: 4 first_unacked: 2)");
  const auto frame = decode_rpc_frame(bytes);

  REQUIRE(frame.ok());
  CHECK(frame->kind == FrameKind::kCall);
  CHECK(frame->id == 0xFFFF'FFFF'FFFF'FFFF);
  CHECK(frame->method == "append");
  CHECK(frame->body == std::string_view("\0\xff", 2));
  CHECK(frame->nonce == Nonce{0xFFFF'FFFF'FFFF'FFFF, 1});
  CHECK(frame->expires_at_us == 1'700'000'000'000'000);
  CHECK(frame->timeout_us == 2'000'000);
  CHECK(frame->session == 3);
  CHECK(frame->number == 4);
  CHECK(frame->first_unacked == 2);
}

TEST_CASE("the bodies of the session methods are those of the proto file") {
  if (!has_protoc()) return;
  Protoc protoc(the_proto());
  SessionOpenRequest request{.token = "\xff token", .window = 8};
  SessionOpenReply reply{.session = 1ULL << 40, .window = 4};
  std::string ours;
  encode_fields(request, FieldSelection::kAll, ours);
  const std::string request_name = "pv2.rpc.SessionOpenRequest";
  CHECK(protoc.bytes_of(request_name, protoc.text_of(request_name, ours)) == ours);
  CHECK_THAT(protoc.text_of(request_name, ours), ContainsSubstring("window: 8"));

  ours.clear();
  encode_fields(reply, FieldSelection::kAll, ours);
  const std::string reply_name = "pv2.rpc.SessionOpenReply";
  CHECK(protoc.bytes_of(reply_name, protoc.text_of(reply_name, ours)) == ours);

  SessionOpenRequest read{.token = "", .window = 9};
  const std::string theirs = protoc.bytes_of(request_name, R"(token: "t")");
  REQUIRE(decode_fields(read, FieldSelection::kAll, theirs).ok());
  CHECK(read.token == "t");
}

}  // namespace pv2::testing::rpc_protoc_test

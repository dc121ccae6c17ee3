// SPDX-License-Identifier: Apache-2.0
//
// Writes and reads the fields of RpcFrame. A field that is 0 or empty is not written, as in
// proto3; numbers that this version does not know are skipped.

#include "pv2/rpc/rpc_frame.h"

#include <fmt/format.h>
#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include <cstring>
#include <utility>

namespace pv2 {
namespace {

// The numbers of rpc/pv2_rpc.proto. Never reused.
enum Field : std::uint32_t {
  kKind = 1,
  kId = 2,
  kMethod = 3,
  kBody = 4,
  kNonceGroup = 5,
  kNonceValue = 6,
  kExpiresAt = 7,
  kTimeout = 8,
  kSession = 9,
  kNumber = 10,
  kFirstUnacked = 11,
  kReply = 12,
  kStatus = 13,
  kMessage = 14,
  kVersion = 15,
  kToken = 16,
  kCallsMax = 17,
  kFrameBytesMax = 18,
};

/// Collects the fields of a frame, so that most frames reach the string in one piece. Owned by one
/// thread.
class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}

  void put(Field field, std::uint64_t value) {
    if (value == 0) return;
    make_room(2 * kVarintBytesMax);
    varint(make_tag(field, WireType::kVarint));
    varint(value);
  }
  void put_fixed(Field field, std::uint64_t value) {
    if (value == 0) return;
    make_room(kVarintBytesMax + sizeof value);
    varint(make_tag(field, WireType::kFixed64));
    copy(&value, sizeof value);
  }
  void put(Field field, std::string_view bytes) {
    if (bytes.empty()) return;
    make_room(2 * kVarintBytesMax);
    varint(make_tag(field, WireType::kBytes));
    varint(bytes.size());
    if (bytes.size() <= sizeof bytes_ - size_) return copy(bytes.data(), bytes.size());
    flush();
    out_.append(bytes);
  }
  void flush() {
    out_.append(bytes_, size_);
    size_ = 0;
  }

 private:
  void make_room(std::size_t size) {
    if (size > sizeof bytes_ - size_) flush();
  }
  void varint(std::uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) bytes_[size_++] = static_cast<char>(value | 0x80);
    bytes_[size_++] = static_cast<char>(value);
  }
  void copy(const void* from, std::size_t size) noexcept {
    std::memcpy(bytes_ + size_, from, size);
    size_ += size;
  }

  std::string& out_;
  char bytes_[256];  // NOLINT: filled before it is read
  std::size_t size_ = 0;
};

Status malformed(std::string_view what) {
  return {StatusCode::kCorruption, fmt::format("not a frame of this protocol: {}", what)};
}

// What a kind cannot do without.
Status check(const RpcFrame& frame) {
  switch (frame.kind) {
    case FrameKind::kCall:
      if (frame.id == 0) return malformed("a call without an id");
      if (frame.method.empty()) return malformed("a call without a method");
      return {};
    case FrameKind::kReply:
      if (frame.id == 0) return malformed("a reply without an id");
      if (frame.reply != ReplyKind::kOutcome && frame.reply != ReplyKind::kRefusal) {
        return malformed("a reply that is neither an outcome nor a refusal");
      }
      if (frame.reply == ReplyKind::kRefusal && frame.status == StatusCode::kOk) {
        return malformed("a refusal with the status OK");
      }
      return {};
    case FrameKind::kNote:
    case FrameKind::kCancel:
      if (frame.id == 0) return malformed(fmt::format("{} without an id", to_string(frame.kind)));
      return {};
    case FrameKind::kGoAway:
      if (frame.status == StatusCode::kOk) return malformed("a go-away with the status OK");
      return {};
    case FrameKind::kHello:
    case FrameKind::kWelcome:
    case FrameKind::kPing:
    case FrameKind::kPong:
      return {};
  }
  return malformed(fmt::format("its kind is {}", static_cast<unsigned>(frame.kind)));
}

}  // namespace

std::string_view to_string(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::kHello:
      return "a hello";
    case FrameKind::kWelcome:
      return "a welcome";
    case FrameKind::kCall:
      return "a call";
    case FrameKind::kReply:
      return "a reply";
    case FrameKind::kNote:
      return "a note";
    case FrameKind::kCancel:
      return "a cancel";
    case FrameKind::kPing:
      return "a ping";
    case FrameKind::kPong:
      return "a pong";
    case FrameKind::kGoAway:
      return "a go-away";
  }
  return "a frame of an unknown kind";
}

void append_rpc_frame(std::string& out, const RpcFrame& frame) {
  FrameWriter writer(out);
  FieldWriter fields(out);
  fields.put(kKind, static_cast<std::uint64_t>(frame.kind));
  fields.put(kId, frame.id);
  fields.put(kMethod, frame.method);
  fields.put(kBody, frame.body);
  fields.put_fixed(kNonceGroup, frame.nonce.group);
  fields.put_fixed(kNonceValue, frame.nonce.value);
  fields.put(kExpiresAt, frame.expires_at_us);
  fields.put(kTimeout, frame.timeout_us);
  fields.put(kSession, frame.session);
  fields.put(kNumber, frame.number);
  fields.put(kFirstUnacked, frame.first_unacked);
  if (frame.kind == FrameKind::kReply) fields.put(kReply, static_cast<std::uint64_t>(frame.reply));
  fields.put(kStatus, static_cast<std::uint64_t>(frame.status));
  fields.put(kMessage, frame.message);
  fields.put(kVersion, frame.version);
  fields.put(kToken, frame.token);
  fields.put(kCallsMax, frame.calls_max);
  fields.put(kFrameBytesMax, frame.frame_bytes_max);
  fields.flush();
  writer.finish();
}

Result<RpcFrame> decode_rpc_frame(std::string_view bytes) {
  Result<RpcFrame> decoded(RpcFrame{});  // filled where it is returned, because RpcFrame is large
  RpcFrame& frame = *decoded;
  std::uint64_t kind = 0;
  std::uint64_t reply = 0;
  std::uint64_t status = 0;
  WireReader reader(bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case kKind:
        kind = reader.varint();
        break;
      case kId:
        frame.id = reader.varint();
        break;
      case kMethod:
        frame.method = reader.bytes();
        break;
      case kBody:
        frame.body = reader.bytes();
        break;
      case kNonceGroup:
        frame.nonce.group = reader.fixed64();
        break;
      case kNonceValue:
        frame.nonce.value = reader.fixed64();
        break;
      case kExpiresAt:
        frame.expires_at_us = reader.varint();
        break;
      case kTimeout:
        frame.timeout_us = reader.varint();
        break;
      case kSession:
        frame.session = reader.varint();
        break;
      case kNumber:
        frame.number = reader.varint();
        break;
      case kFirstUnacked:
        frame.first_unacked = reader.varint();
        break;
      case kReply:
        reply = reader.varint();
        break;
      case kStatus:
        status = reader.varint();
        break;
      case kMessage:
        frame.message = reader.bytes();
        break;
      case kVersion:
        frame.version = reader.varint();
        break;
      case kToken:
        frame.token = reader.bytes();
        break;
      case kCallsMax:
        frame.calls_max = reader.varint();
        break;
      case kFrameBytesMax:
        frame.frame_bytes_max = reader.varint();
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) {
    decoded = malformed(reader.status().message());
    return decoded;
  }
  if (kind > 0xFF || reply > 0xFF) {
    decoded = malformed("a number that no version knows");
    return decoded;
  }
  frame.kind = static_cast<FrameKind>(kind);
  frame.reply = static_cast<ReplyKind>(reply);
  // A newer server may know more codes: to this client, such a failure is one without a name.
  frame.status = status <= static_cast<std::uint64_t>(kStatusCodeMax)
                     ? static_cast<StatusCode>(status)
                     : StatusCode::kInternal;
  if (Status wrong = check(frame); !wrong.ok()) decoded = std::move(wrong);
  return decoded;
}

}  // namespace pv2

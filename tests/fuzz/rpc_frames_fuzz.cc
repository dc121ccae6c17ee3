// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the protocol of rpc/ on a network in memory. The input is read as instructions, which make
// a stream of bytes (frames with a good checksum among others, since no fuzzer guesses one) and say
// where it is cut, what the other side does meanwhile, and when time passes. The same instructions
// are given to three readers:
//
//   - FrameReader and the decoder: the frames are the same however the stream is cut;
//   - a server: in the end it keeps no connection, no call and no byte of this peer;
//   - a client, as what its server sends: each call has one outcome when its time is over.

#include <pv2/base/assert.h>
#include <pv2/base/clock.h>
#include <pv2/base/frame.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/rpc/frame_reader.h"
#include "pv2/rpc/memory_transport.h"
#include "pv2/rpc/rpc_client.h"
#include "pv2/rpc/rpc_frame.h"
#include "pv2/rpc/rpc_server.h"

namespace {

using namespace pv2;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The smallest that a server may have, so that a short input can exceed it.
constexpr std::size_t kFrameBytesMax = 4096;
// More things to do at one time than any input of 4096 bytes can ask for.
constexpr std::size_t kTurnsMax = 200'000;

/// Reads the input as instructions.
class Script {
 public:
  explicit Script(std::string_view input) : left_(input) {}
  [[nodiscard]] bool empty() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const auto first = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    return first;
  }
  std::string bytes() {
    const std::size_t wanted = byte();
    const std::size_t size = std::min(wanted, left_.size());
    std::string taken(left_.substr(0, size));
    left_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view left_;
};

std::string_view method_of(std::uint8_t chosen) {
  constexpr std::string_view kMethods[] = {"echo", "keep", "drop", "throw", "nothing"};
  return kMethods[chosen % std::size(kMethods)];
}

/// A frame of any kind with any fields; its texts are views into `text`.
RpcFrame any_frame(Script& script, std::string& text) {
  RpcFrame frame;
  frame.kind = static_cast<FrameKind>(script.byte() % 10);
  frame.id = script.byte() % 8;
  const std::uint8_t has = script.byte();
  text = script.bytes();
  frame.method = method_of(has);
  frame.body = text;
  if ((has & 1) != 0) frame.status = static_cast<StatusCode>(script.byte() % 24);
  if ((has & 2) != 0) frame.nonce = {1, script.byte()};
  if ((has & 4) != 0) frame.timeout_us = std::uint64_t{1} << (script.byte() % 64);
  if ((has & 8) != 0) frame.expires_at_us = std::uint64_t{1} << (script.byte() % 64);
  if ((has & 16) != 0) frame.reply = static_cast<ReplyKind>(script.byte() % 4);
  if ((has & 32) != 0) frame.id = std::uint64_t{1} << (script.byte() % 64);
  if ((has & 64) != 0) frame.version = script.byte() % 3;
  if ((has & 128) != 0) {
    frame.calls_max = script.byte() % 3;
    frame.frame_bytes_max = std::uint64_t{1} << (script.byte() % 64);
  }
  return frame;
}

/// One thing that the scripted side does.
struct Act {
  enum class Kind : std::uint8_t { kSend, kTime, kOther };
  Kind kind = Kind::kSend;
  std::string bytes{};
  Duration time{};
  std::uint8_t choice = 0;
};

/// The stream is cut between two acts.
std::vector<Act> read_acts(Script script) {
  std::vector<Act> acts;
  std::string piece;
  std::string text;
  const auto cut = [&] {
    if (!piece.empty()) acts.push_back({.bytes = std::exchange(piece, {})});
  };
  while (!script.empty()) {
    switch (script.byte() % 8) {
      case 0:
        piece += script.bytes();
        break;
      case 1:
        append_frame(piece, script.bytes());
        break;
      case 2:
      case 3:
        append_rpc_frame(piece, any_frame(script, text));
        break;
      case 4: {  // a large one, or one that is cut in the middle
        text.assign(std::size_t{script.byte()} * 20, 'x');
        append_rpc_frame(
            piece, {.kind = FrameKind::kCall, .id = script.byte(), .method = "echo", .body = text});
        piece.resize(piece.size() - std::min<std::size_t>(piece.size(), script.byte() / 8));
        cut();
        break;
      }
      case 5:
        cut();
        break;
      case 6:
        cut();
        acts.push_back(
            {.kind = Act::Kind::kTime, .time = milliseconds(10) * (1 + int{script.byte()})});
        break;
      default:
        cut();
        acts.push_back({.kind = Act::Kind::kOther, .choice = script.byte()});
        break;
    }
  }
  cut();
  return acts;
}

// --- the reader

struct Read {
  std::vector<std::string> frames;
  StatusCode end = StatusCode::kOk;
  friend bool operator==(const Read&, const Read&) = default;
};

void check_decoding(std::string_view bytes) {
  const auto frame = decode_rpc_frame(bytes);
  if (!frame.ok()) {
    PV2_ASSERT(!frame.status().message().empty(), "a refusal has a reason");
    return;
  }
  std::string written;
  append_rpc_frame(written, *frame);
  std::string_view rest = written;
  const auto again = decode_rpc_frame(*read_frame(rest));
  PV2_ASSERT(again.ok() && rest.empty(), "what was decoded can be written");
  std::string twice;
  append_rpc_frame(twice, *again);
  PV2_ASSERT(written == twice, "a frame is the same after a round trip");
}

void read_piece(FrameReader& reader, std::string_view piece, Read& into) {
  reader.feed(piece);
  while (into.end == StatusCode::kOk) {
    const FrameReader::Next next = reader.next();
    into.end = next.status.code();
    if (!next.has_frame) break;
    into.frames.emplace_back(next.bytes);
  }
  PV2_ASSERT(reader.kept() <= kFrameBytesMax + kFrameHeaderBytes, "a reader keeps one frame");
}

void fuzz_reader(const std::vector<Act>& acts) {
  std::string whole;
  Read cut;
  FrameReader reader(kFrameBytesMax);
  for (const Act& act : acts) {
    whole += act.bytes;
    if (cut.end == StatusCode::kOk) read_piece(reader, act.bytes, cut);
  }
  Read at_once;
  FrameReader other(kFrameBytesMax);
  read_piece(other, whole, at_once);
  PV2_ASSERT(cut == at_once, "the frames of a stream do not depend on where it is cut");
  for (const std::string& frame : cut.frames) check_decoding(frame);
}

// --- a network

struct Net {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(clock);

  void run() const {
    PV2_ASSERT(transport->run_until_idle(kTurnsMax) < kTurnsMax, "the network comes to rest");
  }
  void run_for(Duration time) const {
    const SteadyTime end = clock->steady_now() + time;
    for (run(); clock->steady_now() < end; run()) {
      const SteadyTime next = std::min(transport->next_timer().value_or(end), end);
      clock->advance(std::max(next - clock->steady_now(), SteadyTime::duration(1000)));
    }
  }
};

/// A peer that only says what it is told to say.
class Peer final : public StreamListener {
 public:
  explicit Peer(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {
    stream_->start(*this);
  }
  void send(std::string bytes) {
    if (stream_ != nullptr) stream_->send(bytes);
  }
  void do_something(std::uint8_t choice) {
    if (stream_ == nullptr) return;
    switch (choice % 4) {
      case 0:
        return stream_->pause();
      case 1:
        return stream_->resume();
      case 2:
        return stream_.reset();
      default:
        return;
    }
  }
  void on_bytes(std::string_view) override {}
  void on_drained() override {}
  void on_closed(const Status&) override { stream_.reset(); }

 private:
  std::unique_ptr<Stream> stream_;
};

std::string hello() {
  std::string bytes;
  append_rpc_frame(bytes, {.kind = FrameKind::kHello, .version = kRpcVersion});
  return bytes;
}

// --- a server

struct ServerUnderTest {
  Net& net;
  std::vector<IncomingCall> kept{};
  std::size_t cancelled = 0;
  std::unique_ptr<RpcServer> server{};

  void open() {
    RpcServerOptions options{.transport = net.transport, .address = "server"};
    options.methods["echo"] = [](IncomingCall call) { call.reply(call.body()); };
    options.methods["keep"] = [this](IncomingCall call) {
      call.on_cancel([this](const Status&) { ++cancelled; });
      kept.push_back(std::move(call));
    };
    options.methods["drop"] = [](const IncomingCall&) {};
    options.methods["throw"] = [](const IncomingCall&) { throw std::runtime_error("thrown"); };
    options.limits = {.frame_bytes_max = kFrameBytesMax,
                      .calls_max = 4,
                      .unsent_bytes_max = 2000,
                      .memory_max = 20'000,
                      .hello_timeout = seconds(1),
                      .frame_timeout = seconds(1),
                      .stalled_timeout = seconds(1),
                      .idle_timeout = seconds(2)};
    options.log = [](LogLevel, std::string_view) {};
    auto opened = RpcServer::open(std::move(options));
    PV2_ASSERT(opened.ok(), "the server listens");
    server = *std::move(opened);
  }
  /// The handler of the oldest kept call does something about it.
  void handle(std::uint8_t choice) {
    if (kept.empty()) return;
    IncomingCall& call = kept.front();
    switch (choice % 5) {
      case 0:
        call.reply(std::string(std::size_t{choice} * 20, 'y'));
        break;
      case 1:
        call.refuse({StatusCode::kUnavailable, "not now"});
        break;
      case 2:
        static_cast<void>(call.note(std::string(std::size_t{choice} * 20, 'z')));
        return;
      case 3:
        call.fail({StatusCode::kAborted, "never"});
        break;
      default:
        break;
    }
    kept.erase(kept.begin());
  }
};

void fuzz_server(const std::vector<Act>& acts, bool says_hello) {
  Net net;
  ServerUnderTest under_test{.net = net};
  under_test.open();
  std::unique_ptr<Peer> peer;
  net.transport->connect("server", seconds(1), [&](Result<std::unique_ptr<Stream>> stream) {
    peer = std::make_unique<Peer>(*std::move(stream));
  });
  net.run();
  if (says_hello) peer->send(hello());
  for (const Act& act : acts) {
    if (act.kind == Act::Kind::kSend) peer->send(act.bytes);
    if (act.kind == Act::Kind::kTime) net.run_for(act.time);
    if (act.kind == Act::Kind::kOther && act.choice % 2 == 0) peer->do_something(act.choice / 2);
    if (act.kind == Act::Kind::kOther && act.choice % 2 == 1) under_test.handle(act.choice / 2);
    net.run();
    const RpcServerCounts counts = under_test.server->counts();
    PV2_ASSERT(counts.calls_in_flight == under_test.kept.size(), "only kept calls are in flight");
    PV2_ASSERT(counts.memory < 20'000 + 3 * kFrameBytesMax, "memory is bounded");
  }
  under_test.kept.clear();
  net.run_for(seconds(10));

  const RpcServerCounts counts = under_test.server->counts();
  PV2_ASSERT(counts.connections == 0, "no connection stays");
  PV2_ASSERT(counts.calls_in_flight == 0, "no call stays");
  PV2_ASSERT(counts.memory == 0, "no memory stays counted");
}

// --- a client

struct Outcomes {
  std::size_t ended = 0;
  std::size_t told = 0;
};

void fuzz_client(const std::vector<Act>& acts, bool says_welcome) {
  Net net;
  std::vector<std::unique_ptr<Peer>> peers;
  const auto acceptor = net.transport->listen("server", [&](std::unique_ptr<Stream> stream) {
    peers.push_back(std::make_unique<Peer>(std::move(stream)));
    std::string welcome;
    append_rpc_frame(welcome, {.kind = FrameKind::kWelcome,
                               .version = kRpcVersion,
                               .calls_max = 3,
                               .frame_bytes_max = kFrameBytesMax});
    if (says_welcome) peers.back()->send(welcome);
    // Each connection after the first begins as that one did.
    for (const Act& act : acts) {
      if (act.kind != Act::Kind::kSend || peers.size() == 1) break;
      peers.back()->send(act.bytes);
    }
  });
  auto client = *RpcClient::open({.transport = net.transport,
                                  .addresses = {"server"},
                                  .calls_max = 4,
                                  .frame_bytes_max = kFrameBytesMax,
                                  .connect_timeout = seconds(1),
                                  .attempt_timeout = milliseconds(500),
                                  .ping_after = seconds(1),
                                  .seed = 1});
  Outcomes outcomes;
  std::vector<CallTicket> tickets;
  const auto call = [&](CallOptions options) {
    options.timeout = seconds(3);
    options.on_note = [&](std::string_view) { ++outcomes.told; };
    const auto has_ended = std::make_shared<bool>(false);
    tickets.push_back(client->call("keep", "body", options, [&, has_ended](CallOutcome outcome) {
      PV2_ASSERT(!*has_ended, "a call has one outcome");
      PV2_ASSERT(outcome.ok() == outcome.status.ok(), "an outcome without success says why");
      *has_ended = true;
      ++outcomes.ended;
    }));
  };
  std::size_t made = 0;
  for (; made < 6; ++made) call({.nonce = {1, made % 2 == 0 ? 0 : made}, .read_only = made == 2});
  net.run();
  for (const Act& act : acts) {
    if (act.kind == Act::Kind::kSend && !peers.empty()) peers.back()->send(act.bytes);
    if (act.kind == Act::Kind::kTime) net.run_for(act.time);
    if (act.kind == Act::Kind::kOther && act.choice % 2 == 0 && !peers.empty()) {
      peers.back()->do_something(act.choice / 2);
    }
    if (act.kind == Act::Kind::kOther && act.choice % 2 == 1) {
      client->cancel(tickets[act.choice / 2 % tickets.size()]);
    }
    net.run();
  }
  call({.nonce = {2, 1}});
  ++made;
  net.run_for(seconds(4));
  PV2_ASSERT(outcomes.ended == made, "each call has its outcome when its time is over");
  PV2_ASSERT(client->counts().calls == 0, "no call is counted as open");
  client.reset();
  net.run();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Script script({reinterpret_cast<const char*>(data), size});
  const std::uint8_t how = script.byte();
  const std::vector<Act> acts = read_acts(script);
  fuzz_reader(acts);
  fuzz_server(acts, how % 2 == 0);
  fuzz_client(acts, how % 4 < 2);
  return 0;
}

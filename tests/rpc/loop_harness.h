// SPDX-License-Identifier: Apache-2.0
//
// LoopHarness: a transport with a thread of its own, used from the thread of a test. Everything
// goes to the loop and back; the test waits for events, and never for a time. A test whose event
// does not come hangs, and is ended by ctest.

#pragma once

#include <pv2/base/latch.h>
#include <pv2/base/mutex.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/rpc/tcp_transport.h"
#include "pv2/rpc/transport.h"

namespace pv2::testing {

/// Keeps what a stream told. Thread-safe.
class StreamRecorder final : public StreamListener {
 public:
  // Called on the loop; to be set before the stream is started.
  std::function<void(std::string_view)> bytes_hook{};
  std::function<void()> drained_hook{};
  std::function<void()> closed_hook{};

  void on_bytes(std::string_view bytes) override {
    {
      MutexLock lock(heard_mutex_);
      bytes_ += bytes;
      changed_.notify_all();
    }
    if (bytes_hook) bytes_hook(bytes);
  }
  void on_drained() override {
    if (drained_hook) drained_hook();
    MutexLock lock(heard_mutex_);
    ++drained_;
    changed_.notify_all();
  }
  void on_closed(const Status& why) override {
    if (closed_hook) closed_hook();
    MutexLock lock(heard_mutex_);
    closed_ = why;
    changed_.notify_all();
  }

  /// Waits until `size` bytes have arrived, or the end; returns what has.
  std::string wait_for_bytes(std::size_t size) {
    MutexLock lock(heard_mutex_);
    while (bytes_.size() < size && !closed_) changed_.wait(heard_mutex_);
    return bytes_;
  }
  void wait_until_drained() {
    MutexLock lock(heard_mutex_);
    while (drained_ == 0 && !closed_) changed_.wait(heard_mutex_);
  }
  Status wait_for_end() {
    MutexLock lock(heard_mutex_);
    while (!closed_) changed_.wait(heard_mutex_);
    return *closed_;
  }
  std::string bytes() {
    MutexLock lock(heard_mutex_);
    return bytes_;
  }
  int drained() {
    MutexLock lock(heard_mutex_);
    return drained_;
  }
  bool is_closed() {
    MutexLock lock(heard_mutex_);
    return closed_.has_value();
  }

 private:
  Mutex heard_mutex_;
  CondVar changed_;
  std::string bytes_ PV2_GUARDED_BY(heard_mutex_);
  int drained_ PV2_GUARDED_BY(heard_mutex_) = 0;
  std::optional<Status> closed_ PV2_GUARDED_BY(heard_mutex_);
};

/// A stream with its recorder, which any thread may use and destroy.
class TestStream {
 public:
  TestStream(std::shared_ptr<Transport> transport, std::unique_ptr<Stream> stream)
      : transport_(std::move(transport)), stream_(std::move(stream)) {}
  ~TestStream() { drop(); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;

  StreamRecorder heard;

  TestStream& start() {
    run([this] { stream_->start(heard); });
    return *this;
  }
  void send(std::string bytes) {
    run([&] { stream_->send(bytes); });
  }
  std::size_t unsent() {
    std::size_t unsent = 0;
    run([&] { unsent = stream_->unsent(); });
    return unsent;
  }
  void pause() {
    run([this] { stream_->pause(); });
  }
  void resume() {
    run([this] { stream_->resume(); });
  }
  void drop() {
    run([this] { stream_.reset(); });
  }
  /// The loop has served what it had to do before this call.
  void settle() {
    for (int turn = 0; turn < 3; ++turn) run([] {});
  }
  /// For calls on the loop.
  std::unique_ptr<Stream>& on_loop() { return stream_; }
  void run(const std::function<void()>& work) { run_on_loop(*transport_, work); }

 private:
  const std::shared_ptr<Transport> transport_;
  std::unique_ptr<Stream> stream_;
};

/// An acceptor, and the streams that it accepted.
class TestAcceptor {
 public:
  explicit TestAcceptor(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {}
  ~TestAcceptor() { stop(); }
  TestAcceptor(const TestAcceptor&) = delete;
  TestAcceptor& operator=(const TestAcceptor&) = delete;

  Status listen(std::string_view address) {
    Status status;
    run_on_loop(*transport_, [&] {
      auto listening = transport_->listen(
          address, [this](std::unique_ptr<Stream> stream) { take(std::move(stream)); });
      status = listening.status();
      if (status.ok()) acceptor_ = *std::move(listening);
    });
    return status;
  }
  std::string address() {
    std::string address;
    run_on_loop(*transport_, [&] { address = acceptor_->address(); });
    return address;
  }
  /// Waits for the next stream.
  std::unique_ptr<TestStream> next() {
    MutexLock lock(accepted_mutex_);
    while (accepted_.empty()) arrived_.wait(accepted_mutex_);
    auto stream = std::move(accepted_.front());
    accepted_.pop_front();
    return stream;
  }
  std::size_t waiting() {
    MutexLock lock(accepted_mutex_);
    return accepted_.size();
  }
  void stop() {
    run_on_loop(*transport_, [this] { acceptor_.reset(); });
  }

 private:
  void take(std::unique_ptr<Stream> stream) {
    MutexLock lock(accepted_mutex_);
    accepted_.push_back(std::make_unique<TestStream>(transport_, std::move(stream)));
    arrived_.notify_all();
  }

  const std::shared_ptr<Transport> transport_;
  std::unique_ptr<StreamAcceptor> acceptor_;
  Mutex accepted_mutex_;
  CondVar arrived_;
  std::deque<std::unique_ptr<TestStream>> accepted_ PV2_GUARDED_BY(accepted_mutex_);
};

/// Connects, and waits for the answer.
inline Result<std::unique_ptr<TestStream>> connect(const std::shared_ptr<Transport>& transport,
                                                   std::string_view address,
                                                   Duration timeout = std::chrono::minutes(5)) {
  using Answer = Result<std::unique_ptr<Stream>>;
  const auto latch = std::make_shared<Latch<Answer>>();
  run_on_loop(*transport, [&] {
    transport->connect(address, timeout, [latch](Answer answer) { latch->set(std::move(answer)); });
  });
  latch->wait();
  if (!latch->value->ok()) return latch->value->status();
  return std::make_unique<TestStream>(transport, *std::move(*latch->value));
}

}  // namespace pv2::testing

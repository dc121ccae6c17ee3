// SPDX-License-Identifier: Apache-2.0
//
// Transport: what the RPC layer needs from a network: streams of bytes, timers, and one thread on
// which everything happens in order (the loop). Two exist: tcp_transport.h (real sockets, a thread
// of its own) and memory_transport.h (no socket, no thread, a manual clock), so server, client and
// proxy run unchanged in a simulation.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace pv2 {

/// Hears what happens to a stream. Called on the loop's thread.
class StreamListener {
 public:
  virtual ~StreamListener() = default;
  /// Bytes have arrived, in order; valid during the call.
  virtual void on_bytes(std::string_view bytes) = 0;
  /// All that was sent has been handed to the network.
  virtual void on_drained() = 0;
  /// The stream is over; the last call. OK: the other end closed it. It may have lost bytes that
  /// were sent and not drained.
  virtual void on_closed(const Status& why) = 0;
};

/// One end of a connection. Used on the loop's thread only. The destructor closes it, and calls
/// nobody; it may run within a call of the listener. Bytes that were not drained may be lost then.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Begins to read. To be called once; `listener` outlives the stream.
  virtual void start(StreamListener& listener) = 0;
  /// Sends `bytes`, after everything that was sent before, and leaves the string empty (its memory
  /// may be another's). Never blocks, and never calls the listener within the call: what the
  /// network does not take yet is kept.
  virtual void send(std::string& bytes) = 0;
  /// How much is kept.
  [[nodiscard]] virtual std::size_t unsent() const noexcept = 0;
  /// Stops reading, and goes on. A paused stream hears of its end when it goes on, or earlier.
  virtual void pause() = 0;
  virtual void resume() = 0;
  /// The other end, for messages: "127.0.0.1:40312".
  [[nodiscard]] virtual std::string peer() const = 0;
};

/// Accepts connections until it is destroyed, on the loop's thread.
class StreamAcceptor {
 public:
  virtual ~StreamAcceptor() = default;
  /// Where it listens, with the port that the system chose: "127.0.0.1:40112".
  [[nodiscard]] virtual std::string address() const = 0;
};

/// Names a timer; 0 names none.
struct TimerId {
  std::uint64_t value = 0;
  constexpr explicit operator bool() const noexcept { return value != 0; }
};

/// A network and the loop that serves it. All that it calls, it calls on the loop's thread, one
/// after the other. What those calls throw ends the process: the layers above catch it.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Calls `task` on the loop's thread, soon; tasks of one thread in their order. Thread-safe. A
  /// transport that is being destroyed destroys tasks without calling them.
  virtual void post(std::function<void()> task) = 0;
  /// Whether the caller is on the loop's thread. Thread-safe.
  [[nodiscard]] virtual bool on_loop() const noexcept = 0;
  /// Whether somebody other than the caller runs the loop; otherwise a caller that blocks waits for
  /// ever.
  [[nodiscard]] virtual bool has_own_thread() const noexcept = 0;
  /// The clock of the timers. Thread-safe.
  [[nodiscard]] virtual Clock& clock() const noexcept = 0;

  // The rest is used on the loop's thread only.

  /// Calls `task` once, at `when` by the steady clock or soon after.
  virtual TimerId call_at(SteadyTime when, std::function<void()> task) = 0;
  /// The timer will not be called. One that was called already, or none, is no mistake.
  virtual void cancel(TimerId timer) = 0;

  using Accept = std::function<void(std::unique_ptr<Stream>)>;
  /// Listens at `address` ("127.0.0.1:0": a port that the system chooses) and calls `accept` for
  /// each connection. kInvalidArgument: no such address; kAlreadyExists: it is in use; kIoError.
  [[nodiscard]] virtual Result<std::unique_ptr<StreamAcceptor>> listen(std::string_view address,
                                                                       Accept accept) = 0;
  using Connected = std::function<void(Result<std::unique_ptr<Stream>>)>;
  /// Connects to `address`. `connected` is called once, not within this call, `timeout` from now at
  /// the latest. kInvalidArgument, kUnavailable (nobody there, or somebody who is not trusted),
  /// kDeadlineExceeded. A transport that is being destroyed destroys `connected` without a call.
  virtual void connect(std::string_view address, Duration timeout, Connected connected) = 0;
};

/// Runs `work` on the loop's thread of `transport` and waits until it has run; on that thread, or
/// for a transport without a thread of its own, simply runs it.
void run_on_loop(Transport& transport, const std::function<void()>& work);

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// LineClient: sends one line to a region server and gets one line back, without blocking. It
// reports exactly how far a request got, because that decides what a procedure may conclude: a
// request is "not sent" only if not one byte of it can have arrived.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace pv2 {

/// How a request ended. A plain value.
struct LineAnswer {
  enum class Kind : std::uint8_t {
    kAnswered,  ///< `text` is the answer, without its newline.
    kNotSent,   ///< The request did not reach the server; `text` says why.
    kLost,      ///< The connection ended after the request, without an answer; `text` says why.
    kSilent,    ///< The request was sent, and no answer came in time.
  };
  Kind kind = Kind::kLost;
  std::string text;
};

/// Thread-safe. Owns one thread, on which callbacks run. Requests that are pending when the client
/// is destroyed get no callback.
class LineClient {
 public:
  explicit LineClient(std::chrono::milliseconds timeout);
  ~LineClient();
  LineClient(const LineClient&) = delete;
  LineClient& operator=(const LineClient&) = delete;

  using Callback = std::function<void(LineAnswer)>;
  void ask(std::uint16_t port, std::string line, Callback done);
  /// Like ask(), but waits for the answer. Must not be called from a callback.
  LineAnswer ask_and_wait(std::uint16_t port, std::string line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pv2

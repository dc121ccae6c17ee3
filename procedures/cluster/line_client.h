// SPDX-License-Identifier: Apache-2.0
//
// LineClient: asks a region server one line and gets one line back, without blocking. It says
// precisely how far a request got, because that decides what a procedure may conclude: a request is
// "not sent" only if not one byte of it can have arrived.

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
    kNotSent,   ///< It did not reach the server; `text` says why.
    kLost,      ///< It was sent, and the connection ended without an answer; `text` says why.
    kSilent,    ///< It was sent, and there was no answer in time.
  };
  Kind kind = Kind::kLost;
  std::string text;
};

/// Thread-safe. Owns one thread, on which callbacks run. Requests that are under way when it is
/// destroyed get no callback.
class LineClient {
 public:
  explicit LineClient(std::chrono::milliseconds timeout);
  ~LineClient();
  LineClient(const LineClient&) = delete;
  LineClient& operator=(const LineClient&) = delete;

  using Callback = std::function<void(LineAnswer)>;
  void ask(std::uint16_t port, std::string line, Callback done);
  /// The same, waiting for the answer. Not from a callback.
  LineAnswer ask_and_wait(std::uint16_t port, std::string line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pv2

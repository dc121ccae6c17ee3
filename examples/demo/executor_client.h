// SPDX-License-Identifier: Apache-2.0
//
// ExecutorClient: the demo's side of the executor's process. Every call may find the process dead,
// which is the point of the demo; then it returns nullopt, and the client knows no more than
// before. A client that asks again sends the same command, nonce included.

#pragma once

#include <pv2/procedures/server.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kill_point.h"
#include "options.h"
#include "support/child_process.h"

namespace demo {

/// Owned by one thread.
class ExecutorClient {
 public:
  /// A procedure that the executor found in its store.
  struct Found {
    std::uint64_t id = 0;
    std::string type;
    std::string step;
  };
  struct Accepted {
    std::uint64_t id = 0;
    bool replayed = false;
  };
  struct Ended {
    std::string state;
    std::string result;
  };

  /// Starts the process and waits until it is ready, or dead.
  ExecutorClient(const std::string& directory, const KillPoint& kill_point);

  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  [[nodiscard]] bool dead() const { return dead_; }
  [[nodiscard]] const std::vector<Found>& found() const { return found_; }
  /// What the process printed before it ended itself; empty when it was killed from outside.
  [[nodiscard]] const std::string& last_words() const { return last_words_; }
  /// The text of a refusal, if there was one.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  std::optional<Accepted> submit(const std::string& command);
  std::optional<Ended> wait(std::uint64_t id);
  /// Cancels a kill whose time has not come yet.
  void spare() {
    kill_at_.reset();
    kill_after_.reset();
  }
  /// Ends the process in good order.
  void finish() { process_.finish(); }

 private:
  std::optional<std::string> hear();

  example::ChildProcess process_;
  std::optional<std::chrono::steady_clock::time_point> kill_at_;
  std::optional<std::chrono::microseconds> kill_after_;  ///< Counted from the first submission.
  std::vector<Found> found_;
  std::string last_words_;
  std::string refusal_;
  bool dead_ = false;
};

[[nodiscard]] std::string create_command(const Options& options, std::uint64_t group,
                                         std::uint64_t nonce);
[[nodiscard]] std::string crash_command(const pv2::ServerName& server);

}  // namespace demo

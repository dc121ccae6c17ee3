// SPDX-License-Identifier: Apache-2.0
//
// Talks to an executor that may die at any moment.

#include "executor_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace demo {
namespace {

using std::chrono::steady_clock;

// Longer than anything takes on a busy machine. Reached only if the engine hangs, which then fails
// the round.
constexpr auto kPatience = std::chrono::seconds(60);

}  // namespace

ExecutorClient::ExecutorClient(const std::string& directory, const KillPoint& kill_point)
    : process_({"--as-executor", directory,
                // Kill points in time are kept by this process, which kills the child from outside.
                to_string(kill_point.kind == KillPoint::Kind::kTime ? KillPoint{} : kill_point)}) {
  if (kill_point.kind == KillPoint::Kind::kTime) {
    kill_after_ = std::chrono::microseconds(kill_point.number);
  }
  while (auto line = hear()) {
    if (*line == "ready") return;
    std::istringstream words(*line);
    Found found;
    std::string verb;
    words >> verb >> found.id >> found.type >> found.step;
    if (verb == "found") found_.push_back(found);
  }
}

std::optional<ExecutorClient::Accepted> ExecutorClient::submit(const std::string& command) {
  process_.tell(command);
  if (kill_after_ && !kill_at_) kill_at_ = steady_clock::now() + *kill_after_;
  const auto line = hear();
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  Accepted accepted;
  std::string verb, how;
  words >> verb >> accepted.id >> how;
  accepted.replayed = how == "replayed";
  if (verb == "accepted") return accepted;
  refusal_ = *line;
  return std::nullopt;
}

std::optional<ExecutorClient::Ended> ExecutorClient::wait(std::uint64_t id) {
  process_.tell("wait " + std::to_string(id));
  const auto line = hear();
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  std::string verb;
  Ended ended;
  words >> verb >> id >> ended.state >> std::ws;
  std::getline(words, ended.result);
  return ended;
}

std::optional<std::string> ExecutorClient::hear() {
  if (dead_) return std::nullopt;
  const auto deadline = steady_clock::now() + kPatience;
  const auto until = kill_at_ ? std::min(*kill_at_, deadline) : deadline;
  const auto patience =
      std::chrono::duration_cast<std::chrono::microseconds>(until - steady_clock::now());
  auto line = process_.hear(std::max(patience, std::chrono::microseconds(1)));
  if (line && !line->starts_with("dying ")) {
    if (line->starts_with("refused ")) refusal_ = *line;
    return line;
  }
  if (line) {
    last_words_ = line->substr(6);
  } else if (!process_.ended() && !kill_at_) {
    refusal_ = fmt::format("process {} said nothing for {} seconds", process_.pid(),
                           std::chrono::seconds(kPatience).count());
  }
  process_.kill();
  dead_ = true;
  return std::nullopt;
}

std::string create_command(const Options& options, std::uint64_t group, std::uint64_t nonce) {
  return fmt::format("create {} {} {} {} {}", group, nonce, options.table, options.regions,
                     fmt::join(options.families, ","));
}

std::string crash_command(const pv2::ServerName& server) { return "crash " + to_string(server); }

}  // namespace demo

// SPDX-License-Identifier: Apache-2.0
//
// Starts this program again as `serve`, and reads the lines that it prints (serve.h).

#include "server_process.h"

#include <signal.h>

#include <sstream>
#include <utility>

namespace counter {
namespace {

// A store of millions of rows is read in seconds; on a busy machine it takes longer.
constexpr pv2::Duration kStartPatience = std::chrono::minutes(2);

}  // namespace

pv2::Result<std::string> ServerProcess::start() {
  earlier_ = counts();
  present_ = {};
  auto process =
      pv2::cluster::ChildProcess::start({"serve", "--store", store_, "--listen", "127.0.0.1:0",
                                         "--dedup", dedup_ == Dedup::kOn ? "on" : "off"});
  if (!process.ok()) return process.status();
  const auto line = (*process)->hear(kStartPatience);
  std::istringstream words(line.value_or(""));
  std::string verb, address;
  words >> verb >> address;
  if (verb != "listening") {
    return pv2::Status(pv2::StatusCode::kUnavailable, "the server does not start");
  }
  const pv2::MutexLock lock(process_mutex_);
  process_ = *std::move(process);
  is_killed_ = false;
  return address;
}

void ServerProcess::kill_now() {
  const pv2::MutexLock lock(process_mutex_);
  if (process_ == nullptr || is_killed_) return;
  is_killed_ = true;
  ::kill(process_->pid(), SIGKILL);
}

bool ServerProcess::is_dying() {
  const pv2::MutexLock lock(process_mutex_);
  return process_ != nullptr && is_killed_;
}

ServerProcess::State ServerProcess::hear(pv2::Duration patience) {
  const auto line = process_->hear(patience);
  if (line) take(*line);
  if (!process_->ended()) return State::kRuns;
  const pv2::MutexLock lock(process_mutex_);
  process_.reset();  // its number may now be another process's
  if (!is_killed_) return State::kEndedByItself;
  ++kills_;
  return State::kKilled;
}

ServiceCounts ServerProcess::counts() const noexcept {
  return {.calls = earlier_.calls + present_.calls, .runs = earlier_.runs + present_.runs};
}

/// counts <calls> <runs>
void ServerProcess::take(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  ServiceCounts counts;
  if (words >> verb >> counts.calls >> counts.runs && verb == "counts") present_ = counts;
}

}  // namespace counter

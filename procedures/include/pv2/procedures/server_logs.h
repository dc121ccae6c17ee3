// SPDX-License-Identifier: Apache-2.0
//
// ServerLogs: the port to the write-ahead logs of region servers, as far as the recovery of a dead
// server needs them. Who splits a log is another server, which is asked through ServerCalls.

#pragma once

#include <pv2/base/status.h>
#include <pv2/engine/completion.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/procedures/server.h"

namespace pv2 {

/// The edits of the catalogue's own region are in logs of their own, so that they can be recovered
/// before all others. Persisted.
enum class LogKind : std::uint8_t { kMeta = 1, kUser = 2 };

/// The part of a log's name that says which log it is.
[[nodiscard]] constexpr std::string_view file_of(std::string_view log) noexcept {
  return log.substr(0, log.find('@'));
}

/// Thread-safe. Every call returns at once; its completion is called once, from any thread.
/// kUnavailable or kIoError may pass.
class ServerLogs {
 public:
  virtual ~ServerLogs() = default;

  /// Makes sure that nothing is acknowledged any more that `server` writes. OK: whatever it had
  /// acknowledged is in its logs. A server without logs is fenced too: it cannot begin one.
  virtual void fence(ServerName server, Completion<Status> done) = 0;
  /// The names of the logs that are left of a fenced server, in order of age. What follows an '@'
  /// in a name may differ from answer to answer, such as the size of a log that a zombie still
  /// appends to: see file_of().
  virtual void logs_of(ServerName server, LogKind kind,
                       Completion<Result<std::vector<std::string>>> done) = 0;
  /// Moves a log that was split out of the way, which is the record that it was. Not there: OK.
  virtual void archive(ServerName server, std::string log, Completion<Status> done) = 0;
  /// Removes the directory of a fenced server, in which no log is left. Not there: OK.
  virtual void remove(ServerName server, Completion<Status> done) = 0;
};

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// ServerCalls: the port to the region servers. A call over a network ends in one of four ways, and
// a caller may conclude something else from each, so an outcome is not a status code.

#pragma once

#include <pv2/base/status.h>
#include <pv2/engine/completion.h>

#include <cstdint>
#include <string>
#include <vector>

#include "pv2/procedures/region.h"
#include "pv2/procedures/server.h"

namespace pv2 {

/// How a call ended. A plain value.
struct CallOutcome {
  enum class Kind : std::uint8_t {
    kDone = 1,     ///< Executed, by this call or by an earlier one with this effect key.
    kRefused = 2,  ///< Not executed: the server refuses this effect key for ever.
    kNotSent = 3,  ///< This call did not reach the server. An earlier one may have.
    kUnknown = 4,  ///< It may or may not have been executed. Ask again with the same effect key.
  };
  Kind kind = Kind::kUnknown;
  std::uint64_t open_sequence = 0;  ///< The region's, when an opening is done.
  std::string reason;               ///< If it is not done: why, for people.
};

/// What a caller asks of a server about a region. A plain value.
struct RegionCall {
  ServerName server;
  RegionInfo region;
  std::uint64_t last_sequence = 0;  ///< The highest one known; an opening gets a higher one.
  std::string effect_key;
};

/// Thread-safe. Every call returns at once; its completion is called once, from any thread, perhaps
/// from within the call.
class ServerCalls {
 public:
  virtual ~ServerCalls() = default;

  virtual void open_region(RegionCall call, Completion<CallOutcome> done) = 0;
  virtual void close_region(RegionCall call, Completion<CallOutcome> done) = 0;

  /// The servers that are registered, in order of name. A server that died a moment ago may still
  /// be among them.
  virtual void live_servers(Completion<Result<std::vector<ServerName>>> done) = 0;

  /// Makes sure that `server` serves nothing any more and never will. OK: it serves nothing.
  /// kUnavailable: it may still serve.
  virtual void fence(ServerName server, Completion<Status> done) = 0;
};

}  // namespace pv2

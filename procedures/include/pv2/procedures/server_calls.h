// SPDX-License-Identifier: Apache-2.0
//
// ServerCalls: the port to the region servers. A procedure hands a server an operation (dispatch),
// and hears of the end of it by a durable signal (kReportSignal): the server repeats its report
// until the signal is on stable storage. A dispatch over a network ends in one of four ways, and a
// caller may conclude something else from each, so an outcome is not a status code.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/engine/completion.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/procedures/region.h"
#include "pv2/procedures/server.h"
#include "pv2/procedures/server_logs.h"

namespace pv2 {

/// What a server can be asked to do. Persisted (in messages).
enum class RemoteKind : std::uint8_t {
  kOpenRegion = 1,
  kCloseRegion = 2,
  kSplitLog = 3,  ///< Writes the edits of one log of a dead server into its regions' directories.
  kRefreshPeer = 4,  ///< Reads the configuration of a peer again.
  kClaimQueues = 5,  ///< Goes on with the replication that a dead server has left.
};

[[nodiscard]] std::string_view to_string(RemoteKind kind) noexcept;

/// An operation for a server. A plain value.
struct RemoteOperation {
  RemoteKind kind = RemoteKind::kOpenRegion;
  ServerName server;
  ProcedureId procedure{};     ///< Waits for the report.
  std::string effect_key;      ///< The server does what is named by one key once.
  RegionInfo region{};         ///< To open or close.
  std::uint64_t sequence = 0;  ///< To open: the highest one known. The opening gets a higher one.
  ServerName dead{};           ///< To split or claim: whose log or queues.
  std::string log{};           ///< To split.
  std::string peer{};          ///< To refresh or claim.

  void fields(auto& f) {
    f(1, "kind", kind);
    f(2, "server", server);
    f(3, "procedure", procedure);
    f(4, "effect_key", effect_key);
    f(5, "region", region);
    f(6, "sequence", sequence);
    f(7, "dead", dead);
    f(8, "log", log);
    f(9, "peer", peer);
  }
};

/// How a dispatch ended. A plain value.
struct DispatchOutcome {
  enum class Kind : std::uint8_t {
    kDone = 1,  ///< The server has the operation, by this call or an earlier one, and will report.
    kRefused = 2,  ///< Not begun: the server refuses this effect key for ever.
    kNotSent = 3,  ///< This call did not reach the server. An earlier one may have.
    kUnknown = 4,  ///< The server may have the operation. Ask again with the same effect key.
  };
  Kind kind = Kind::kUnknown;
  std::string reason{};  ///< If it is not done: why, for people.
};

/// The payload of the signal by which a server tells how an operation has ended. A plain value.
struct RemoteReport {
  RemoteKind kind = RemoteKind::kOpenRegion;
  ServerName server;
  std::string effect_key;
  bool done = false;           ///< False: it failed, and had no effect.
  std::uint64_t sequence = 0;  ///< Of a region that was opened or closed: its highest one.
  std::string reason{};        ///< If it failed: why, for people.

  void fields(auto& f) {
    f(1, "kind", kind);
    f(2, "server", server);
    f(3, "effect_key", effect_key);
    f(4, "done", done);
    f(5, "sequence", sequence);
    f(6, "reason", reason);
  }
};

/// The name of that signal.
inline constexpr std::string_view kReportSignal = "report";

/// Thread-safe. Every call returns at once; its completion is called once, from any thread, perhaps
/// from within the call.
class ServerCalls {
 public:
  virtual ~ServerCalls() = default;

  virtual void dispatch(RemoteOperation operation, Completion<DispatchOutcome> done) = 0;

  /// The servers that are registered and not known to be dead, in order of name. A server that died
  /// a moment ago may still be among them.
  virtual void live_servers(Completion<Result<std::vector<ServerName>>> done) = 0;
  /// Those, and the servers that may be alive but have not registered with this control plane yet,
  /// because it has started a moment ago: for whoever has to miss none. A cluster without such
  /// servers need not implement it.
  virtual void known_servers(Completion<Result<std::vector<ServerName>>> done) {
    live_servers(std::move(done));
  }
  /// Answers when `server` is recorded as crashed (or later), perhaps never.
  virtual void when_crashed(ServerName server, Completion<Status> done) = 0;
  /// Answers when the logs of that kind of a crashed server are recorded as split.
  virtual void when_recovered(ServerName server, LogKind kind, Completion<Status> done) = 0;

  /// Answers with a live server that may split one more log now, on behalf of `procedure`; waits
  /// while there is none. Only a few logs are split by one server at a time. The same procedure is
  /// answered again with the server that it has, as long as that server lives. Volatile: after a
  /// restart a procedure asks again, and gets `preferred` if that is not empty and lives.
  virtual void acquire_splitter(ProcedureId procedure, ServerName preferred,
                                Completion<Result<ServerName>> done) = 0;
  /// `procedure` needs it no more. It may have none.
  virtual void release_splitter(ProcedureId procedure) = 0;
};

}  // namespace pv2

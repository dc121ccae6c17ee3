// SPDX-License-Identifier: Apache-2.0
//
// SplitterSlots: which server splits a log for which procedure. A few at a time per server, so that
// a server that recovers others still serves. Volatile: after a restart procedures ask again.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/engine/completion.h>
#include <pv2/procedures/server.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <vector>

namespace pv2::cluster {

/// Used on the loop only.
class SplitterSlots {
 public:
  /// `live` says which servers live now.
  explicit SplitterSlots(std::function<std::vector<ServerName>()> live) : live_(std::move(live)) {}

  void acquire(ProcedureId procedure, const ServerName& preferred,
               Completion<Result<ServerName>> done);
  void release(ProcedureId procedure);
  /// A server has come or gone.
  void look();

 private:
  struct Waiting {
    ProcedureId procedure;
    Completion<Result<ServerName>> done;
  };

  /// Gives the procedure a server; false when there is none with a free slot.
  bool give(ProcedureId procedure, const ServerName& preferred,
            Completion<Result<ServerName>>& done);

  const std::function<std::vector<ServerName>()> live_;
  std::map<ProcedureId, ServerName> taken_;
  std::deque<Waiting> waiting_;
};

}  // namespace pv2::cluster

// SPDX-License-Identifier: Apache-2.0
//
// SplitterSlots: which server splits a log for which procedure. A few at a time per server, so that
// a server that recovers others still serves. Volatile: after a restart procedures ask again. A
// procedure that an operator has ended gives nothing back: its slot is free when it has ended.

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
  /// `live` says which servers live now, and `has_ended` whether a procedure is no more.
  SplitterSlots(std::function<std::vector<ServerName>()> live,
                std::function<bool(ProcedureId)> has_ended)
      : live_(std::move(live)), has_ended_(std::move(has_ended)) {}

  void acquire(ProcedureId procedure, const ServerName& preferred,
               Completion<Result<ServerName>> done);
  void release(ProcedureId procedure);
  /// A server has come or gone, or a procedure may have ended.
  void look();

 private:
  struct Waiting {
    ProcedureId procedure;
    Completion<Result<ServerName>> done;
  };

  /// Gives the procedure a server; false when there is none with a free slot.
  bool give(ProcedureId procedure, const ServerName& preferred,
            Completion<Result<ServerName>>& done);

  void forget_ended();
  /// Gives those who wait what is free.
  void serve();

  const std::function<std::vector<ServerName>()> live_;
  const std::function<bool(ProcedureId)> has_ended_;
  std::map<ProcedureId, ServerName> taken_;
  std::deque<Waiting> waiting_;
};

}  // namespace pv2::cluster

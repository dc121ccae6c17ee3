// SPDX-License-Identifier: Apache-2.0
//
// What the master and the region servers tell each other. Plain values; the numbers are those on
// the wire. Every message of a master carries its epoch, which is greater at each of its starts; a
// server refuses those of a master whose successor it has heard.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/procedures/region.h>
#include <pv2/procedures/server.h>
#include <pv2/procedures/server_calls.h>
#include <pv2/procedures/table.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pv2/cluster/server_list.h"

namespace pv2::cluster {

/// Operations that wait for one server, together.
struct DispatchRequest {
  std::uint64_t epoch = 0;
  std::vector<RemoteOperation> operations;
  /// The number of the first operation; the next one has the next number. No other operation that
  /// the master of this epoch sends, in this request or another, has the same, and one that it
  /// dispatches later has a greater one. Servers know by it which of two orders is the later one.
  std::uint64_t first = 0;

  void fields(auto& f) {
    f(1, "epoch", epoch);
    f(2, "operations", operations);
    f(3, "first", first);
  }
};

/// One answer for each operation, in order. A server that does not answer at all has perhaps begun.
struct DispatchReply {
  struct Answer {
    bool accepted = false;  ///< It has the operation, or had it before. False: refused for ever.
    std::string reason;

    void fields(auto& f) {
      f(1, "accepted", accepted);
      f(2, "reason", reason);
    }
  };
  std::vector<Answer> answers;

  void fields(auto& f) { f(1, "answers", answers); }
};

/// Asks for the status of a server: of its regions from `start_region` on, as far as they fit.
struct StatusRequest {
  std::string start_region;  ///< An id; empty: from the first one.

  void fields(auto& f) { f(1, "start_region", start_region); }
};

/// Asks what the master's descriptor cache has of the tables after `after`, as far as they fit.
struct DescriptorRequest {
  std::optional<TableName> after;

  void fields(auto& f) { f(1, "after", after); }
};

struct DescriptorList {
  std::vector<TableDescriptor> tables;  ///< In order of names.
  bool has_more = false;

  void fields(auto& f) {
    f(1, "tables", tables);
    f(2, "has_more", has_more);
  }
};

/// A server says that it lives. The first one registers it.
struct Heartbeat {
  ServerName server;
  std::string address;  ///< Where it listens.
  std::uint64_t regions = 0;
  std::uint64_t requests = 0;  ///< Since it started.
  std::uint64_t bytes = 0;     ///< In memory, of all regions.
  /// It has closed its regions and ends now: the master need not wait for the end of its lease.
  bool leaving = false;

  void fields(auto& f) {
    f(1, "server", server);
    f(2, "address", address);
    f(3, "regions", regions);
    f(4, "requests", requests);
    f(5, "bytes", bytes);
    f(6, "leaving", leaving);
  }
};

struct HeartbeatReply {
  std::uint64_t epoch = 0;
  Duration lease{};   ///< The master takes the server for dead when it hears nothing for so long.
  bool dead = false;  ///< It has been taken for dead: the server ends itself.

  void fields(auto& f) {
    f(1, "epoch", epoch);
    f(2, "lease", lease);
    f(3, "dead", dead);
  }
};

/// How operations have ended. The server repeats a report until it is answered.
struct ReportRequest {
  struct Item {
    ProcedureId procedure;
    RemoteReport report;
    RegionInfo region{};  ///< That was opened or closed.

    void fields(auto& f) {
      f(1, "procedure", procedure);
      f(2, "report", report);
      f(3, "region", region);
    }
  };
  /// The greatest epoch that the server has heard. A master with a smaller one is deposed, and must
  /// not take the report.
  std::uint64_t epoch = 0;
  std::vector<Item> items;

  void fields(auto& f) {
    f(1, "epoch", epoch);
    f(2, "items", items);
  }
};

struct ReportReply {
  enum class Verdict : std::uint8_t {
    kTaken = 1,    ///< It is on stable storage, or is of no use any more: the server may forget it.
    kNotHere = 2,  ///< The master does not want the region to be there: the server closes it.
    kDead = 3,     ///< The server was taken for dead, and ends itself.
    kAgain = 4,    ///< Not taken; the server repeats it later.
  };
  std::vector<Verdict> verdicts;  ///< One for each item, in order.

  void fields(auto& f) { f(1, "verdicts", verdicts); }
};

}  // namespace pv2::cluster

// SPDX-License-Identifier: Apache-2.0
//
// CatalogueState: the content of the catalogue, and which change may follow which. Every catalogue
// keeps one of these and differs from others only in where the rows are durable, so the rules exist
// once. It does no I/O and takes no lock.
//
//     row       new state           allowed from
//     region    CLOSED              (none), CLOSED, FAILED_OPEN
//                                   CLOSING          on the same server
//               OPENING             CLOSED, FAILED_OPEN, OPENING, ABNORMALLY_CLOSED
//                                   OPEN, CLOSING    of a dead server                     (1)
//               OPEN                OPENING, OPEN    on the same server
//               CLOSING             OPEN, CLOSING    on the same server
//               ABNORMALLY_CLOSED   any but CLOSED, SPLIT, FAILED_OPEN   on the same server   (2)
//               SPLIT               CLOSED, SPLIT
//               FAILED_OPEN         FAILED_OPEN
//                                   OPENING          on the same server
//     server    CRASHED             (none), ONLINE, CRASHED
//               RECOVERED           CRASHED, RECOVERED
//               RETIRED             RECOVERED, RETIRED
//
// (1) If the row names a dead server, and the region may have edits in the logs of that server,
//     these have to be split first: the server is recovered.
// (2) Only once the server is recovered.
//
// A live server of an OPEN or CLOSING region may acknowledge writes. So such a region has to be
// closed there before it can be opened anywhere. A row that is OPENING may come to name another
// server, because a server serves no region before the report of its opening was taken; whoever
// took that report knows it.
//
// No row becomes OPENING, OPEN or CLOSING on a dead server: that is the fence. The open sequence of
// a region never decreases.

#pragma once

#include <pv2/base/status.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pv2/procedures/catalogue.h"

namespace pv2 {

/// Owned by one thread, or guarded by its owner.
class CatalogueState {
 public:
  /// A row, and the key of the write that made it what it is.
  template <class Row>
  struct Kept {
    Row row;
    std::string effect_key;

    void fields(auto& f) {
      f(1, "row", row);
      f(2, "effect_key", effect_key);
    }
  };

  /// Whether `write` may be applied, without applying it. kNow and kBefore: as apply() would
  /// answer.
  [[nodiscard]] Result<Applied> check(const CatalogueWrite& write) const;
  /// Applies all of `write`, or nothing.
  Result<Applied> apply(const CatalogueWrite& write);
  /// Takes over a write that is durable elsewhere, and was allowed when it was begun.
  void record(const CatalogueWrite& write);

  [[nodiscard]] std::optional<NamespaceRow> name_space(const std::string& name) const;
  [[nodiscard]] std::vector<TableName> tables_of(const std::string& name_space) const;
  [[nodiscard]] std::optional<TableRow> table(const TableName& name) const;
  [[nodiscard]] std::vector<RegionRow> regions_of(const TableName& table) const;
  [[nodiscard]] std::optional<RegionRow> region(const std::string& id) const;
  [[nodiscard]] std::vector<RegionRow> regions_on(const ServerName& server,
                                                  const RegionIds& ids = {}) const;
  [[nodiscard]] ServerRow server(const ServerName& name) const;

  /// All rows, for those who keep them elsewhere.
  [[nodiscard]] const std::map<std::string, Kept<NamespaceRow>>& namespaces() const noexcept {
    return namespaces_;
  }
  [[nodiscard]] const std::map<TableName, Kept<TableRow>>& tables() const noexcept {
    return tables_;
  }
  [[nodiscard]] const std::map<std::string, Kept<RegionRow>>& regions() const noexcept {
    return regions_;
  }
  [[nodiscard]] const std::map<ServerName, Kept<ServerRow>>& servers() const noexcept {
    return servers_;
  }
  /// Takes a row over from where it is kept, without any check.
  void load(Kept<NamespaceRow> row);
  void load(Kept<TableRow> row);
  void load(Kept<RegionRow> row);
  void load(Kept<ServerRow> row);

 private:
  void put_region(RegionRow row, const std::string& effect_key);
  void remove_region(const std::string& id);
  [[nodiscard]] bool was_applied(const CatalogueWrite& write) const;
  [[nodiscard]] bool nothing_to_remove(const CatalogueWrite& write) const;
  [[nodiscard]] Status check(const RegionRow& row) const;
  [[nodiscard]] Status check(const ServerRow& row) const;
  [[nodiscard]] Status check_home(const RegionRow& row, const RegionRow& old) const;

  std::map<std::string, Kept<NamespaceRow>> namespaces_;
  std::map<TableName, Kept<TableRow>> tables_;
  std::map<std::string, Kept<RegionRow>> regions_;
  std::map<ServerName, Kept<ServerRow>> servers_;
  // Indexes over regions_: nothing here looks at all regions of a large cluster.
  std::map<TableName, std::map<std::string, std::string>> ids_by_table_;  // order_of(region) -> id
  std::map<ServerName, std::set<std::string>> ids_by_server_;
};

}  // namespace pv2

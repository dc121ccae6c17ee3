// SPDX-License-Identifier: Apache-2.0
//
// A table is read in this order: the servers and the place of the catalogue's region from the
// master, the rows of the table's regions from the catalogue, and the row of the table if it has no
// region.

#include "client/region_map.h"

#include <pv2/base/fields.h>

#include <algorithm>
#include <utility>

#include "wire/catalogue_rows.h"
#include "wire/methods.h"
#include "wire/region_messages.h"

namespace pv2::cluster {
namespace {

Status unavailable(std::string what) { return {StatusCode::kUnavailable, std::move(what)}; }

}  // namespace

void RegionMap::find(const TableName& table, const std::string& row,
                     Done<Result<RegionPlace>> done) {
  if (const auto found = known_.find(table); found != known_.end()) {
    auto place = place_of(found->second, table, row);
    if (place.ok()) return done(std::move(place));
  }
  read(table, [table, row, done = std::move(done)](const Result<Known>& known) {
    if (!known.ok()) return done(known.status());
    done(place_of(*known, table, row));
  });
}

Result<RegionPlace> RegionMap::place_of(const Known& known, const TableName& table,
                                        const std::string& row) {
  const auto after = std::ranges::upper_bound(
      known.regions, row, {}, [](const RegionRow& region) { return region.region.start_key; });
  if (after == known.regions.begin()) return unavailable(to_string(table) + " has a hole");
  const RegionRow& found = *std::prev(after);
  if (!found.region.end_key.empty() && row >= found.region.end_key) {
    return unavailable(to_string(table) + " has a hole");
  }
  if (found.state != RegionState::kOpen) {
    return unavailable("region " + found.region.id + " is " + std::string(to_string(found.state)));
  }
  const auto address = known.addresses.find(found.server);
  if (address == known.addresses.end()) {
    return unavailable("region " + found.region.id + " is on " + to_string(found.server) +
                       ", which does not live");
  }
  return RegionPlace{found.region, address->second};
}

void RegionMap::read_regions(const TableName& table, Done<Result<std::vector<RegionRow>>> done) {
  read(table, [done = std::move(done)](const Result<Known>& known) {
    if (!known.ok()) return done(known.status());
    done(known->regions);
  });
}

void RegionMap::read_servers(Done<Result<ServerList>> done) {
  to_master_.look_again();
  master_.call(
      std::string(kMasterServers), {}, {.read_only = true, .timeout = call_timeout_},
      tasks_.guarded<CallOutcome>([this, done = std::move(done)](const CallOutcome& outcome) {
        if (!outcome.ok()) return done(outcome.status.with_context("the master"));
        ServerList list;
        if (Status bad = decode_fields(list, FieldSelection::kAll, outcome.body); !bad.ok()) {
          return done(bad);
        }
        connections_.keep(list.live);
        done(std::move(list));
      }));
}

void RegionMap::read(const TableName& table, Reading done) {
  std::vector<Reading>& waiting = readings_[table];
  waiting.push_back(std::move(done));
  if (waiting.size() > 1) return;
  read_servers([this, table](const Result<ServerList>& list) {
    if (!list.ok()) return finish(table, list.status());
    auto known = std::make_shared<Known>();
    for (const ServerEntry& server : list->live) known->addresses[server.name] = server.address;
    if (is_meta(table)) {
      known->regions = {list->meta};
      return finish(table, *known);
    }
    const auto address = known->addresses.find(list->meta.server);
    if (address == known->addresses.end()) {
      return finish(table, unavailable("the catalogue is on no server that lives"));
    }
    read_rows(table, address->second, known, regions_scan(table));
  });
}

void RegionMap::read_rows(const TableName& table, const std::string& address,
                          const std::shared_ptr<Known>& known, Scan scan) {
  scan_meta(address, scan, [this, table, address, known, scan](const Result<ScanPage>& page) {
    if (!page.ok()) return finish(table, page.status());
    for (const Cell& cell : page->cells) {
      auto row = region_of_cell(cell);
      if (!row.ok()) return finish(table, row.status());
      if (row->state != RegionState::kSplit) known->regions.push_back(*std::move(row));
    }
    if (page->next_row) {
      return read_rows(table, address, known, rest_of(scan, *page));
    }
    if (known->regions.empty()) {
      const std::string row = table_row_key(table);
      return check_table(table, address, {.start_row = row, .end_row = row + '\0'});
    }
    std::ranges::sort(known->regions, {},
                      [](const RegionRow& row) { return row.region.start_key; });
    finish(table, *known);
  });
}

// A table without a region is not there, or is being made.
void RegionMap::check_table(const TableName& table, const std::string& address, const Scan& scan) {
  scan_meta(address, scan, [this, table, address, scan](const Result<ScanPage>& page) {
    if (!page.ok()) return finish(table, page.status());
    if (!page->cells.empty()) {
      return finish(table, unavailable(to_string(table) + " has no region yet"));
    }
    if (page->next_row) return check_table(table, address, rest_of(scan, *page));
    finish(table, Status(StatusCode::kNotFound, "there is no table " + to_string(table)));
  });
}

void RegionMap::finish(const TableName& table, const Result<Known>& known) {
  if (known.ok()) {
    known_[table] = *known;
  } else {
    known_.erase(table);
  }
  const auto found = readings_.find(table);
  const std::vector<Reading> waiting = std::move(found->second);
  readings_.erase(found);
  for (const Reading& done : waiting) done(known);
}

void RegionMap::scan_meta(const std::string& address, Scan scan, Done<Result<ScanPage>> done) {
  ScanRequest request{meta_region().id, std::move(scan), 0};
  std::string body;
  encode_fields(request, FieldSelection::kAll, body);
  connections_.call(
      address, kRegionScan, std::move(body), {.read_only = true, .timeout = call_timeout_},
      tasks_.guarded<CallOutcome>([done = std::move(done)](const CallOutcome& outcome) {
        // Also if the catalogue has moved: then it is somewhere else in a moment.
        if (!outcome.ok()) {
          return done(unavailable("the catalogue: " + outcome.status.to_string()));
        }
        ScanPage page;
        if (Status bad = decode_fields(page, FieldSelection::kAll, outcome.body); !bad.ok()) {
          return done(bad);
        }
        done(std::move(page));
      }));
}

}  // namespace pv2::cluster

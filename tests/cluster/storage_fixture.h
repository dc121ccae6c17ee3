// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the cluster's storage share: a disk that forgets what is not synced, the region
// that is written to it, and short names for writes. Work runs when the test says so.

#pragma once

#include <pv2/base/fields.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/log_directories.h"
#include "storage/log_splitter.h"
#include "storage/region.h"
#include "storage/server_log.h"
#include "storage/table_directories.h"
#include "support/catch.h"
#include "support/crash_env.h"

namespace pv2::testing {

using cluster::Mutation;
using cluster::MutationKind;

inline Mutation put(std::string row, std::string value, std::string qualifier = "q") {
  return {.row = std::move(row),
          .family = "f",
          .qualifier = std::move(qualifier),
          .value = std::move(value)};
}
inline Mutation erase(std::string row) {
  return {.kind = MutationKind::kDelete, .row = std::move(row), .family = "f", .qualifier = "q"};
}
inline Mutation erase_row(std::string row) {
  return {.kind = MutationKind::kDeleteRow, .row = std::move(row)};
}
inline Mutation append(std::string row, std::string value) {
  return {.kind = MutationKind::kAppend,
          .row = std::move(row),
          .family = "f",
          .qualifier = "q",
          .value = std::move(value)};
}
inline Mutation increment(std::string row, std::int64_t amount) {
  return {.kind = MutationKind::kIncrement,
          .row = std::move(row),
          .family = "f",
          .qualifier = "q",
          .amount = amount};
}

/// The disk of a cluster, and what its processes share. Owned by one thread.
class Disk {
 public:
  explicit Disk(std::uint64_t seed = 1)
      : env(seed),
        files(env, env.directory_sync(), "0", env.everything_sync(), witness()),
        tables(files, layout),
        logs(files, layout) {
    env.set_contents(layout.cluster_id(), "id");
  }

  /// Makes the table with one region of all rows (or these).
  void make_table(const std::vector<RegionInfo>& regions) {
    TableDescriptor descriptor{regions.front().table, {"f", "g"}};
    const Status made = tables.write_layout(descriptor, regions);
    INFO(made.to_string());
    REQUIRE(made.ok());
  }

  /// For another tree of this disk.
  [[nodiscard]] cluster::TreeWitness witness() const {
    return {layout.root(), layout.cluster_id()};
  }

  CrashEnv env;
  cluster::ClusterLayout layout{"root"};
  cluster::FileTree files;
  cluster::TableDirectories tables;
  cluster::LogDirectories logs;
};

inline RegionInfo whole_table() { return {{"default", "t"}, "00000000000000aa", "", ""}; }

/// A table's first descriptor.
inline cluster::StoredDescriptor with_families(std::vector<std::string> families) {
  TableDescriptor descriptor{whole_table().table, std::move(families)};
  return cluster::next_descriptor({}, std::move(descriptor), 1, /*is_first=*/true);
}

/// A server that has some regions open. Its work runs in run(), and is lost with it.
class StorageServer {
 public:
  StorageServer(Disk& disk, std::uint64_t start_code, std::uint64_t log_bytes = 16U << 20)
      : disk_(disk), name_{"rs1", start_code}, log_bytes_(log_bytes) {}
  ~StorageServer() {
    work.clear();
    regions.clear();
  }

  Status start() {
    auto opened = cluster::ServerLog::open(disk_.files, disk_.layout, work, name_,
                                           {.file_bytes_max = log_bytes_});
    if (opened.ok()) log = *std::move(opened);
    return opened.status();
  }
  Status open(const RegionInfo& info, std::uint64_t opening,
              const cluster::StoredDescriptor& table = with_families({"f", "g"})) {
    auto opened = cluster::Region::open(disk_.files, disk_.layout, work, info,
                                        {.families = table.descriptor.families,
                                         .since = table.since,
                                         .descriptor = table.version,
                                         .opening = opening,
                                         .looks_max = looks_max});
    if (opened.ok()) regions[info.id] = *std::move(opened);
    return opened.status();
  }
  [[nodiscard]] cluster::Region& region(const std::string& id = whole_table().id) {
    return *regions.at(id);
  }

  /// Does the write, and runs the work until there is an answer.
  Result<cluster::WriteResult> write(std::vector<Mutation> mutations,
                                     std::optional<cluster::WriteNonce> nonce = {},
                                     const std::string& id = whole_table().id) {
    std::optional<Result<cluster::WriteResult>> answer;
    regions.at(id)->write({.mutations = std::move(mutations), .nonce = nonce, .now = now}, *log,
                          [&](Result<cluster::WriteResult> done) { answer = std::move(done); });
    work.run_all();
    REQUIRE(answer);
    return *answer;
  }
  Status flush(const std::string& id = whole_table().id) {
    Status status(StatusCode::kInternal, "no answer");
    regions.at(id)->flush([&](const Result<std::uint64_t>& done) {
      status = done.status();
      if (done.ok()) log->flushed(id, *done);
    });
    work.run_all();
    UNSCOPED_INFO(status.to_string());
    return status;
  }
  Status compact(cluster::CompactOptions options = {}, const std::string& id = whole_table().id) {
    Status status(StatusCode::kInternal, "no answer");
    regions.at(id)->compact(options, [&](Status done) { status = std::move(done); });
    work.run_all();
    UNSCOPED_INFO(status.to_string());
    return status;
  }
  Status close(const std::string& id = whole_table().id) {
    Status status(StatusCode::kInternal, "no answer");
    regions.at(id)->close([&](const Result<std::uint64_t>& done) {
      status = done.status();
      if (done.ok()) log->flushed(id, *done);
    });
    work.run_all();
    UNSCOPED_INFO(status.to_string());
    return status;
  }

  [[nodiscard]] const ServerName& name() const { return name_; }

  cluster::ManualWorkQueue work;
  std::unique_ptr<cluster::ServerLog> log;
  std::map<std::string, std::shared_ptr<cluster::Region>> regions;
  WallTime now{};
  std::uint64_t looks_max = cluster::RegionOptions().looks_max;

 private:
  Disk& disk_;
  const ServerName name_;
  const std::uint64_t log_bytes_;
};

/// What the master does with the logs of a dead server: fence, split, archive.
inline Status recover(Disk& disk, const ServerName& server) {
  if (Status bad = disk.logs.fence(server); !bad.ok()) return bad;
  const auto logs = disk.logs.logs(server, cluster::LogKind::kUser);
  if (!logs.ok()) return logs.status();
  for (const cluster::LogFile& log : *logs) {
    const auto split = cluster::split_log(disk.files, disk.layout, server, log);
    if (!split.ok()) return split.status();
    if (Status bad = disk.logs.archive(server, log); !bad.ok()) return bad;
  }
  return disk.logs.remove(server);
}

/// Row -> value of f:q, as a scan shows it.
inline std::map<std::string, std::string> rows_of(const cluster::Region& region) {
  std::map<std::string, std::string> rows;
  cluster::Scan scan{.rows_max = 3};
  for (;;) {
    const auto page = region.scan(scan);
    INFO(page.status().to_string());
    REQUIRE(page.ok());
    for (const cluster::Cell& cell : page->cells) {
      if (cell.family == "f" && cell.qualifier == "q") rows[cell.row] = cell.value;
    }
    if (!page->next_row) return rows;
    scan = rest_of(std::move(scan), *page);
  }
}

}  // namespace pv2::testing

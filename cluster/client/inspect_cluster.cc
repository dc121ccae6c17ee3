// SPDX-License-Identifier: Apache-2.0
//
// One question after the other; each answer is added to the snapshot. The system's tables and
// namespaces are left out of it where they follow other rules: the catalogue's own table has no
// row.

#include "pv2/cluster/inspect_cluster.h"

#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "client/cluster_files.h"
#include "wire/catalogue_rows.h"

namespace pv2::cluster {
namespace {

/// It keeps itself until it is done.
class Inspection : public std::enable_shared_from_this<Inspection> {
 public:
  using Done = std::function<void(Result<ClusterSnapshot>)>;

  Inspection(ClusterClient& client, std::optional<Duration> timeout, Done done)
      : client_(client), timeout_(timeout), done_(std::move(done)) {}

  Status look_at_files(const std::string& root) {
    const ClusterLayout layout(root);
    const FileTree files =
        FileTree::real("inspector", TreeWitness{layout.root(), layout.cluster_id()});
    return add_files(files, layout, snapshot_);
  }
  void ask_master() {
    client_.servers([self = shared_from_this()](Result<ServerList> servers) {
      self->go_on_with(std::move(servers));
    });
  }
  void go_on_with(Result<ServerList> servers) {
    if (!servers.ok()) return done_(servers.status());
    servers_ = *std::move(servers);
    ask_for_rows({});
  }

 private:
  void ask_for_rows(const Scan& range) {
    client_.scan(
        meta_table(), range,
        [self = shared_from_this(), range](const Result<ScanPage>& page) {
          self->take_rows(range, page);
        },
        timeout_);
  }
  void take_rows(const Scan& range, const Result<ScanPage>& page) {
    if (!page.ok()) return done_(page.status());
    for (const Cell& cell : page->cells) {
      if (Status bad = load_cell(cell, rows_); !bad.ok()) return done_(bad);
    }
    if (page->next_row) return ask_for_rows(rest_of(range, *page));
    for (const ServerRow& row : servers_.dead) rows_.load({row, ""});
    add_rows(rows_, snapshot_);
    ask_next_server();
  }
  void ask_next_server() {
    if (asked_ == servers_.live.size()) return ask_for_descriptors();
    client_.server_status(servers_.live[asked_++].name,
                          [self = shared_from_this()](const Result<ServerStatus>& status) {
                            if (!status.ok()) return self->done_(status.status());
                            add_server(*status, self->snapshot_);
                            self->ask_next_server();
                          });
  }
  void ask_for_descriptors() {
    client_.descriptors([self = shared_from_this()](Result<std::vector<TableDescriptor>> cached) {
      if (!cached.ok()) return self->done_(cached.status());
      std::erase_if(*cached, [](const TableDescriptor& table) { return is_meta(table.name); });
      self->snapshot_.cached = *std::move(cached);
      self->done_(std::move(self->snapshot_));
    });
  }

  ClusterClient& client_;
  const std::optional<Duration> timeout_;  ///< Of a question about rows.
  const Done done_;
  ServerList servers_;
  std::size_t asked_ = 0;  ///< Live servers.
  CatalogueState rows_;
  ClusterSnapshot snapshot_;
};

}  // namespace

Result<ClusterSnapshot> inspect_cluster(ClusterClient& client, const std::string& root) {
  std::promise<Result<ClusterSnapshot>> answer;
  const auto inspection = std::make_shared<Inspection>(
      client, std::nullopt,
      [&answer](Result<ClusterSnapshot> snapshot) { answer.set_value(std::move(snapshot)); });
  if (Status bad = inspection->look_at_files(root); !bad.ok()) return bad;
  // A verb that blocks: it fails where nobody can wait.
  inspection->go_on_with(client.servers());
  return answer.get_future().get();
}

void inspect_cluster(ClusterClient& client, const std::string& root, Duration timeout,
                     std::function<void(Result<ClusterSnapshot>)> done) {
  const auto inspection = std::make_shared<Inspection>(client, timeout, done);
  if (Status bad = inspection->look_at_files(root); !bad.ok()) return done(bad);
  inspection->ask_master();
}

}  // namespace pv2::cluster

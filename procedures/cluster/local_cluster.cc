// SPDX-License-Identifier: Apache-2.0
//
// LocalCluster: implements the ports with files and sockets. Everything that touches the disk runs
// on one thread, in the order of the calls; calls to servers run on the thread of the LineClient.

#include "pv2/procedures/local_cluster.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "cluster/catalogue_journal.h"
#include "cluster/cluster_directory.h"
#include "cluster/line_client.h"
#include "cluster/server_lines.h"
#include "cluster/table_directories.h"

namespace pv2 {

using Phase = ClusterMoment::Phase;

class LocalCluster::Impl final : public Catalogue,
                                 public TableFiles,
                                 public ServerCalls,
                                 public DescriptorCache {
 public:
  Impl(LocalClusterOptions options, std::unique_ptr<CatalogueJournal> journal)
      : directory_(options.directory),
        tables_(directory_.tables()),
        journal_(std::move(journal)),
        probe_(std::move(options.probe)),
        client_(options.call_timeout) {}
  ~Impl() override {
    disk_.stop();
    disk_.join();
  }

  /// Fills the descriptor cache, as every start does.
  Status load() {
    auto directories = tables_.list();
    if (!directories.ok()) return directories.status();
    for (const auto& directory : *directories) cached_.insert(directory.descriptor.name);
    return {};
  }

  void read_table(TableName name, Completion<Result<std::optional<TableRow>>> done) override {
    on_disk(ClusterCall::kReadTable, {}, std::move(done), [this, name = std::move(name)] {
      return Result<std::optional<TableRow>>(journal_->state().table(name));
    });
  }
  void read_region(std::string id, Completion<Result<std::optional<RegionRow>>> done) override {
    on_disk(ClusterCall::kReadRegion, {}, std::move(done), [this, id = std::move(id)] {
      return Result<std::optional<RegionRow>>(journal_->state().region(id));
    });
  }
  void regions_on(ServerName server, Completion<Result<std::vector<RegionRow>>> done) override {
    on_disk(ClusterCall::kRegionsOn, {}, std::move(done), [this, server = std::move(server)] {
      return Result<std::vector<RegionRow>>(journal_->state().regions_on(server));
    });
  }
  void read_server(ServerName name, Completion<Result<ServerState>> done) override {
    on_disk(ClusterCall::kReadServer, {}, std::move(done), [this, name = std::move(name)] {
      return Result<ServerState>(journal_->state().server(name));
    });
  }
  void write(CatalogueWrite write, Completion<Result<Applied>> done) override {
    std::string key = write.effect_key;
    on_disk(ClusterCall::kWrite, std::move(key), std::move(done),
            [this, write = std::move(write)] { return journal_->apply(write); });
  }

  void write_layout(TableDescriptor descriptor, std::vector<RegionInfo> regions,
                    std::string effect_key, Completion<Status> done) override {
    on_disk(ClusterCall::kWriteLayout, effect_key, std::move(done),
            [this, descriptor = std::move(descriptor), regions = std::move(regions), effect_key] {
              return tables_.write_layout(descriptor, regions, [&] {
                pass(ClusterCall::kWriteLayout, Phase::kPartly, effect_key);
              });
            });
  }
  void refresh(TableName table, Completion<Status> done) override {
    on_disk(ClusterCall::kRefresh, {}, std::move(done), [this, table = std::move(table)] {
      Result<TableDescriptor> descriptor = tables_.read_descriptor(table);
      if (descriptor.ok()) cached_.insert(table);
      return descriptor.status();
    });
  }

  void live_servers(Completion<Result<std::vector<ServerName>>> done) override {
    on_disk(ClusterCall::kLiveServers, {}, std::move(done),
            [this] { return directory_.registered(); });
  }
  void open_region(RegionCall call, Completion<CallOutcome> done) override {
    std::string line = open_line(call);
    call_server(ClusterCall::kOpenRegion, std::move(call), std::move(line), std::move(done));
  }
  void close_region(RegionCall call, Completion<CallOutcome> done) override {
    std::string line = close_line(call);
    call_server(ClusterCall::kCloseRegion, std::move(call), std::move(line), std::move(done));
  }
  void fence(ServerName server, Completion<Status> done) override {
    boost::asio::post(disk_, [this, server = std::move(server), done = std::move(done)] {
      pass(ClusterCall::kFence, Phase::kAsked, {});
      if (Status bad = directory_.unregister_server(server); !bad.ok()) return done(std::move(bad));
      const Result<std::uint16_t> port = directory_.port(server);
      // The server was never registered, so it can never have been called.
      if (port.status().code() == StatusCode::kNotFound) return done(Status());
      if (!port.ok()) return done(port.status());
      client_.ask(*port, "STOP " + to_string(server),
                  [this, server, done](const LineAnswer& answer) {
                    pass(ClusterCall::kFence, Phase::kDone, {});
                    if (has_stopped(answer)) return done(Status());
                    done(Status(StatusCode::kUnavailable,
                                "server " + to_string(server) +
                                    " does not answer and may still serve; it stops by itself"));
                  });
    });
  }

 private:
  void pass(ClusterCall call, Phase phase, const std::string& effect_key) const {
    if (probe_) probe_({call, phase, effect_key});
  }

  /// Runs `work` on the disk thread and answers with its result.
  template <class T, class Work>
  void on_disk(ClusterCall call, std::string effect_key, Completion<T> done, Work work) {
    boost::asio::post(disk_, [this, call, effect_key = std::move(effect_key),
                              done = std::move(done), work = std::move(work)] {
      pass(call, Phase::kAsked, effect_key);
      T answer = work();
      pass(call, Phase::kDone, effect_key);
      done(std::move(answer));
    });
  }

  void call_server(ClusterCall kind, RegionCall call, std::string line,
                   Completion<CallOutcome> done) {
    // Registrations are read on the disk thread, so that this call sees a fence that was asked for
    // earlier.
    boost::asio::post(disk_, [this, kind, call = std::move(call), line = std::move(line),
                              done = std::move(done)] {
      pass(kind, Phase::kAsked, call.effect_key);
      const Result<std::uint16_t> port = directory_.port(call.server);
      if (!port.ok()) {
        return done({CallOutcome::Kind::kNotSent, 0, std::string(port.status().message())});
      }
      client_.ask(*port, line, [this, kind, key = call.effect_key, done](const LineAnswer& answer) {
        pass(kind, Phase::kDone, key);
        done(classify(answer));
      });
    });
  }

  const ClusterDirectory directory_;
  const TableDirectories tables_;
  // Used only by the disk thread once load() has returned.
  const std::unique_ptr<CatalogueJournal> journal_;
  std::set<TableName> cached_;
  const ClusterProbe probe_;

 public:
  ClusterPorts ports{*this, *this, *this, *this};

 private:
  // The threads come last, so they are destroyed first, while everything they use still exists.
  LineClient client_;
  boost::asio::thread_pool disk_{1};
};

Result<std::unique_ptr<LocalCluster>> LocalCluster::open(LocalClusterOptions options) {
  const ClusterDirectory directory(options.directory);
  auto journal = CatalogueJournal::open(directory.journal());
  if (!journal.ok()) return journal.status();
  auto impl = std::make_unique<Impl>(std::move(options), std::move(*journal));
  if (Status bad = impl->load(); !bad.ok()) return bad;
  return std::unique_ptr<LocalCluster>(new LocalCluster(std::move(impl)));
}

LocalCluster::LocalCluster(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LocalCluster::~LocalCluster() = default;
ClusterPorts& LocalCluster::ports() { return impl_->ports; }

}  // namespace pv2

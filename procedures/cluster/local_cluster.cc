// SPDX-License-Identifier: Apache-2.0
//
// LocalCluster: implements the ports with files and sockets. Everything that touches the disk runs
// on one thread, in the order of the calls; calls to servers run on the thread of the LineClient.

#include "pv2/procedures/local_cluster.h"

#include <pv2/base/fields.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/catalogue_journal.h"
#include "cluster/cluster_directory.h"
#include "cluster/line_client.h"
#include "cluster/server_lines.h"
#include "cluster/table_directories.h"

namespace pv2 {

using Phase = ClusterMoment::Phase;

namespace {

// An executor that cannot take a report now (its store is being opened) can soon.
constexpr auto kReportPause = std::chrono::milliseconds(20);

Status replicates_nothing() {
  return {StatusCode::kNotSupported, "the small cluster of files and processes has no replication"};
}

}  // namespace

class LocalCluster::Impl final : public Catalogue,
                                 public TableFiles,
                                 public ServerCalls,
                                 public ServerLogs,
                                 public PeerStorage,
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

  /// Makes the first namespaces, and fills the descriptor cache, as every start does.
  Status load() {
    CatalogueWrite first{.effect_key = "first namespaces"};
    for (const std::string_view name : {kDefaultNamespace, kSystemNamespace}) {
      if (Status bad = tables_.make_namespace(std::string(name)); !bad.ok()) return bad;
      first.namespaces.push_back({std::string(name)});
    }
    if (auto made = journal_->apply(std::move(first)); !made.ok()) return made.status();
    auto directories = tables_.list();
    if (!directories.ok()) return directories.status();
    for (const auto& directory : *directories) cached_.insert(directory.descriptor.name);
    return {};
  }
  void report_to(TakeReport take) {
    boost::asio::post(disk_, [this, take = std::move(take)] { take_report_ = take; });
  }

  // Catalogue

  void read_namespace(std::string name,
                      Completion<Result<std::optional<NamespaceRow>>> done) override {
    read_rows(ClusterCall::kReadNamespace, std::move(done),
              [=](const CatalogueState& rows) { return rows.name_space(name); });
  }
  void tables_of(std::string name_space, Completion<Result<std::vector<TableName>>> done) override {
    read_rows(ClusterCall::kTablesOf, std::move(done),
              [=](const CatalogueState& rows) { return rows.tables_of(name_space); });
  }
  void read_table(TableName name, Completion<Result<std::optional<TableRow>>> done) override {
    read_rows(ClusterCall::kReadTable, std::move(done),
              [=](const CatalogueState& rows) { return rows.table(name); });
  }
  void regions_of(TableName table, Completion<Result<std::vector<RegionRow>>> done) override {
    read_rows(ClusterCall::kRegionsOf, std::move(done),
              [=](const CatalogueState& rows) { return rows.regions_of(table); });
  }
  void read_region(std::string id, Completion<Result<std::optional<RegionRow>>> done) override {
    read_rows(ClusterCall::kReadRegion, std::move(done),
              [=](const CatalogueState& rows) { return rows.region(id); });
  }
  void regions_on(ServerName server, Completion<Result<std::vector<RegionRow>>> done) override {
    read_rows(ClusterCall::kRegionsOn, std::move(done),
              [=](const CatalogueState& rows) { return rows.regions_on(server); });
  }
  void read_server(ServerName name, Completion<Result<ServerRow>> done) override {
    read_rows(ClusterCall::kReadServer, std::move(done),
              [=](const CatalogueState& rows) { return rows.server(name); });
  }
  void write(CatalogueWrite write, Completion<Result<Applied>> done) override {
    std::string key = write.effect_key;
    on_disk(ClusterCall::kWrite, std::move(key), std::move(done), [this, write = std::move(write)] {
      Result<Applied> applied = journal_->apply(write);
      answer_waiting();
      return applied;
    });
  }

  // TableFiles

  void make_namespace(std::string name, std::string effect_key, Completion<Status> done) override {
    on_disk(ClusterCall::kMakeNamespace, std::move(effect_key), std::move(done),
            [=, this] { return tables_.make_namespace(name); });
  }
  void remove_namespace(std::string name, std::string effect_key,
                        Completion<Status> done) override {
    on_disk(ClusterCall::kRemoveNamespace, std::move(effect_key), std::move(done),
            [=, this] { return tables_.remove_namespace(name); });
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
  void read_descriptor(TableName table,
                       Completion<Result<std::optional<TableDescriptor>>> done) override {
    on_disk(ClusterCall::kReadDescriptor, {}, std::move(done), [=, this] {
      using Answer = Result<std::optional<TableDescriptor>>;
      Result<TableDescriptor> read = tables_.read_descriptor(table);
      if (read.status().code() == StatusCode::kNotFound) return Answer(std::nullopt);
      return read.ok() ? Answer(*std::move(read)) : Answer(read.status());
    });
  }
  void write_descriptor(TableDescriptor descriptor, std::string effect_key,
                        Completion<Status> done) override {
    on_disk(ClusterCall::kWriteDescriptor, std::move(effect_key), std::move(done),
            [=, this] { return tables_.write_descriptor(descriptor); });
  }
  void archive_table(TableName table, std::string effect_key, Completion<Status> done) override {
    on_disk(ClusterCall::kArchiveTable, std::move(effect_key), std::move(done),
            [=, this] { return tables_.remove_table(table); });
  }
  void holds_data(TableName /*table*/, Completion<Result<bool>> done) override {
    on_disk(ClusterCall::kHoldsData, {}, std::move(done), [] { return Result<bool>(false); });
  }
  void make_references(std::vector<RegionInfo> /*parents*/, std::vector<RegionInfo> children,
                       std::string effect_key, Completion<Status> done) override {
    on_disk(ClusterCall::kMakeReferences, std::move(effect_key), std::move(done),
            [=, this] { return tables_.make_regions(children); });
  }
  void carry_sequences(std::vector<RegionInfo> /*parents*/, std::vector<RegionInfo> /*children*/,
                       std::string effect_key, Completion<Status> done) override {
    on_disk(ClusterCall::kCarrySequences, std::move(effect_key), std::move(done),
            [] { return Status(); });
  }
  void remove_regions(std::vector<RegionInfo> regions, std::string effect_key,
                      Completion<Status> done) override {
    on_disk(ClusterCall::kRemoveRegions, std::move(effect_key), std::move(done),
            [=, this] { return tables_.remove_regions(regions); });
  }
  void has_recovered_edits(std::vector<RegionInfo> /*regions*/,
                           Completion<Result<bool>> done) override {
    on_disk(ClusterCall::kHasRecoveredEdits, {}, std::move(done),
            [] { return Result<bool>(false); });
  }

  // DescriptorCache

  void refresh(TableName table, Completion<Status> done) override {
    on_disk(ClusterCall::kRefresh, {}, std::move(done), [this, table = std::move(table)] {
      const Result<TableDescriptor> descriptor = tables_.read_descriptor(table);
      if (descriptor.ok()) {
        cached_.insert(table);
      } else if (descriptor.status().code() == StatusCode::kNotFound) {
        cached_.erase(table);
      } else {
        return descriptor.status();
      }
      return Status();
    });
  }

  // ServerCalls

  void dispatch(RemoteOperation operation, Completion<DispatchOutcome> done) override {
    const bool is_known =
        operation.kind == RemoteKind::kOpenRegion || operation.kind == RemoteKind::kCloseRegion;
    if (!is_known) {
      return done({DispatchOutcome::Kind::kRefused, "the servers of the small cluster do not " +
                                                        std::string(to_string(operation.kind))});
    }
    const ClusterCall call = operation.kind == RemoteKind::kOpenRegion ? ClusterCall::kOpenRegion
                                                                       : ClusterCall::kCloseRegion;
    // Registrations are read on the disk thread, so that this call sees a fence that was asked for
    // earlier.
    boost::asio::post(
        disk_, [this, call, operation = std::move(operation), done = std::move(done)] {
          pass(call, Phase::kAsked, operation.effect_key);
          const Result<std::uint16_t> port = directory_.port(operation.server);
          if (!port.ok()) {
            return done({DispatchOutcome::Kind::kNotSent, std::string(port.status().message())});
          }
          client_.ask(*port, line_of(operation),
                      [this, call, operation, done](const LineAnswer& answer) {
                        pass(call, Phase::kDone, operation.effect_key);
                        const LineOutcome outcome = classify(answer);
                        if (outcome.dispatch.kind == DispatchOutcome::Kind::kDone) {
                          report(operation, outcome.sequence);
                        }
                        done(outcome.dispatch);
                      });
        });
  }
  void live_servers(Completion<Result<std::vector<ServerName>>> done) override {
    on_disk(ClusterCall::kLiveServers, {}, std::move(done),
            [this] { return directory_.registered(); });
  }
  void when_crashed(ServerName server, Completion<Status> done) override {
    await(ClusterCall::kWhenCrashed, std::move(done),
          [=](const CatalogueState& rows) { return is_dead(rows.server(server).state); });
  }
  void when_recovered(ServerName server, LogKind kind, Completion<Status> done) override {
    await(ClusterCall::kWhenRecovered, std::move(done), [=](const CatalogueState& rows) {
      const ServerRow row = rows.server(server);
      return is_recovered(row.state) || (kind == LogKind::kMeta && row.meta_recovered);
    });
  }
  void acquire_splitter(ProcedureId /*procedure*/, ServerName /*preferred*/,
                        Completion<Result<ServerName>> done) override {
    // Nobody asks, because there is no log to split.
    done(Result<ServerName>(Status(StatusCode::kNotSupported, "there are no logs to split")));
  }
  void release_splitter(ProcedureId /*procedure*/) override {}

  // ServerLogs

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
  void logs_of(ServerName /*server*/, LogKind /*kind*/,
               Completion<Result<std::vector<std::string>>> done) override {
    on_disk(ClusterCall::kLogsOf, {}, std::move(done),
            [] { return Result<std::vector<std::string>>(std::vector<std::string>()); });
  }
  void archive(ServerName /*server*/, std::string /*log*/, Completion<Status> done) override {
    on_disk(ClusterCall::kArchiveLog, {}, std::move(done), [] { return Status(); });
  }
  void remove(ServerName /*server*/, Completion<Status> done) override {
    on_disk(ClusterCall::kRemoveLogs, {}, std::move(done), [] { return Status(); });
  }

  // PeerStorage

  void read_peer(std::string /*id*/, Completion<Result<std::optional<PeerRow>>> done) override {
    on_disk(ClusterCall::kReadPeer, {}, std::move(done),
            [] { return Result<std::optional<PeerRow>>(std::nullopt); });
  }
  void list_peers(Completion<Result<std::vector<PeerRow>>> done) override {
    on_disk(ClusterCall::kListPeers, {}, std::move(done),
            [] { return Result<std::vector<PeerRow>>(std::vector<PeerRow>()); });
  }
  void write_peer(PeerRow /*peer*/, std::string /*effect_key*/, Completion<Status> done) override {
    on_disk(ClusterCall::kWritePeer, {}, std::move(done), replicates_nothing);
  }
  void remove_peer(std::string /*id*/, std::string /*effect_key*/,
                   Completion<Status> done) override {
    on_disk(ClusterCall::kRemovePeer, {}, std::move(done), [] { return Status(); });
  }
  void has_queues(std::string /*id*/, Completion<Result<bool>> done) override {
    on_disk(ClusterCall::kHasQueues, {}, std::move(done), [] { return Result<bool>(false); });
  }
  void remove_queues(std::string /*id*/, std::string /*effect_key*/,
                     Completion<Status> done) override {
    on_disk(ClusterCall::kRemoveQueues, {}, std::move(done), [] { return Status(); });
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
  template <class T, class Read>
  void read_rows(ClusterCall call, Completion<Result<T>> done, Read read) {
    on_disk(call, {}, std::move(done),
            [this, read = std::move(read)] { return Result<T>(read(journal_->state())); });
  }

  /// Answers when `condition` holds for the rows of the catalogue.
  void await(ClusterCall call, Completion<Status> done,
             std::function<bool(const CatalogueState&)> condition) {
    boost::asio::post(disk_,
                      [this, call, done = std::move(done), condition = std::move(condition)] {
                        pass(call, Phase::kAsked, {});
                        waiting_.push_back({condition, done});
                        answer_waiting();
                      });
  }
  void answer_waiting() {
    std::erase_if(waiting_, [this](const Waiting& entry) {
      if (!entry.condition(journal_->state())) return false;
      entry.done(Status());
      return true;
    });
  }

  /// Hands over what a server has answered, until the executor has taken it. If this process ends
  /// before that, the procedure asks again, and the server answers the same.
  void report(const RemoteOperation& operation, std::uint64_t sequence) {
    RemoteReport report{operation.kind, operation.server, operation.effect_key, true, sequence, ""};
    std::string payload;
    encode_fields(report, FieldSelection::kAll, payload);
    hand_over(operation.procedure, std::move(payload));
  }
  void hand_over(ProcedureId procedure, std::string payload) {
    boost::asio::post(disk_, [this, procedure, payload = std::move(payload)] {
      if (!take_report_) return repeat(procedure, payload);
      take_report_(procedure, payload, [this, procedure, payload](const Status& status) {
        const bool ended = status.code() == StatusCode::kFailedPrecondition ||
                           status.code() == StatusCode::kNotFound ||
                           status.code() == StatusCode::kExpired ||
                           status.code() == StatusCode::kStopping;
        if (!status.ok() && !ended) repeat(procedure, payload);
      });
    });
  }
  void repeat(ProcedureId procedure, const std::string& payload) {
    auto timer = std::make_shared<boost::asio::steady_timer>(disk_, kReportPause);
    timer->async_wait([this, timer, procedure, payload](const boost::system::error_code& error) {
      if (!error) hand_over(procedure, payload);
    });
  }

  struct Waiting {
    std::function<bool(const CatalogueState&)> condition;
    Completion<Status> done;
  };

  const ClusterDirectory directory_;
  const TableDirectories tables_;
  // Used only by the disk thread once load() has returned.
  const std::unique_ptr<CatalogueJournal> journal_;
  std::set<TableName> cached_;
  std::vector<Waiting> waiting_;
  TakeReport take_report_;
  const ClusterProbe probe_;

 public:
  ClusterPorts ports{*this, *this, *this, *this, *this, *this};

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
void LocalCluster::report_to(TakeReport take) { impl_->report_to(std::move(take)); }

}  // namespace pv2

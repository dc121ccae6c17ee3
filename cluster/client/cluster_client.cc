// SPDX-License-Identifier: Apache-2.0
//
// The verbs. Each is begun on the loop and noted there, so that it has an outcome when the client
// ends first.

#include "pv2/cluster/cluster_client.h"

#include <pv2/base/fields.h>
#include <pv2/base/mutex.h>
#include <pv2/procedures/catalogue_state.h>

#include <algorithm>
#include <future>
#include <limits>
#include <map>
#include <random>
#include <utility>

#include "client/region_call.h"
#include "client/region_map.h"
#include "client/server_connections.h"
#include "client/table_scan.h"
#include "server/master_transport.h"
#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "wire/catalogue_rows.h"
#include "wire/methods.h"
#include "wire/region_messages.h"
#include "wire/server_messages.h"

namespace pv2::cluster {
namespace {

Status stopping() { return {StatusCode::kStopping, "the client ends"}; }

/// What a verb answers when it has not come to its end.
template <class T>
T ended_by(const Status& why) {
  if constexpr (std::is_same_v<T, WriteOutcome>) {
    return {.kind = WriteOutcome::Kind::kUnknown, .status = why};
  } else {
    return why;
  }
}

WriteOutcome outcome_of(const CallOutcome& call, const WriteOptions& options) {
  WriteOutcome outcome{.kind = call.kind,
                       .status = call.status,
                       .nonce = options.nonce,
                       .expires_at = options.expires_at};
  if (!call.ok()) return outcome;
  const Status bad = decode_fields(outcome.result, FieldSelection::kAll, call.body);
  if (!bad.ok()) {
    outcome.kind = WriteOutcome::Kind::kUnknown;
    outcome.status = bad;
  }
  return outcome;
}

bool has_rows(const RegionInfo& region, const std::vector<Mutation>& mutations) {
  return std::ranges::all_of(mutations, [&](const Mutation& mutation) {
    return mutation.row >= region.start_key &&
           (region.end_key.empty() || mutation.row < region.end_key);
  });
}

}  // namespace

std::function<Result<std::string>()> master_of_root(std::string root) {
  return [files = FileTree::real("client"), path = ClusterLayout(root).master_address()] {
    return files.read(path);
  };
}

std::function<Result<std::string>()> master_at(std::string address) {
  return [address = std::move(address)] { return Result<std::string>(address); };
}

/// Used on the loop, but for construction and destruction.
class ClusterClient::Core {
 public:
  Core(ClusterClientOptions given, std::unique_ptr<ThreadWorkQueue> client_chores,
       std::shared_ptr<MasterTransport> to_master, std::unique_ptr<RpcClient> master_client)
      : options(std::move(given)),
        chores(std::move(client_chores)),
        random(options.seed != 0 ? options.seed : std::random_device()()),
        master_transport(std::move(to_master)),
        master(std::move(master_client)),
        executor(*master, {.timeout = options.timeout, .clock = options.clock}),
        tasks(options.transport),
        connections(tasks, chores.get(), options.transport, options.token, options.seed),
        map(tasks, *master, *master_transport, connections, options.call_timeout) {}

  /// Begins a verb on the loop. `done` is called once: by the verb, or when the client ends.
  template <class T>
  void begin(Done<T> done, std::function<void(Done<T>)> verb) PV2_EXCLUDES(open_mutex_) {
    const std::uint64_t number = note([done](const Status& why) { done(ended_by<T>(why)); });
    tasks.post([this, number, done = std::move(done), verb = std::move(verb)] {
      verb([this, number, done](T answer) {
        if (strike(number)) done(std::move(answer));
      });
    });
  }
  /// Gives all verbs an outcome, and calls nobody afterwards.
  void end() PV2_EXCLUDES(open_mutex_) {
    run_on_loop(*options.transport, [this] {
      for (const auto& [number, give_up] : strike_all()) give_up(stopping());
    });
    tasks.end();
  }

  void write(const TableName& table, std::vector<Mutation> mutations, const WriteOptions& with,
             const Done<WriteOutcome>& done);
  void ask_region(const RegionInfo& region, std::string_view method,
                  std::optional<Duration> timeout, const Done<Result<std::string>>& done);
  /// All cells of a range of the catalogue.
  void read_catalogue(Scan scan, std::optional<Duration> timeout,
                      Done<Result<CatalogueState>> done);
  void server_status(const ServerName& server, const Done<Result<ServerStatus>>& done);
  /// Adds what the master's cache has beyond `known`.
  void read_descriptors(const std::shared_ptr<std::vector<TableDescriptor>>& known,
                        const Done<Result<std::vector<TableDescriptor>>>& done);
  /// Adds the rest of what the server says to `known`.
  void read_status(const std::string& address, const std::shared_ptr<ServerStatus>& known,
                   const Done<Result<ServerStatus>>& done);
  [[nodiscard]] RegionCallGround ground() { return {tasks, map, connections, random, options}; }

  const ClusterClientOptions options;
  /// For what the loop of a transport with a thread must not do: it may take long, or destroys a
  /// connection.
  const std::unique_ptr<ThreadWorkQueue> chores;
  Random random;
  const std::shared_ptr<MasterTransport> master_transport;
  const std::unique_ptr<RpcClient> master;
  RemoteExecutor executor;
  LoopTasks tasks;
  ServerConnections connections;
  RegionMap map;

 private:
  void read_catalogue(Scan scan, SteadyTime deadline, std::shared_ptr<CatalogueState> state,
                      Done<Result<CatalogueState>> done);

  using GiveUp = std::function<void(const Status&)>;
  using OpenVerbs = std::map<std::uint64_t, GiveUp>;

  std::uint64_t note(GiveUp give_up) {
    const MutexLock lock(open_mutex_);
    open_[next_] = std::move(give_up);
    return next_++;
  }
  bool strike(std::uint64_t number) {
    const MutexLock lock(open_mutex_);
    return open_.erase(number) != 0;
  }
  OpenVerbs strike_all() {
    const MutexLock lock(open_mutex_);
    return std::exchange(open_, {});
  }

  Mutex open_mutex_;
  std::uint64_t next_ PV2_GUARDED_BY(open_mutex_) = 1;
  OpenVerbs open_ PV2_GUARDED_BY(open_mutex_);  ///< Verbs without an outcome.
};

void ClusterClient::Core::write(const TableName& table, std::vector<Mutation> mutations,
                                const WriteOptions& with, const Done<WriteOutcome>& done) {
  if (Status bad = check_mutations(mutations); !bad.ok()) {
    return done({.kind = with.resumed ? WriteOutcome::Kind::kUnknown : WriteOutcome::Kind::kFailed,
                 .status = bad,
                 .nonce = with.nonce,
                 .expires_at = with.expires_at});
  }
  std::string row = mutations.front().row;
  RegionCall::Request request{.table = table,
                              .row = std::move(row),
                              .method = kRegionWrite,
                              .body = [mutations = std::move(mutations), origins = with.origins](
                                          const RegionInfo& region) -> Result<std::string> {
                                if (!has_rows(region, mutations)) {
                                  return Status(StatusCode::kFailedPrecondition,
                                                "the rows of a write have to be in one region");
                                }
                                WriteRequest message{region.id, mutations, 0, origins};
                                std::string body;
                                encode_fields(message, FieldSelection::kAll, body);
                                return body;
                              },
                              .options = {.nonce = with.nonce,
                                          .resumed = with.resumed,
                                          .expires_at = with.expires_at,
                                          .timeout = with.timeout.value_or(options.timeout)}};
  RegionCall::begin(ground(), std::move(request),
                    [with, done](const CallOutcome& outcome, const RegionInfo&) {
                      done(outcome_of(outcome, with));
                    });
}

void ClusterClient::Core::ask_region(const RegionInfo& region, std::string_view method,
                                     std::optional<Duration> timeout,
                                     const Done<Result<std::string>>& done) {
  RegionCall::Request request{
      .table = region.table,
      .row = region.start_key,
      .method = method,
      .body = [id = region.id](const RegionInfo& present) -> Result<std::string> {
        if (present.id != id) return Status(StatusCode::kNotFound, "there is no region " + id);
        RegionRequest message{id};
        std::string body;
        encode_fields(message, FieldSelection::kAll, body);
        return body;
      },
      .options = {.read_only = true, .timeout = timeout.value_or(options.timeout)},
      .is_long = true};
  RegionCall::begin(ground(), std::move(request), [done](CallOutcome outcome, const RegionInfo&) {
    if (!outcome.ok()) return done(outcome.status);
    done(std::move(outcome.body));
  });
}

void ClusterClient::Core::read_catalogue(Scan scan, std::optional<Duration> timeout,
                                         Done<Result<CatalogueState>> done) {
  read_catalogue(std::move(scan), later(tasks.now(), timeout.value_or(options.timeout)),
                 std::make_shared<CatalogueState>(), std::move(done));
}

void ClusterClient::Core::read_catalogue(Scan scan, SteadyTime deadline,
                                         std::shared_ptr<CatalogueState> state,
                                         Done<Result<CatalogueState>> done) {
  TableScan::begin(ground(), meta_table(), scan, deadline - tasks.now(),
                   [this, scan, deadline, state = std::move(state),
                    done = std::move(done)](const Result<ScanPage>& page) {
                     if (!page.ok()) return done(page.status());
                     for (const Cell& cell : page->cells) {
                       if (Status bad = load_cell(cell, *state); !bad.ok()) return done(bad);
                     }
                     if (!page->next_row) return done(std::move(*state));
                     read_catalogue(rest_of(scan, *page), deadline, state, done);
                   });
}

void ClusterClient::Core::server_status(const ServerName& server,
                                        const Done<Result<ServerStatus>>& done) {
  map.read_servers([this, server, done](const Result<ServerList>& list) {
    if (!list.ok()) return done(list.status());
    const auto found = std::ranges::find(list->live, server, &ServerEntry::name);
    if (found == list->live.end()) {
      return done(Status(StatusCode::kNotFound, "there is no live server " + to_string(server)));
    }
    read_status(found->address, std::make_shared<ServerStatus>(), done);
  });
}

void ClusterClient::Core::read_descriptors(
    const std::shared_ptr<std::vector<TableDescriptor>>& known,
    const Done<Result<std::vector<TableDescriptor>>>& done) {
  DescriptorRequest request;
  if (!known->empty()) request.after = known->back().name;
  std::string body;
  encode_fields(request, FieldSelection::kAll, body);
  master->call(std::string(kMasterDescriptors), std::move(body),
               {.read_only = true, .timeout = options.call_timeout},
               tasks.guarded<CallOutcome>([this, known, done](const CallOutcome& outcome) {
                 if (!outcome.ok()) return done(outcome.status.with_context("the master"));
                 DescriptorList list;
                 Status bad = decode_fields(list, FieldSelection::kAll, outcome.body);
                 if (!bad.ok()) return done(bad);
                 std::ranges::move(list.tables, std::back_inserter(*known));
                 if (list.has_more && !known->empty()) return read_descriptors(known, done);
                 done(std::move(*known));
               }));
}

void ClusterClient::Core::read_status(const std::string& address,
                                      const std::shared_ptr<ServerStatus>& known,
                                      const Done<Result<ServerStatus>>& done) {
  StatusRequest request{known->next_region};
  std::string body;
  encode_fields(request, FieldSelection::kAll, body);
  connections.call(
      address, kServerStatus, std::move(body), {.read_only = true, .timeout = options.call_timeout},
      tasks.guarded<CallOutcome>([this, address, known, done](const CallOutcome& outcome) {
        if (!outcome.ok()) return done(outcome.status);
        ServerStatus part;
        if (Status bad = decode_fields(part, FieldSelection::kAll, outcome.body); !bad.ok()) {
          return done(bad);
        }
        std::vector<RegionStatus> regions = std::move(known->regions);
        std::ranges::move(part.regions, std::back_inserter(regions));
        if (known->next_region.empty()) *known = part;  // the first part has the rest
        known->regions = std::move(regions);
        known->next_region = part.next_region;
        if (!known->next_region.empty()) return read_status(address, known, done);
        done(*known);
      }));
}

Result<std::unique_ptr<ClusterClient>> ClusterClient::open(ClusterClientOptions options) {
  if (options.transport == nullptr || !options.find_master) {
    return Status(StatusCode::kInvalidArgument, "a client needs `transport` and `find_master`");
  }
  if (options.pause_min <= Duration::zero() || options.pause_max < options.pause_min ||
      options.call_timeout <= Duration::zero() || options.timeout <= Duration::zero()) {
    return Status(StatusCode::kInvalidArgument,
                  "pauses and timeouts have to be positive, and pause_max at least pause_min");
  }
  std::shared_ptr<Transport> transport = options.transport;
  if (options.nonces == nullptr) options.nonces = std::make_shared<NonceSource>();
  if (options.clock == nullptr) {
    options.clock = std::shared_ptr<Clock>(transport, &transport->clock());
  }
  std::unique_ptr<ThreadWorkQueue> chores;
  if (transport->has_own_thread()) {
    auto started = ThreadWorkQueue::start("chores");
    if (!started.ok()) return started.status();
    chores = *std::move(started);
  }
  auto to_master = std::make_shared<MasterTransport>(transport, options.find_master, chores.get());
  auto master = RpcClient::open({.transport = to_master,
                                 .addresses = {std::string(kMasterAddress)},
                                 .token = options.token,
                                 .seed = options.seed});
  if (!master.ok()) return master.status();
  auto core = std::make_shared<Core>(std::move(options), std::move(chores), std::move(to_master),
                                     *std::move(master));
  return std::unique_ptr<ClusterClient>(new ClusterClient(std::move(transport), std::move(core)));
}

ClusterClient::ClusterClient(std::shared_ptr<Transport> transport, std::shared_ptr<Core> core)
    : transport_(std::move(transport)), core_(std::move(core)) {}
ClusterClient::~ClusterClient() { core_->end(); }

template <class T>
T ClusterClient::wait_for(const std::function<void(Done<T>)>& begin) {
  if (transport_->on_loop() || !transport_->has_own_thread()) {
    return ended_by<T>(
        {StatusCode::kFailedPrecondition, "a verb cannot wait on the thread of the network"});
  }
  std::promise<T> promise;
  begin([&promise](T answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

void ClusterClient::write(const TableName& table, std::vector<Mutation> mutations,
                          WriteOptions options, Done<WriteOutcome> done) {
  Core* const core = core_.get();
  if (!options.nonce) options.nonce = core->options.nonces->next();
  if (!options.expires_at && !options.resumed) {
    options.expires_at = later(core->options.clock->wall_now(), core->options.write_expires_after);
  }
  core->begin<WriteOutcome>(std::move(done), [core, table, mutations = std::move(mutations),
                                              options](Done<WriteOutcome> noted) {
    core->write(table, mutations, options, noted);
  });
}

WriteOutcome ClusterClient::write(const TableName& table, std::vector<Mutation> mutations,
                                  WriteOptions options) {
  return wait_for<WriteOutcome>([&](Done<WriteOutcome> done) {
    write(table, std::move(mutations), std::move(options), std::move(done));
  });
}

WriteOutcome ClusterClient::put(const TableName& table, std::string row, std::string family,
                                std::string qualifier, std::string value, WriteOptions options) {
  return write(table,
               {{MutationKind::kPut, std::move(row), std::move(family), std::move(qualifier),
                 std::move(value)}},
               std::move(options));
}

WriteOutcome ClusterClient::remove(const TableName& table, std::string row, std::string family,
                                   std::string qualifier, WriteOptions options) {
  return write(
      table, {{MutationKind::kDelete, std::move(row), std::move(family), std::move(qualifier), {}}},
      std::move(options));
}

WriteOutcome ClusterClient::remove_row(const TableName& table, std::string row,
                                       WriteOptions options) {
  return write(table, {{MutationKind::kDeleteRow, std::move(row), {}, {}, {}}}, std::move(options));
}

WriteOutcome ClusterClient::append(const TableName& table, std::string row, std::string family,
                                   std::string qualifier, std::string value, WriteOptions options) {
  return write(table,
               {{MutationKind::kAppend, std::move(row), std::move(family), std::move(qualifier),
                 std::move(value)}},
               std::move(options));
}

WriteOutcome ClusterClient::increment(const TableName& table, std::string row, std::string family,
                                      std::string qualifier, std::int64_t amount,
                                      WriteOptions options) {
  return write(table,
               {{MutationKind::kIncrement,
                 std::move(row),
                 std::move(family),
                 std::move(qualifier),
                 {},
                 amount}},
               std::move(options));
}

void ClusterClient::get(const TableName& table, const std::string& row,
                        std::vector<std::string> families, Done<Result<std::vector<Cell>>> done,
                        std::optional<Duration> timeout) {
  scan(
      table,
      {.start_row = row,
       .end_row = row + '\0',
       .families = std::move(families),
       .rows_max = 1,
       .bytes_max = std::numeric_limits<std::uint64_t>::max()},
      [done = std::move(done)](Result<ScanPage> page) {
        if (!page.ok()) return done(page.status());
        done(std::move(page->cells));
      },
      timeout);
}

Result<std::vector<Cell>> ClusterClient::get(const TableName& table, const std::string& row,
                                             std::vector<std::string> families) {
  return wait_for<Result<std::vector<Cell>>>([&](Done<Result<std::vector<Cell>>> done) {
    get(table, row, std::move(families), std::move(done));
  });
}

void ClusterClient::scan(const TableName& table, const Scan& scan, Done<Result<ScanPage>> done,
                         std::optional<Duration> timeout) {
  core_->begin<Result<ScanPage>>(
      std::move(done), [core = core_.get(), table, scan, timeout](Done<Result<ScanPage>> noted) {
        TableScan::begin(core->ground(), table, scan, timeout.value_or(core->options.timeout),
                         std::move(noted));
      });
}

Result<ScanPage> ClusterClient::scan(const TableName& table, const Scan& scan) {
  return wait_for<Result<ScanPage>>(
      [&](Done<Result<ScanPage>> done) { this->scan(table, scan, std::move(done)); });
}

void ClusterClient::flush(const RegionInfo& region, Done<Status> done,
                          std::optional<Duration> timeout) {
  core_->begin<Status>(std::move(done), [core = core_.get(), region, timeout](Done<Status> noted) {
    core->ask_region(region, kRegionFlush, timeout,
                     [noted](const Result<std::string>& answer) { noted(answer.status()); });
  });
}

Status ClusterClient::flush(const RegionInfo& region) {
  return wait_for<Status>([&](Done<Status> done) { flush(region, std::move(done)); });
}

void ClusterClient::compact(const RegionInfo& region, Done<Status> done,
                            std::optional<Duration> timeout) {
  core_->begin<Status>(std::move(done), [core = core_.get(), region, timeout](Done<Status> noted) {
    core->ask_region(region, kRegionCompact, timeout,
                     [noted](const Result<std::string>& answer) { noted(answer.status()); });
  });
}

Status ClusterClient::compact(const RegionInfo& region) {
  return wait_for<Status>([&](Done<Status> done) { compact(region, std::move(done)); });
}

void ClusterClient::split_point(const RegionInfo& region, Done<Result<std::string>> done,
                                std::optional<Duration> timeout) {
  core_->begin<Result<std::string>>(
      std::move(done), [core = core_.get(), region, timeout](Done<Result<std::string>> noted) {
        core->ask_region(region, kRegionSplitPoint, timeout,
                         [noted](const Result<std::string>& answer) {
                           if (!answer.ok()) return noted(answer);
                           SplitPoint point;
                           Status bad = decode_fields(point, FieldSelection::kAll, *answer);
                           if (!bad.ok()) return noted(bad);
                           noted(std::move(point.row));
                         });
      });
}

Result<std::string> ClusterClient::split_point(const RegionInfo& region) {
  return wait_for<Result<std::string>>(
      [&](Done<Result<std::string>> done) { split_point(region, std::move(done)); });
}

void ClusterClient::regions_of(const TableName& table, Done<Result<std::vector<RegionRow>>> done) {
  core_->begin<Result<std::vector<RegionRow>>>(
      std::move(done), [core = core_.get(), table](Done<Result<std::vector<RegionRow>>> noted) {
        core->map.read_regions(table, std::move(noted));
      });
}

Result<std::vector<RegionRow>> ClusterClient::regions_of(const TableName& table) {
  return wait_for<Result<std::vector<RegionRow>>>(
      [&](Done<Result<std::vector<RegionRow>>> done) { regions_of(table, std::move(done)); });
}

void ClusterClient::tables(Done<Result<std::vector<TableRow>>> done,
                           std::optional<Duration> timeout) {
  core_->begin<Result<std::vector<TableRow>>>(
      std::move(done), [core = core_.get(), timeout](Done<Result<std::vector<TableRow>>> noted) {
        core->read_catalogue({.start_row = "t ", .end_row = "t!", .families = {}}, timeout,
                             [noted](const Result<CatalogueState>& state) {
                               if (!state.ok()) return noted(state.status());
                               std::vector<TableRow> rows;
                               for (const auto& [name, kept] : state->tables()) {
                                 rows.push_back(kept.row);
                               }
                               noted(std::move(rows));
                             });
      });
}

Result<std::vector<TableRow>> ClusterClient::tables() {
  return wait_for<Result<std::vector<TableRow>>>(
      [&](Done<Result<std::vector<TableRow>>> done) { tables(std::move(done)); });
}

void ClusterClient::namespaces(Done<Result<std::vector<NamespaceRow>>> done,
                               std::optional<Duration> timeout) {
  core_->begin<Result<std::vector<NamespaceRow>>>(
      std::move(done),
      [core = core_.get(), timeout](Done<Result<std::vector<NamespaceRow>>> noted) {
        core->read_catalogue({.start_row = "n ", .end_row = "n!", .families = {}}, timeout,
                             [noted](const Result<CatalogueState>& state) {
                               if (!state.ok()) return noted(state.status());
                               std::vector<NamespaceRow> rows;
                               for (const auto& [name, kept] : state->namespaces()) {
                                 rows.push_back(kept.row);
                               }
                               noted(std::move(rows));
                             });
      });
}

Result<std::vector<NamespaceRow>> ClusterClient::namespaces() {
  return wait_for<Result<std::vector<NamespaceRow>>>(
      [&](Done<Result<std::vector<NamespaceRow>>> done) { namespaces(std::move(done)); });
}

void ClusterClient::servers(Done<Result<ServerList>> done) {
  core_->begin<Result<ServerList>>(std::move(done),
                                   [core = core_.get()](Done<Result<ServerList>> noted) {
                                     core->map.read_servers(std::move(noted));
                                   });
}

Result<ServerList> ClusterClient::servers() {
  return wait_for<Result<ServerList>>(
      [&](Done<Result<ServerList>> done) { servers(std::move(done)); });
}

void ClusterClient::descriptors(Done<Result<std::vector<TableDescriptor>>> done) {
  core_->begin<Result<std::vector<TableDescriptor>>>(
      std::move(done), [core = core_.get()](Done<Result<std::vector<TableDescriptor>>> noted) {
        core->read_descriptors(std::make_shared<std::vector<TableDescriptor>>(), noted);
      });
}

Result<std::vector<TableDescriptor>> ClusterClient::descriptors() {
  return wait_for<Result<std::vector<TableDescriptor>>>(
      [&](Done<Result<std::vector<TableDescriptor>>> done) { descriptors(std::move(done)); });
}

void ClusterClient::server_status(const ServerName& server, Done<Result<ServerStatus>> done) {
  core_->begin<Result<ServerStatus>>(
      std::move(done), [core = core_.get(), server](Done<Result<ServerStatus>> noted) {
        core->server_status(server, noted);
      });
}

Result<ServerStatus> ClusterClient::server_status(const ServerName& server) {
  return wait_for<Result<ServerStatus>>(
      [&](Done<Result<ServerStatus>> done) { server_status(server, std::move(done)); });
}

RemoteExecutor& ClusterClient::executor() noexcept { return core_->executor; }

}  // namespace pv2::cluster

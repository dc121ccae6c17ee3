// SPDX-License-Identifier: Apache-2.0
//
// cluster_bench: a real cluster of processes on this machine: a table of 10 000 regions is created
// on three region servers, one of them is killed, and its regions open on the others. Each region
// has a row, so the server that dies leaves edits to be split and replayed. What is measured is the
// master's side: time, processor time, memory, and durable records per region. The lease is part of
// a recovery, and is shown apart.
//
//     cluster_bench [--regions=N] [--quick] ...

#include <fmt/format.h>
#include <pv2/base/standard_files.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/cluster/cluster_processes.h>
#include <pv2/cluster/master.h>
#include <pv2/procedures/cluster_ports.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/server_crash.h>
#include <pv2/rpc/tcp_transport.h>
#include <pv2/store/leveldb_procedure_store.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "harness/engine.h"
#include "harness/machine.h"
#include "harness/options.h"
#include "harness/raw_sync.h"
#include "harness/result_row.h"
#include "harness/rounds.h"
#include "harness/store_probe.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

namespace fs = std::filesystem;
using cluster::ClusterClient;
using cluster::ClusterProcesses;

constexpr Duration kLease = std::chrono::seconds(3);
constexpr Duration kPatience = std::chrono::minutes(10);
const TableName kTable{"default", "t"};

// What the master's store has been given since it was opened. Its process writes it into a file ten
// times a second.
struct Traffic {
  double requests = 0;
  double syncs = 0;
  double bytes = 0;
};

std::string traffic_file(const std::string& root) { return root + "/traffic"; }

Traffic read_traffic(const std::string& root) {
  Traffic traffic;
  std::ifstream(traffic_file(root)) >> traffic.requests >> traffic.syncs >> traffic.bytes;
  return traffic;
}

int run_measured_master(const std::string& root) {
  StoreProbe* probe = nullptr;
  Traffic traffic;
  Chore chore;
  return cluster::run_master(
      {.root = root,
       .lease = kLease,
       .make_store =
           [&](const std::string& path) {
             auto owned = std::make_unique<StoreProbe>(leveldb(path));
             probe = owned.get();
             probe->begin_window();
             return owned;
           },
       .on_loaded =
           [&](ProcedureExecutor& executor) {
             auto added = executor.add_chore("traffic", std::chrono::milliseconds(100), [&, root] {
               const StoreTraffic window = probe->end_window();
               probe->begin_window();
               traffic.requests += static_cast<double>(window.requests);
               traffic.syncs += static_cast<double>(window.syncs);
               traffic.bytes += window.record_bytes;
               std::ofstream(traffic_file(root) + "~")
                   << traffic.requests << ' ' << traffic.syncs << ' ' << traffic.bytes << '\n';
               fs::rename(traffic_file(root) + "~", traffic_file(root));
             });
             chore = must(std::move(added), "the chore that counts");
           }});
}

/// A number of /proc/<pid>/status, in bytes.
double status_bytes(pid_t pid, std::string_view field) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field)) return std::stod(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

double cpu_seconds(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string skipped;
  std::getline(file, skipped, ')');
  for (int i = 0; i < 11; ++i) file >> skipped;
  double user = 0;
  double system = 0;
  file >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// What the master's process has used so far.
struct Reading {
  BenchClock::time_point at = BenchClock::now();
  double cpu = 0;
  Traffic traffic;
};

class Cluster {
 public:
  Cluster(const std::string& root, std::size_t servers)
      : processes_({.root = root, .lease = kLease}) {
    must(processes_.start_master({"--measured"}), "the master");
    for (std::size_t i = 1; i <= servers; ++i) {
      must(processes_.start_server(fmt::format("rs{}", i)), "a server");
    }
    client_ = must(ClusterClient::open({.find_master = cluster::master_of_root(root),
                                        .transport = must(tcp_transport(), "the network"),
                                        .timeout = kPatience}),
                   "the client");
  }

  /// After the counts of everything that happened are written.
  [[nodiscard]] Reading read() {
    Reading reading;
    reading.cpu = cpu_seconds(master());
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    reading.traffic = read_traffic(processes_.root());
    return reading;
  }
  [[nodiscard]] ClusterProcesses& processes() noexcept { return processes_; }
  [[nodiscard]] ClusterClient& client() noexcept { return *client_; }
  [[nodiscard]] pid_t master() { return processes_.master()->pid(); }

 private:
  ClusterProcesses processes_;
  std::unique_ptr<ClusterClient> client_;
};

void fill(ResultRow& row, const Reading& begin, const Reading& end, double regions) {
  const double seconds = std::chrono::duration<double>(end.at - begin.at).count();
  row.set("seconds", seconds);
  row.set("regions_per_second", regions / seconds);
  row.set("master_cpu_us_per_region", (end.cpu - begin.cpu) / regions * 1e6);
  row.set("records_per_region", (end.traffic.requests - begin.traffic.requests) / regions);
  row.set("record_bytes_per_region", (end.traffic.bytes - begin.traffic.bytes) / regions);
  row.set("syncs_per_region", (end.traffic.syncs - begin.traffic.syncs) / regions);
}

void set_memory(ResultRow& row, Cluster& cluster, double regions) {
  row.set("master_resident_mb", status_bytes(cluster.master(), "VmRSS:") / 1e6);
  row.set("master_peak_mb", status_bytes(cluster.master(), "VmHWM:") / 1e6);
  row.set("master_peak_bytes_per_region", status_bytes(cluster.master(), "VmHWM:") / regions);
}

void create(Cluster& cluster, std::uint64_t regions) {
  progress(fmt::format("creating a table of {} regions", regions));
  const Reading begin = cluster.read();
  const SubmitOutcome accepted = cluster.client().executor().submit(
      CreateTable(ports_elsewhere(), {kTable, {"f"}}, even_split_keys(regions)),
      {.timeout = kPatience});
  must(accepted.status, "CreateTable");
  const ProcedureResult result =
      must(cluster.client().executor().wait(accepted.id, kPatience), "the end of CreateTable");
  must(result.status, "CreateTable");
  const Reading end = cluster.read();
  ResultRow row("cluster_create");
  row.set("regions", static_cast<double>(regions));
  fill(row, begin, end, static_cast<double>(regions));
  set_memory(row, cluster, static_cast<double>(regions));
  row.print();
}

/// A row for each region.
void put_rows(Cluster& cluster) {
  progress("putting a row into each region");
  const auto rows = must(cluster.client().regions_of(kTable), "the regions");
  std::atomic<std::size_t> missing = rows.size();
  for (const RegionRow& row : rows) {
    cluster.client().write(kTable,
                           {{.row = row.region.start_key + "r",
                             .family = "f",
                             .qualifier = "q",
                             .value = std::string(100, 'v')}},
                           {.timeout = kPatience}, [&](const cluster::WriteOutcome& outcome) {
                             must(outcome.status, "a put");
                             --missing;
                           });
  }
  wait_until("each region has a row", [&] { return missing == 0; });
}

/// `created`: how many regions the table has.
void crash(Cluster& cluster, std::uint64_t created) {
  const ServerName victim = cluster.processes().servers().front();
  double regions = 0;
  for (const RegionRow& row : must(cluster.client().regions_of(kTable), "the regions")) {
    if (row.server == victim) ++regions;
  }
  progress(fmt::format("killing a server with {} regions", regions));
  const Reading begin = cluster.read();
  must(cluster.processes().kill_server(victim.host), "the kill");
  const auto killed = BenchClock::now();
  Result<ProcedureId> id = Status(StatusCode::kNotFound, "");
  while (!id.ok()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    id = cluster.client().executor().find(crash_nonce(victim));
  }
  const auto noticed = BenchClock::now();
  const ProcedureResult result =
      must(cluster.client().executor().wait(*id, kPatience), "the end of ServerCrash");
  must(result.status, "ServerCrash");
  const Reading end = cluster.read();
  for (const RegionRow& row : must(cluster.client().regions_of(kTable), "the regions")) {
    if (row.server == victim || row.state != RegionState::kOpen) die("a region is not back");
  }
  ResultRow row("cluster_crash");
  row.set("table_regions", static_cast<double>(created));
  row.set("regions", regions);
  fill(row, {noticed, begin.cpu, begin.traffic}, end, regions);
  row.set("seconds_until_noticed", std::chrono::duration<double>(noticed - killed).count());
  set_memory(row, cluster, regions);
  row.print();
}

int run(int argc, char** argv) {
  const std::span<char* const> arguments(argv + 1, static_cast<std::size_t>(argc - 1));
  if (arguments.size() == 4 && std::string_view(arguments[3]) == "--measured") {
    return run_measured_master(arguments[1]);
  }
  if (const auto code = cluster::run_as_cluster_process(arguments)) return *code;
  std::uint64_t regions = 0;
  const Options options = parse_options(argc, argv, "cluster_bench [--regions=N]",
                                        [&](std::string_view name, std::string_view value) {
                                          if (name != "--regions") return false;
                                          regions = number_in(value);
                                          return regions != 0;
                                        });
  if (regions == 0) regions = options.quick ? 1000 : 10'000;
  const WorkFolder folder(options.data);
  Cluster cluster(folder.path() + "/cluster", 3);
  create(cluster, regions);
  put_rows(cluster);
  crash(cluster, regions);
  return 0;
}

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) {
  pv2::reserve_standard_files();
  return pv2::bench::run(argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
//
// durable_steps_bench: how many steps per second become durable on LevelDB, as a function of the
// number of procedures in flight; how long one commit takes; what the engine costs in addition to
// LevelDB; how many bytes are written. A raw sync is measured next to each window, and each ratio
// is computed from such neighbours.
//
//     durable_steps_bench [--workers=N] [--points=1,64,4096] [--quick] ...

#include <fmt/format.h>
#include <pv2/store/leveldb_procedure_store.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "harness/closed_load.h"
#include "harness/engine.h"
#include "harness/five_steps.h"
#include "harness/machine.h"
#include "harness/options.h"
#include "harness/plain_leveldb.h"
#include "harness/raw_sync.h"
#include "harness/rounds.h"
#include "harness/store_probe.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

// Here the engine is the limit and not the disk, so the cost of its steps is compared with LevelDB
// at this point.
constexpr unsigned kManyInFlight = 4096;
// Some 200 000 steps: enough that LevelDB compacts while they are written.
constexpr std::size_t kRecordedRequests = 300'000;
constexpr std::chrono::seconds kRecordingTimeMax{5};

struct Settings {
  Options options;
  unsigned workers = 1;
  std::vector<unsigned> points;
};

class DurableSteps {
 public:
  explicit DurableSteps(Settings settings)
      : settings_(std::move(settings)),
        folder_(settings_.options.data),
        raw_(folder_.fresh("raw-sync")) {}

  void run() {
    for (unsigned round = 0; round < settings_.options.runs; ++round) {
      progress(fmt::format("durable steps, round {} of {}", round + 1, settings_.options.runs));
      for (const unsigned in_flight : settings_.points) measure(in_flight);
      if (stream_.requests.empty()) continue;
      for (const unsigned in_flight : settings_.points) measure_plain(in_flight);
    }
    print();
  }

 private:
  RawSyncs measure_raw() {
    const UsageMeter meter;
    const RawSyncs raw = raw_.measure(settings_.options.raw_window);
    raw_rounds_.add({.values = {{"raw_syncs_per_s", raw.per_second},
                                {"p50_us", raw.p50_us},
                                {"p99_us", raw.p99_us}},
                     .other_cores = meter.stop().other_cores});
    return raw;
  }

  // What thousands in flight need is mostly in the cache that this processor shares with others.
  double measure_loads() {
    const UsageMeter meter;
    const double ns = random_load_ns(std::size_t{8} << 20);
    load_rounds_.add({.values = {{"ns_per_load", ns}}, .other_cores = meter.stop().other_cores});
    return ns;
  }

  void measure(unsigned in_flight) {
    const RawSyncs raw = measure_raw();
    const double ns_per_load = measure_loads();
    const std::string path = folder_.fresh("store");
    auto owned_probe = std::make_unique<StoreProbe>(leveldb(path));
    StoreProbe& probe = *owned_probe;  // owned by the executor until that is destroyed
    ProcedureRegistry registry;
    registry.add<FiveSteps>(no_work_);
    const auto executor =
        open_engine(std::move(owned_probe), std::move(registry), {.workers = settings_.workers});
    Round round;
    {
      ClosedLoad load(*executor, settings_.options.callbacks,
                      std::bind_front(submit_five_steps, std::cref(no_work_)));
      load.start(in_flight);
      std::this_thread::sleep_for(settings_.options.warm_up);
      round = measure_window(load, probe, raw, in_flight, path);
      round.values["ns_per_load"] = ns_per_load;
      if (in_flight == kManyInFlight) record(probe);
    }
    executor->stop();
    note_processors(round);  // before LevelDB alone is measured
    folder_.remove(path);
    if (in_flight == kManyInFlight) compare_with_leveldb(round);
    rounds_[in_flight].add(std::move(round));
  }

  // The files of the log grow by zeros only, ahead of time.
  static double log_file_bytes(const std::string& path) {
    double bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const bool is_log = entry.path().filename().string().starts_with("PV2-STEPS-");
      if (is_log) bytes += static_cast<double>(entry.file_size());
    }
    return bytes;
  }

  Round measure_window(const ClosedLoad& load, StoreProbe& probe, const RawSyncs& raw,
                       unsigned in_flight, const std::string& path) {
    const double zeros_before = log_file_bytes(path);
    const std::uint64_t ended_before = load.ended();
    probe.begin_window();
    const UsageMeter meter;
    std::this_thread::sleep_for(settings_.options.window);
    const std::uint64_t ended = load.ended() - ended_before;
    const Usage usage = meter.stop();
    StoreTraffic traffic = probe.end_window();
    const double zeros = log_file_bytes(path) - zeros_before;
    const double steps = static_cast<double>(ended * kStepsPerProcedure);
    const double steps_per_s = steps / usage.seconds;
    const double p50 = traffic.latencies.percentile(50);
    const double p99 = traffic.latencies.percentile(99);
    Round round;
    round.other_cores = usage.other_cores;
    round.values = {
        {"steps_per_s", steps_per_s},
        {"raw_syncs_per_s", raw.per_second},
        {"ratio", steps_per_s / raw.per_second},
        {"ratio_per_in_flight", steps_per_s / raw.per_second / in_flight},
        {"commits_per_s", static_cast<double>(traffic.requests) / usage.seconds},
        {"syncs_per_s", static_cast<double>(traffic.syncs) / usage.seconds},
        {"records_per_sync",
         static_cast<double>(traffic.requests) / static_cast<double>(traffic.syncs)},
        {"cpu_us_per_step", usage.cpu_seconds / steps * 1e6},
        {"p50_us", p50},
        {"p99_us", p99},
        {"p50_over_raw_p50", p50 / raw.p50_us},
        {"p99_over_raw_p50", p99 / raw.p50_us},
        {"record_bytes_per_step", traffic.record_bytes / steps},
        {"written_over_record_bytes", (usage.written_bytes - zeros) / traffic.record_bytes},
        {"zeros_over_record_bytes", zeros / traffic.record_bytes},
        {"device_over_record_bytes", usage.device_bytes / traffic.record_bytes},
    };
    return round;
  }

  void record(StoreProbe& probe) {
    probe.record(kRecordedRequests);
    const auto end = BenchClock::now() + kRecordingTimeMax;
    while (!probe.recorded() && BenchClock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    stream_ = probe.take_recording();
  }

  // Writes the same requests without an engine, with the recorded number per sync.
  void compare_with_leveldb(Round& round) {
    const std::string path = folder_.fresh("plain");
    const PlainWrites plain = write_plain(stream_, path, 0, std::chrono::seconds(5));
    folder_.remove(path);
    round.values["leveldb_cpu_us_per_step"] = plain.cpu_us_per_step;
    round.values["leveldb_steps_per_s"] = plain.steps_per_second;
    round.values["engine_cpu_us_per_step"] =
        round.values["cpu_us_per_step"] - plain.cpu_us_per_step;
    round.other_cores = std::max(round.other_cores, plain.other_cores);
  }

  // The limit in the chart: as many records per sync as there are procedures in flight.
  void measure_plain(unsigned in_flight) {
    const RawSyncs raw = measure_raw();
    const std::string path = folder_.fresh("plain");
    const PlainWrites plain = write_plain(stream_, path, in_flight, settings_.options.raw_window);
    folder_.remove(path);
    plain_rounds_[in_flight].add({.values = {{"steps_per_s", plain.steps_per_second},
                                             {"raw_syncs_per_s", raw.per_second},
                                             {"ratio", plain.steps_per_second / raw.per_second},
                                             {"syncs_per_s", plain.syncs_per_second},
                                             {"cpu_us_per_step", plain.cpu_us_per_step}},
                                  .other_cores = plain.other_cores});
  }

  void print() const {
    ResultRow("fixed_loop").set("ns_per_round", fixed_loop_ns()).print();
    ResultRow loads("random_loads");
    load_rounds_.fill(loads, "ns_per_load");
    loads.print();
    ResultRow raw("raw_sync");
    raw_rounds_.fill(raw, "raw_syncs_per_s");
    raw.print();
    for (const auto& [in_flight, rounds] : rounds_) {
      ResultRow row("durable_steps");
      row.set("in_flight", in_flight).set("workers", settings_.workers).set("store", "leveldb");
      row.set("scheduler", to_string(SchedulerKind::kMaster));
      rounds.fill(row, "steps_per_s");
      if (const auto alone = plain_rounds_.find(in_flight); alone != plain_rounds_.end()) {
        row.set("over_leveldb_alone",
                rounds.median_of("steps_per_s") / alone->second.median_of("steps_per_s"));
        row.set("cpu_over_leveldb_alone",
                rounds.median_of("cpu_us_per_step") / alone->second.median_of("cpu_us_per_step"));
      }
      row.print();
    }
    for (const auto& [in_flight, rounds] : plain_rounds_) {
      ResultRow row("leveldb_alone");
      row.set("in_flight", in_flight).set("workers", 1).set("store", "leveldb");
      rounds.fill(row, "steps_per_s");
      row.print();
    }
  }

  const Settings settings_;
  const UserWork no_work_;
  WorkFolder folder_;
  RawSync raw_;
  RecordedStream stream_;
  Rounds raw_rounds_;
  Rounds load_rounds_;
  std::map<unsigned, Rounds> rounds_;
  std::map<unsigned, Rounds> plain_rounds_;
};

std::vector<unsigned> numbers_in(std::string_view list) {
  std::vector<unsigned> numbers;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    numbers.push_back(static_cast<unsigned>(number_in(list.substr(0, comma))));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return numbers;
}

int run(int argc, char** argv) {
  Settings settings;
  settings.options =
      parse_options(argc, argv, "durable_steps_bench [--workers=N] [--points=1,64,4096]",
                    [&](std::string_view name, std::string_view value) {
                      if (name == "--workers")
                        settings.workers = static_cast<unsigned>(number_in(value));
                      if (name == "--points") settings.points = numbers_in(value);
                      return (name == "--workers" && settings.workers != 0) ||
                             (name == "--points" && !settings.points.empty());
                    });
  if (settings.points.empty()) {
    settings.points = settings.options.quick
                          ? std::vector<unsigned>{1, 64, 1024, kManyInFlight}
                          : std::vector<unsigned>{1, 4, 16, 64, 256, 1024, kManyInFlight, 16384};
  }
  DurableSteps(std::move(settings)).run();
  return 0;
}

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) { return pv2::bench::run(argc, argv); }

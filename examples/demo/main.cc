// SPDX-License-Identifier: Apache-2.0
//
// pv2_demo: creates a table while the master is killed and started again, then recovers a region
// server that is killed while a client writes, and checks the cluster after each. The program
// starts itself again for the processes of the story. Exit code: 0 all passed, 1 something failed,
// 2 a bad option.

#include <pv2/base/standard_files.h>
#include <pv2/cluster/cluster_processes.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "demo_master.h"
#include "options.h"
#include "report.h"
#include "round.h"

namespace demo {
namespace {

namespace fs = std::filesystem;

/// Where a run keeps its data. A temporary place is removed unless a check failed.
struct Place {
  std::string directory;
  bool temporary = false;
};

pv2::Result<Place> make_place(const std::string& data) {
  std::error_code error;
  if (data.empty()) {
    std::string name = (fs::temp_directory_path(error) / "pv2-demo.XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) return Place{name, true};
    return pv2::Status(pv2::StatusCode::kIoError, "cannot make a directory like " + name);
  }
  fs::create_directories(data, error);
  if (error) {
    return pv2::Status(pv2::StatusCode::kInvalidArgument,
                       "--data: cannot create " + data + ": " + error.message());
  }
  if (!fs::is_empty(data, error) || error) {
    return pv2::Status(pv2::StatusCode::kInvalidArgument,
                       "--data: " + data + " is not empty; name a new directory");
  }
  return Place{fs::absolute(data).string(), false};
}

/// Plays one round in `directory` and returns its report. Every round can be repeated from its own
/// seed.
Report play(const Options& options, const std::string& directory, std::uint64_t round) {
  const std::uint64_t seed = options.seed + round - 1;
  pv2::Random random(seed);
  const RoundPlan plan = make_plan(options.kill_point, random);
  const bool story = options.rounds == 1;
  Report report(story ? Report::Style::kStory : Report::Style::kFailuresOnly);
  fs::create_directories(directory);
  const auto begin = std::chrono::steady_clock::now();
  Round played(directory, options, plan, random, report);
  played.play();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!story) {
    std::printf("round %llu (seed %llu): %s: %s, %d kills, %d checks, %.2f s\n",
                static_cast<unsigned long long>(round), static_cast<unsigned long long>(seed),
                to_string(plan).c_str(), report.failed() == 0 ? "ok" : "FAILED", played.kills(),
                report.passed() + report.failed(), took.count());
    std::fflush(stdout);
  }
  return report;
}

int run(Options options) {
  auto place = make_place(options.data);
  if (!place.ok()) {
    std::fprintf(stderr, "pv2_demo: %s\n%s\n", std::string(place.status().message()).c_str(),
                 usage().c_str());
    return 2;
  }
  if (options.seed == 0) options.seed = 1 + std::random_device()() % 1'000'000;
  if (options.kill_point && options.kill_point->kind == KillPoint::Kind::kRandom) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
  }

  int passed = 0;
  int failed = 0;
  for (std::uint64_t round = 1; round <= options.rounds; ++round) {
    const std::string directory = place->directory + "/round-" + std::to_string(round);
    const Report report = play(options, directory, round);
    passed += report.passed();
    failed += report.failed();
    std::error_code ignored;
    if (report.failed() != 0) {
      std::printf("   kept for you to look at: %s\n", directory.c_str());
    } else if (place->temporary) {
      fs::remove_all(directory, ignored);
    }
  }
  std::error_code ignored;
  if (place->temporary && failed == 0) fs::remove_all(place->directory, ignored);
  std::printf("\n%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

int main_of_the_demo(std::span<char* const> arguments) {
  const auto options = parse_options(arguments);
  if (!options.ok()) {
    std::fprintf(stderr, "pv2_demo: %s\n%s\n", std::string(options.status().message()).c_str(),
                 usage().c_str());
    return 2;
  }
  if (options->help) {
    std::puts(help().c_str());
    return 0;
  }
  return run(*options);
}

int dispatch(std::span<char* const> arguments) {
  if (const auto code = run_demo_master(arguments)) return *code;
  if (const auto code = pv2::cluster::run_as_cluster_process(arguments)) return *code;
  return main_of_the_demo(arguments);
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) {
  pv2::reserve_standard_files();
  try {
    return demo::dispatch(std::span<char* const>(argv + 1, static_cast<std::size_t>(argc - 1)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pv2_demo: %s\n", error.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// cluster_program: starts a cluster in the directory PV2_TEST_ROOT, says "runs", and ends it.
// PV2_TEST_ARGUMENTS says what it tells run_as_cluster_process(): "whole" arguments, the "rest"
// after its name, "nothing", or that it is "uncalled". If its children start children, they end at
// the third generation, so that no fault leaves processes behind.

#include <pv2/cluster/cluster_processes.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<int> be_a_process(std::span<char* const> arguments) {
  const std::string told = variable("PV2_TEST_ARGUMENTS");
  if (told == "uncalled") return std::nullopt;
  if (told == "rest") arguments = arguments.subspan(1);
  if (told == "nothing") arguments = {};
  return pv2::cluster::run_as_cluster_process(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  const int generation = std::atoi(variable("PV2_TEST_GENERATION").c_str());
  if (generation > 2) {
    std::fputs("a child has started a child\n", stderr);
    return 7;
  }
  ::setenv("PV2_TEST_GENERATION", std::to_string(generation + 1).c_str(), 1);
  if (const auto code = be_a_process({argv, static_cast<std::size_t>(argc)})) return *code;
  pv2::cluster::ClusterProcesses processes({.root = variable("PV2_TEST_ROOT")});
  const pv2::Status started = processes.start(1);
  std::puts(started.ok() ? "runs" : started.to_string().c_str());
  return started.ok() ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
//
// A program that starts itself again as the processes of a cluster: what it may pass to
// run_as_cluster_process(), and that a child which is not reached by it starts nothing.

#include <string>

#include "support/program_run.h"
#include "support/temporary_directory.h"

namespace pv2::testing::cluster_processes_test {
namespace {

/// Runs cluster_program.
ProgramRun run(const std::string& told, const std::string& arguments = {}) {
  const TemporaryDirectory directory;
  return run_program("PV2_TEST_ARGUMENTS=" + told + " PV2_TEST_ROOT='" + directory.path("cluster") +
                     "' " + PV2_CLUSTER_PROGRAM + " " + arguments);
}

}  // namespace

TEST_CASE("a process of a cluster may look for its arguments with the program's name or without") {
  for (const std::string told : {"whole", "rest"}) {
    const ProgramRun cluster = run(told);
    INFO(told << ": " << cluster.output);
    CHECK(cluster.code == 0);
    CHECK_THAT(cluster.output, ContainsSubstring("runs\n"));
  }
}

TEST_CASE("a child that does not become its process ends, and starts no process") {
  for (const std::string told : {"nothing", "uncalled"}) {
    const ProgramRun cluster = run(told);
    INFO(told << ": " << cluster.output);
    CHECK(cluster.code == 1);
    CHECK_THAT(cluster.output, ContainsSubstring("did not start"));
    CHECK_THAT(cluster.output, !ContainsSubstring("a child has started a child"));
  }
}

TEST_CASE("a process of a cluster with wrong arguments ends with an error") {
  for (const std::string arguments :
       {"--as-master", "--as-master /x", "--as-region-server /x rs1", "--as-master /x 3000 more"}) {
    for (const char* const told : {"whole", "rest"}) {
      const ProgramRun process = run(told, arguments);
      INFO(told << ": " << arguments << ": " << process.output);
      CHECK(process.code == 2);
      CHECK_THAT(process.output, ContainsSubstring("with other arguments than"));
    }
  }
}

}  // namespace pv2::testing::cluster_processes_test

// SPDX-License-Identifier: Apache-2.0
//
// What every procedure has to pass: the machine crashes at every store write, on the memory store
// and on LevelDB, while the procedure goes forward and while it is undone after an abort.

#include <pv2/engine/procedure_registry.h>

#include <set>
#include <string>
#include <utility>

#include "every_plot.h"
#include "procedure_drill.h"
#include "procedure_story.h"

namespace pv2::testing::every_procedure_test {
namespace {

void crash_everywhere(const std::vector<NamedPlot>& plots) {
  for (const NamedPlot& named : plots) {
    CAPTURE(named.name);
    check_crashes_on_disk(named.plot);
  }
}
void crash_everywhere_in_rollback(const std::vector<NamedPlot>& plots) {
  for (const NamedPlot& named : plots) {
    CAPTURE(named.name);
    check_crashes_in_rollback_on_disk(named.plot);
  }
}

}  // namespace

TEST_CASE("every procedure that a host registers is crashed at every store write") {
  // The plots of the tests below.
  std::set<std::string> run;
  for (const NamedPlot& named : every_plot()) {
    CAPTURE(named.name);
    ProcedureDrill drill(named.plot);
    drill.run([&] {
      for (const ProcedureInfo& info : drill.live()) run.insert(info.type);
    });
    drill.check_success();
  }
  MemoryCluster cluster;
  ProcedureRegistry registry;
  add_cluster_procedures(registry, cluster.ports());
  std::set<std::string> registered;
  for (const auto& [name, type] : registry.types()) registered.insert(name);
  CHECK(run == registered);
}

TEST_CASE("a step on which later ones rely is one that must run") {
  // The names of the steps that check, or decide what later steps use. Others with an effect may be
  // skipped: an operator can do by hand what they do, or a later step looks whether it was done.
  const std::set<std::string_view> checks = {"ACQUIRE",
                                             "ACQUIRE_SPLIT_WAL_WORKER",
                                             "CHECK_CLOSED_REGIONS",
                                             "CHOOSE_SERVER",
                                             "GET_ASSIGN_CANDIDATE",
                                             "GET_REGIONS",
                                             "PREPARE",
                                             "PRE_OPERATION",
                                             "PRE_PEER_MODIFICATION",
                                             "START"};
  // Those without which rows are lost, a region is on two servers, or a recovery never ends.
  const std::set<std::pair<std::string_view, std::string_view>> guards = {
      {"cluster.OpenRegion", "DISPATCH"},
      {"cluster.OpenRegion", "REPORT_SUCCEED"},
      {"cluster.CloseRegion", "DISPATCH"},
      {"cluster.CloseRegion", "REPORT_SUCCEED"},
      {"cluster.SplitLogRemote", "DISPATCH"},
      {"cluster.ServerCrash", "DELETE_SPLIT_META_WALS_DIR"},
      {"cluster.ServerCrash", "DELETE_SPLIT_WALS_DIR"},
      {"cluster.ServerCrash", "CHECK"},
      {"cluster.SplitTableRegion", "CREATE_DAUGHTER_REGIONS"},
      {"cluster.SplitTableRegion", "WRITE_MAX_SEQUENCE_ID_FILE"},
      {"cluster.MergeTableRegions", "CREATE_MERGED_REGION"},
      {"cluster.MergeTableRegions", "WRITE_MAX_SEQUENCE_ID_FILE"},
      {"cluster.InitMeta", "WRITE_FS_LAYOUT"}};
  MemoryCluster cluster;
  ProcedureRegistry registry;
  add_cluster_procedures(registry, cluster.ports());
  std::set<std::string_view> found_checks;
  std::size_t found_guards = 0;
  for (const auto& [name, type] : registry.types()) {
    for (const StepInfo& step : type->steps) {
      CAPTURE(name, step.name);
      const bool is_check = checks.contains(step.name);
      const bool is_guard = guards.contains({name, step.name});
      CHECK(step.must_run == (is_check || is_guard));
      if (is_check) found_checks.insert(step.name);
      if (is_guard) ++found_guards;
    }
  }
  CHECK(found_checks == checks);
  CHECK(found_guards == guards.size());
}

TEST_CASE("crashed anywhere, on LevelDB too, operations on tables end the same") {
  crash_everywhere(plots_of_tables());
}
TEST_CASE("crashed anywhere, on LevelDB too, aborted operations on tables end the same") {
  crash_everywhere_in_rollback(plots_of_tables());
}
TEST_CASE("crashed anywhere, on LevelDB too, operations on namespaces and locks end the same") {
  crash_everywhere(plots_of_namespaces());
  crash_everywhere_in_rollback(plots_of_namespaces());
}
TEST_CASE("crashed anywhere, on LevelDB too, changes of peers end the same") {
  crash_everywhere(plots_of_peers());
  crash_everywhere_in_rollback(plots_of_peers());
}
TEST_CASE("crashed anywhere, on LevelDB too, operations on regions end the same") {
  crash_everywhere(plots_of_regions());
}
TEST_CASE("crashed anywhere, on LevelDB too, aborted operations on regions end the same") {
  crash_everywhere_in_rollback(plots_of_regions());
}
TEST_CASE("crashed anywhere, on LevelDB too, operations on servers end the same") {
  crash_everywhere(plots_of_servers());
  crash_everywhere_in_rollback(plots_of_servers());
}

}  // namespace pv2::testing::every_procedure_test

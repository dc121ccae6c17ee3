// SPDX-License-Identifier: Apache-2.0
//
// CreateNamespace, ModifyNamespace and DeleteNamespace: what they leave behind and what they
// refuse.

#include <pv2/procedures/create_namespace.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/delete_namespace.h>
#include <pv2/procedures/modify_namespace.h>

#include "procedure_drill.h"
#include "procedure_story.h"

namespace pv2::testing::namespace_test {
namespace {

auto create(std::string name, std::uint64_t max_tables = 0) {
  return operation([=](MemoryCluster& cluster) {
    return CreateNamespace(cluster.ports(), {name, max_tables});
  });
}
auto modify(std::string name, std::uint64_t max_tables) {
  return operation([=](MemoryCluster& cluster) {
    return ModifyNamespace(cluster.ports(), {name, max_tables});
  });
}
auto remove(std::string name) {
  return operation([=](MemoryCluster& cluster) { return DeleteNamespace(cluster.ports(), name); });
}
auto create_table(std::string name_space, std::string table) {
  return operation([=](MemoryCluster& cluster) {
    return CreateTable(cluster.ports(), {{name_space, table}, {"f"}});
  });
}

ProcedurePlot creating() {
  return {.subject = create("n", 3), .check = [](MemoryCluster& cluster, Findings& findings) {
            findings.expect(
                show(cluster.snapshot()).find("namespace n limit 3\n") != std::string::npos,
                "namespace n is there");
          }};
}
ProcedurePlot modifying() {
  return {.subject = modify("n", 7),
          .before = {create("n")},
          .check = [](MemoryCluster& cluster, Findings& findings) {
            findings.expect(
                show(cluster.snapshot()).find("namespace n limit 7\n") != std::string::npos,
                "namespace n has the limit");
          }};
}
ProcedurePlot deleting() {
  return {.subject = remove("n"),
          .before = {create("n")},
          .check = [](MemoryCluster& cluster, Findings& findings) {
            findings.expect(cluster.snapshot().namespaces.size() == 2, "namespace n is gone");
          }};
}

}  // namespace

TEST_CASE("CreateNamespace makes the directory and the row, whichever call fails") {
  CHECK(check_faults(creating()) > 20);
  CHECK(check_aborts(creating()) == 3);
}
TEST_CASE("CreateNamespace ends the same whichever store write the machine crashes at") {
  check_crashes(creating());
  check_crashes_in_rollback(creating());
}
TEST_CASE("ModifyNamespace sets the limit, whichever call fails") {
  CHECK(check_faults(modifying()) > 20);
  CHECK(check_aborts(modifying()) == 2);
}
TEST_CASE("ModifyNamespace ends the same whichever store write the machine crashes at") {
  check_crashes(modifying());
  check_crashes_in_rollback(modifying());
}
TEST_CASE("DeleteNamespace removes the row and the directory, whichever call fails") {
  CHECK(check_faults(deleting()) > 20);
  CHECK(check_aborts(deleting()) == 3);
}
TEST_CASE("DeleteNamespace ends the same whichever store write the machine crashes at") {
  check_crashes(deleting());
  check_crashes_in_rollback(deleting());
}

TEST_CASE("operations on namespaces that cannot be are refused, and change nothing") {
  const std::vector<PlotOperation> before{create("full", 1), create_table("full", "a"),
                                          create("two"), create_table("two", "a"),
                                          create_table("two", "b")};
  check_refused({
      {create(""), before, StatusCode::kInvalidArgument, "namespace '' is not a legal name"},
      {create("a:b"), before, StatusCode::kInvalidArgument, "is not a legal name"},
      {create("a-b"), before, StatusCode::kInvalidArgument, "is not a legal name"},
      {create("full"), before, StatusCode::kAlreadyExists, "namespace full exists already"},
      {create("system"), before, StatusCode::kAlreadyExists, "namespace system exists already"},
      {modify("none", 1), before, StatusCode::kNotFound, "namespace none does not exist"},
      {modify("system", 1), before, StatusCode::kFailedPrecondition, "is the system's"},
      {modify("two", 1), before, StatusCode::kFailedPrecondition, "has 2 tables"},
      {remove("none"), before, StatusCode::kNotFound, "namespace none does not exist"},
      {remove("default"), before, StatusCode::kFailedPrecondition, "is reserved"},
      {remove("system"), before, StatusCode::kFailedPrecondition, "is reserved"},
      {remove("two"), before, StatusCode::kFailedPrecondition, "has 2 tables, two:a among them"},
      {create_table("full", "b"), before, StatusCode::kFailedPrecondition,
       "has 1 tables and may have 1"},
      {create_table("none", "b"), before, StatusCode::kNotFound, "namespace none of table none:b"},
      {create_table("system", "b"), before, StatusCode::kFailedPrecondition,
       "for the cluster's own tables"},
  });
}

TEST_CASE("a limit that is raised lets another table be created") {
  const ProcedurePlot plot{.subject = create_table("n", "b"),
                           .before = {create("n", 1), create_table("n", "a"), modify("n", 2)}};

  ProcedureDrill drill(plot);
  drill.run([] {});

  drill.check_success();
}

TEST_CASE("a namespace and a table in it are not made and removed at the same time") {
  MemoryCluster cluster(Delivery::kQueued);
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  REQUIRE(executor.submit(CreateNamespace(cluster.ports(), {"n"})).ok());
  executor.run();

  const auto table = executor.submit(CreateTable(cluster.ports(), {{"n", "t"}, {"f"}}));
  const auto removal = executor.submit(DeleteNamespace(cluster.ports(), "n"));
  executor.run();

  CHECK(executor.result(*table).state == ProcedureState::kSuccess);
  CHECK(executor.result(*removal).status.code() == StatusCode::kFailedPrecondition);
  CHECK(disorder(cluster).empty());
}

}  // namespace pv2::testing::namespace_test

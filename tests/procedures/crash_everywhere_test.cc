// SPDX-License-Identifier: Apache-2.0
//
// CreateTable and ServerCrash with the machine crashing before and after every store write, on the
// memory store and on LevelDB: whatever the moment, the next life ends in the same cluster. The
// cluster itself outlives every crash, so an effect made twice or half would stay visible in it.

#include "support/crash_everywhere.h"

#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/memory_cluster.h>
#include <pv2/procedures/server_crash.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "deterministic_executor.h"

namespace pv2::testing::crash_everywhere_test {
namespace {

// The client's name for its one operation, over all lives.
constexpr Nonce kCreateNonce{1, 1};

/// A client that submits once more in every life and asks for the result.
struct Client {
  Nonce nonce;
  // Shared with the callbacks of lives that have ended.
  std::shared_ptr<std::optional<ProcedureId>> id = std::make_shared<std::optional<ProcedureId>>();
  std::shared_ptr<std::optional<ProcedureResult>> result =
      std::make_shared<std::optional<ProcedureResult>>();

  template <class P>
  void begin_life(ProcedureExecutor& executor, P procedure) const {
    executor.async().submit(std::move(procedure), {.nonce = nonce},
                            [known = id, ended = result, &executor](Result<Submitted> submitted) {
                              if (!submitted.ok()) return;  // the life ended first
                              // An id that was answered once never changes.
                              if (*known) CHECK(**known == submitted->id);
                              *known = submitted->id;
                              executor.async().wait(submitted->id,
                                                    [ended](Result<ProcedureResult> r) {
                                                      if (r.ok()) *ended = *r;
                                                    });
                            });
  }
  void check_success() const {
    REQUIRE(result->has_value());
    CHECK((*result)->state == ProcedureState::kSuccess);
  }
};

/// A table is created, then a server dies and its regions move: both in one story, with the cluster
/// answering at once or only when nothing else moves.
class ClusterStory final : public CrashStory {
 public:
  explicit ClusterStory(Delivery delivery) : cluster_(delivery) {
    cluster_.add_server("rs1");
    cluster_.add_server("rs2");
  }

  void add_types(ProcedureRegistry& registry) override {
    add_cluster_procedures(registry, cluster_.ports());
  }
  void begin_life(ProcedureExecutor& executor) override {
    create_.begin_life(executor, CreateTable(cluster_.ports(), table_t(), even_split_keys(2)));
    if (dead_) report_death(executor);
  }
  bool stir(ProcedureExecutor& executor) override {
    // A report is repeated until it is acknowledged. Sent before the answers are delivered, it
    // would be the only thing that happens in a life that ends with its first commit.
    if (cluster_.deliver_all() > 0 || cluster_.deliver_reports(executor) > 0) return true;
    if (dead_ || !*create_.result) return false;
    // The table is there: now one of its servers dies.
    dead_ = cluster_.snapshot().regions.at(0).server;
    cluster_.kill_server(*dead_);
    report_death(executor);
    return true;
  }
  void check_end(CrashEnd& end) override {
    create_.check_success();
    crash_.check_success();
    CHECK(disorder(cluster_).empty());
    const ClusterSnapshot left = cluster_.snapshot();
    REQUIRE(left.tables.size() == 1);
    CHECK(left.regions.size() == 2);
    for (const RegionRow& row : left.regions) CHECK(row.server != *dead_);
    CHECK(end.executor.inspect().locks().empty());
    CHECK(end.executor.inspect().live_procedures() == 0);
  }

 private:
  void report_death(ProcedureExecutor& executor) {
    crash_.nonce = crash_nonce(*dead_);
    crash_.begin_life(executor, ServerCrash(cluster_.ports(), *dead_));
  }

  MemoryCluster cluster_;
  std::optional<ServerName> dead_;
  Client create_{.nonce = kCreateNonce};
  Client crash_;
};

}  // namespace

TEST_CASE("CreateTable and ServerCrash end the same whichever store write the machine crashes at") {
  const Delivery delivery = GENERATE(Delivery::kInline, Delivery::kQueued);

  const std::size_t plays =
      check_everywhere([&] { return std::make_unique<ClusterStory>(delivery); },
                       {.power_cuts = delivery == Delivery::kInline});

  CHECK(plays > 2 * 2 * 20);  // before and after each of at least twenty commits, on two stores
}

}  // namespace pv2::testing::crash_everywhere_test

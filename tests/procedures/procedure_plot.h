// SPDX-License-Identifier: Apache-2.0
//
// ProcedurePlot: what a test of one procedure has to say about it: what there is before, what is
// submitted, and what there is afterwards. The harnesses that crash, abort and disturb a procedure
// (procedure_story.h, procedure_drill.h) take a plot, so each procedure needs one line for each of
// them.

#pragma once

#include <pv2/engine/completion.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/step_table.h>
#include <pv2/procedures/cluster_snapshot.h>
#include <pv2/procedures/memory_cluster.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "deterministic_executor.h"
#include "pv2/testing/findings.h"
#include "pv2/testing/keyed_client.h"

namespace pv2::testing {

/// One procedure of a plot. Made by operation().
struct PlotOperation {
  std::string type;
  std::vector<StepInfo> steps;
  std::function<void(KeyedClient&, ProcedureExecutor&, MemoryCluster&)> send;
  std::function<Result<ProcedureId>(DeterministicExecutor&, MemoryCluster&)> submit;
};

/// `make(cluster)` makes the procedure, the same every time: it may look at what does not change,
/// such as the name of a region once its table is there.
template <class Make>
[[nodiscard]] PlotOperation operation(Make make) {
  using P = std::invoke_result_t<Make&, MemoryCluster&>;
  return {.type = std::string(P::kType),
          .steps = {P::kSteps.begin(), P::kSteps.end()},
          .send = [make](KeyedClient& client, ProcedureExecutor& executor,
                         MemoryCluster& cluster) { client.submit(executor, make(cluster)); },
          .submit = [make](DeterministicExecutor& executor,
                           MemoryCluster& cluster) { return executor.submit(make(cluster)); }};
}

/// A plain value.
struct ProcedurePlot {
  PlotOperation subject;
  /// Run one after the other before the subject; each has to succeed.
  std::vector<PlotOperation> before{};
  /// Called once, when `before` has run.
  std::function<void(MemoryCluster&)> arrange{};
  /// Adds what is wrong when the subject has succeeded, apart from find_disorder().
  std::function<void(MemoryCluster&, Findings&)> check{};
  std::vector<std::string> servers{"rs1", "rs2"};
  FirstState first = FirstState::kNamespaces;
  bool ends_in_order = true;  ///< Afterwards find_disorder() finds nothing.
};

/// For calls of ports that a test makes itself, and whose answer it does not want.
template <class T>
[[nodiscard]] Completion<T> nobody() {
  class Nobody final : public WakeTarget {
   public:
    void wake(AwaitSlot& /*slot*/) noexcept override {}
  };
  return Completion<T>(make_ref<AwaitSlotOf<T>>(make_ref<Nobody>(), ProcedureId{1}, 0));
}

/// What has to be the same whatever was disturbed: nothing in it depends on procedure ids, on the
/// servers that were chosen, or on how often a region was opened.
inline std::string show(const ClusterSnapshot& snapshot) {
  std::string text;
  for (const NamespaceRow& row : snapshot.namespaces) {
    text += "namespace " + row.name + " limit " + std::to_string(row.max_tables) + "\n";
  }
  for (const std::string& name : snapshot.namespace_directories) {
    text += "namespace directory " + name + "\n";
  }
  const auto in_words = [](const TableDescriptor& descriptor) {
    std::string words = to_string(descriptor.name);
    for (const std::string& family : descriptor.families) words += ' ' + family;
    return words;
  };
  for (const TableRow& row : snapshot.tables) {
    text += "table " + in_words(row.descriptor) + ' ' + std::string(to_string(row.state)) + "\n";
  }
  std::vector<std::string> regions;
  for (const RegionRow& row : snapshot.regions) {
    regions.push_back("region of " + to_string(row.region.table) + " [" + row.region.start_key +
                      ", " + row.region.end_key + ") " + std::string(to_string(row.state)) + "\n");
  }
  std::ranges::sort(regions);
  for (const std::string& region : regions) text += region;
  for (const auto& directory : snapshot.directories) {
    text += "directory " + in_words(directory.descriptor) + " with " +
            std::to_string(directory.regions.size()) + " regions\n";
  }
  for (const TableDescriptor& descriptor : snapshot.cached) {
    text += "cached " + in_words(descriptor) + "\n";
  }
  const auto peer_in_words = [](const PeerRow& peer) {
    std::string words = "peer " + peer.id + ' ' + peer.config.cluster;
    for (const TableName& table : peer.config.tables) words += ' ' + to_string(table);
    return words + (peer.enabled ? " enabled\n" : " disabled\n");
  };
  for (const auto& [id, peer] : snapshot.peers) text += peer_in_words(peer);
  for (const auto& [server, peers] : snapshot.peer_views) {
    for (const auto& [id, peer] : peers)
      text += to_string(server) + " knows " + peer_in_words(peer);
  }
  for (const auto& [peer, server] : snapshot.queues) {
    text += "queue of " + to_string(server) + " for " + peer + "\n";
  }
  for (const ServerRow& row : snapshot.servers) {
    text += "server " + to_string(row.name) + ' ' + std::string(to_string(row.state)) + "\n";
  }
  return text;
}

/// Adds everything that is wrong after the subject has succeeded.
inline void check_success(const ProcedurePlot& plot, MemoryCluster& cluster, Findings& findings) {
  if (plot.ends_in_order) {
    for (std::string& disorder : find_disorder(cluster.snapshot())) {
      findings.add(std::move(disorder));
    }
  }
  if (plot.check) plot.check(cluster, findings);
}

}  // namespace pv2::testing

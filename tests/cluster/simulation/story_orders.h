// SPDX-License-Identifier: Apache-2.0
//
// StoryOrders: the operators of a random story: they submit procedures of every kind through the
// same lossy network, each under a nonce of its own, abort some, and want to know in the end what
// has become of each of them.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/random.h>
#include <pv2/remote/remote_executor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/master/cluster_world.h"
#include "cluster/simulation/write_history.h"

namespace pv2::testing::cluster_simulation {

/// Owned by one thread.
class StoryOrders {
 public:
  StoryOrders(cluster_world::ClusterWorld& world, WriteHistory& history, Random& random,
              std::function<void(std::string)> tell);

  /// Submits some procedure. `executor` is that of a client.
  void act(RemoteExecutor& executor);
  void abort_one(RemoteExecutor& executor);
  /// Sends again what has no outcome, and asks for results. To be called until are_known().
  void ask(RemoteExecutor& executor);
  [[nodiscard]] bool are_known() const;
  /// The holders of locks let go.
  void unlock(RemoteExecutor& executor);
  /// Regions that were left closed in enabled tables are opened, as an operator does.
  void assign_closed(RemoteExecutor& executor);
  /// An enabled table for the last reads; already done if it is.
  void enable(RemoteExecutor& executor, const TableName& table);

  [[nodiscard]] const std::vector<TableName>& tables() const noexcept { return tables_; }
  [[nodiscard]] std::size_t size() const noexcept { return orders_.size(); }
  [[nodiscard]] std::size_t done() const;
  /// Empty: each nonce had one procedure, with one result.
  [[nodiscard]] const std::string& contradiction() const noexcept { return contradiction_; }

 private:
  using Send = std::function<void(RemoteExecutor&, RemoteSubmitOptions, bool, SubmitOutcomeDone)>;
  struct Order {
    std::string words;
    Nonce nonce;
    Send send;
    bool was_sent = false;
    int in_flight = 0;      ///< Copies without an outcome.
    bool is_asked = false;  ///< For its result.
    bool is_refused = false;
    bool is_lock = false;
    ProcedureId id{};
    std::optional<Status> result{};
  };
  using OrderPointer = std::shared_ptr<Order>;

  template <class Make>
  void order(RemoteExecutor& executor, std::string words, Make make);
  void send(RemoteExecutor& executor, const OrderPointer& order, Duration timeout);
  void wait(RemoteExecutor& executor, const OrderPointer& order);
  void act_on_table(RemoteExecutor& executor, std::uint64_t choice);
  void act_on_regions(RemoteExecutor& executor, std::uint64_t choice);
  void act_on_others(RemoteExecutor& executor, std::uint64_t choice);
  [[nodiscard]] std::vector<RegionInfo> regions();
  [[nodiscard]] bool one_in(std::uint64_t n) { return random_.below(n) == 0; }

  cluster_world::ClusterWorld& world_;
  WriteHistory& history_;
  Random& random_;
  const std::function<void(std::string)> tell_;
  std::vector<OrderPointer> orders_;
  std::vector<TableName> tables_;
  std::vector<RegionInfo> seen_;  // at some moment; they may be gone by now
  std::uint64_t made_ = 0;
  std::string contradiction_;
};

}  // namespace pv2::testing::cluster_simulation

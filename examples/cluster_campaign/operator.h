// SPDX-License-Identifier: Apache-2.0
//
// Operator: a thread that orders procedures while the campaign goes on: regions of the campaign's
// table are split, merged, moved and opened again; the table is modified, and now and then disabled
// and enabled; other tables come and go. Each order has a nonce, and is asked for again until its
// outcome is known.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/random.h>
#include <pv2/base/status.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/rpc/nonce_source.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace campaign {

struct OrderCounts {
  std::uint64_t orders = 0;
  std::uint64_t done = 0;
  std::uint64_t moves = 0;  ///< Regions found on another server than a moment before.
};

/// Owned by one thread; its own thread meets it at a mutex.
class Operator {
 public:
  Operator(std::unique_ptr<pv2::cluster::ClusterClient> client, std::uint64_t number,
           std::uint64_t seed)
      : client_(std::move(client)), number_(number), random_(seed) {}
  ~Operator() { stop(); }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  void start();
  /// Returns when the last order is known, or after a while.
  void stop();
  /// After stop(): the table is enabled and all its regions are open, and no procedure is left.
  pv2::Status tidy_up();
  [[nodiscard]] OrderCounts counts() const PV2_EXCLUDES(counts_mutex_);

 private:
  void act();
  void act_on_regions(const std::vector<pv2::RegionRow>& regions);
  void act_on_tables();
  void watch(const std::vector<pv2::RegionRow>& regions) PV2_EXCLUDES(counts_mutex_);
  /// Whether the procedure has succeeded.
  template <class P>
  bool order(P procedure) PV2_EXCLUDES(counts_mutex_);
  bool follow(pv2::SubmitOutcome outcome);

  const std::unique_ptr<pv2::cluster::ClusterClient> client_;
  const std::uint64_t number_;
  pv2::Random random_;
  pv2::NonceSource nonces_;
  std::map<std::string, pv2::ServerName> places_;  // of regions
  std::uint64_t tables_ = 0;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
  mutable pv2::Mutex counts_mutex_;
  OrderCounts counts_ PV2_GUARDED_BY(counts_mutex_);
};

}  // namespace campaign

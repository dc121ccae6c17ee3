// SPDX-License-Identifier: Apache-2.0
//
// Probe: tells whoever watches a master of each call of a port, before it begins and when its
// effect is durable. For demos and tests that end the process at a chosen moment.

#pragma once

#include <pv2/procedures/cluster_call.h>

#include <string>
#include <string_view>
#include <utility>

namespace pv2::cluster {

/// Const methods are thread-safe if the function is.
class Probe {
 public:
  explicit Probe(ClusterProbe watcher) : watcher_(std::move(watcher)) {}

  void asked(ClusterCall call, std::string_view effect_key = {}) const {
    if (watcher_) watcher_({call, ClusterMoment::Phase::kAsked, std::string(effect_key)});
  }
  void done(ClusterCall call, std::string_view effect_key = {}) const {
    if (watcher_) watcher_({call, ClusterMoment::Phase::kDone, std::string(effect_key)});
  }

 private:
  const ClusterProbe watcher_;
};

}  // namespace pv2::cluster

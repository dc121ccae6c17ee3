// SPDX-License-Identifier: Apache-2.0
//
// The master is asked every 5 ms: it sends no message of its own when a server registers.

#include "session/known_servers.h"

#include <algorithm>
#include <thread>

namespace pv2::shell {

bool wait_until_known(cluster::ClusterClient& client, std::span<const ServerName> servers,
                      Duration patience) {
  using namespace std::chrono_literals;
  const SystemClock clock;
  const SteadyTime end = later(clock.steady_now(), patience);
  while (true) {
    const Result<cluster::ServerList> list = client.servers();
    if (!list.ok()) return false;
    const bool knows_all = std::ranges::all_of(servers, [&](const ServerName& server) {
      return std::ranges::find(list->live, server, &cluster::ServerEntry::name) != list->live.end();
    });
    if (knows_all) return true;
    if (clock.steady_now() >= end) return false;
    std::this_thread::sleep_for(5ms);
  }
}

}  // namespace pv2::shell

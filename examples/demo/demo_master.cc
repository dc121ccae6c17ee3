// SPDX-License-Identifier: Apache-2.0
//
//     --as-master <root> <lease, ms> --die <kill point of CreateTable> <kill point of ServerCrash>

#include "demo_master.h"

#include <pv2/cluster/master.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>

namespace demo {
namespace {

// Signal handlers know no other way to it. It is set before they are installed.
KillSwitch* kill_switch = nullptr;

void arm_create(int /*signal*/) { kill_switch->arm(Act::kCreateTable); }
void arm_crash(int /*signal*/) { kill_switch->arm(Act::kServerCrash); }

}  // namespace

std::vector<std::string> arguments_of(const KillPoint& in_create, const KillPoint& in_crash) {
  return {"--die", to_string(in_create), to_string(in_crash)};
}

int signal_of(Act act) { return act == Act::kCreateTable ? SIGUSR1 : SIGUSR2; }

std::optional<int> run_demo_master(std::span<char* const> arguments) {
  if (arguments.size() != 6 || std::string_view(arguments[3]) != "--die") return std::nullopt;
  const auto in_create = parse_kill_point(arguments[4]);
  const auto in_crash = parse_kill_point(arguments[5]);
  if (!in_create.ok() || !in_crash.ok()) return 2;
  static KillSwitch the_switch(*in_create, *in_crash);
  kill_switch = &the_switch;
  std::signal(SIGUSR1, arm_create);
  std::signal(SIGUSR2, arm_crash);
  return pv2::cluster::run_master(
      {.root = arguments[1],
       .lease = std::chrono::milliseconds(std::strtol(arguments[2], nullptr, 10)),
       .probe = [](const pv2::ClusterMoment& moment) { the_switch.pass(moment); }});
}

}  // namespace demo

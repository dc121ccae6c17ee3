// SPDX-License-Identifier: Apache-2.0
//
// Each life of the master is told the kill points that are left. A signal arms the one of the act.

#include "master_keeper.h"

#include <csignal>

#include "demo_master.h"

namespace demo {
namespace {

using std::chrono::steady_clock;

const KillPoint kNever;

}  // namespace

const KillPoint& MasterKeeper::point_of(Act act) const {
  if (act == Act::kServerCrash) return deaths_in_crash_ == 0 ? plan_.in_crash : kNever;
  if (deaths_in_create_ == 0) return plan_.in_create;
  return deaths_in_create_ == 1 ? plan_.in_replay : kNever;
}

pv2::Status MasterKeeper::start() {
  if (pv2::Status bad = processes_.start_master(
          arguments_of(point_of(Act::kCreateTable), point_of(Act::kServerCrash)));
      !bad.ok()) {
    return bad;
  }
  arm();
  events_.started();
  return {};
}

void MasterKeeper::begin(Act act) {
  act_ = act;
  arm();
}

void MasterKeeper::arm() {
  kill_at_.reset();
  if (!act_ || !processes_.master_lives()) return;
  const KillPoint& point = point_of(*act_);
  if (point.kind == KillPoint::Kind::kTime) {
    kill_at_ = steady_clock::now() + std::chrono::microseconds(point.number);
  } else {
    ::kill(processes_.master()->pid(), signal_of(*act_));
  }
}

pv2::Status MasterKeeper::watch() {
  if (kill_at_ && steady_clock::now() >= *kill_at_) processes_.master()->kill();
  if (processes_.master_lives()) return {};
  kill_at_.reset();
  ++deaths_;
  if (act_ == Act::kCreateTable) ++deaths_in_create_;
  if (act_ == Act::kServerCrash) ++deaths_in_crash_;
  const auto line = processes_.master()->hear(std::chrono::milliseconds(100));
  events_.died(line && line->starts_with("dying ") ? line->substr(6) : "");
  return start();
}

}  // namespace demo

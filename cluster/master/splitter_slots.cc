// SPDX-License-Identifier: Apache-2.0
//
// The least busy server gets the next log.

#include "master/splitter_slots.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace pv2::cluster {
namespace {

// As many as in HBase (hbase.regionserver.wal.max.splitters).
constexpr std::size_t kSlotsPerServer = 2;

}  // namespace

void SplitterSlots::acquire(ProcedureId procedure, const ServerName& preferred,
                            Completion<Result<ServerName>> done) {
  if (give(procedure, preferred, done)) return;
  waiting_.push_back({procedure, std::move(done)});
  // Those who wait longer have looked.
  if (waiting_.size() == 1) look();
}

void SplitterSlots::release(ProcedureId procedure) {
  taken_.erase(procedure);
  std::erase_if(waiting_, [&](const Waiting& entry) { return entry.procedure == procedure; });
  serve();
}

void SplitterSlots::look() {
  if (waiting_.empty()) return;
  forget_ended();
  serve();
}

void SplitterSlots::serve() {
  std::deque<Waiting> waiting = std::move(waiting_);
  waiting_.clear();
  for (Waiting& entry : waiting) {
    if (!give(entry.procedure, {}, entry.done)) waiting_.push_back(std::move(entry));
  }
}

void SplitterSlots::forget_ended() {
  std::erase_if(taken_, [this](const auto& entry) { return has_ended_(entry.first); });
  std::erase_if(waiting_, [](const Waiting& entry) { return !entry.done.is_awaited(); });
}

bool SplitterSlots::give(ProcedureId procedure, const ServerName& preferred,
                         Completion<Result<ServerName>>& done) {
  const std::vector<ServerName> live = live_();
  const auto lives = [&](const ServerName& name) {
    return std::ranges::find(live, name) != live.end();
  };
  const auto has = taken_.find(procedure);
  std::optional<ServerName> chosen;
  if (has != taken_.end() && lives(has->second)) {
    chosen = has->second;
  } else if (lives(preferred)) {
    chosen = preferred;  // it had the log before a restart, whose slots are forgotten
  } else {
    std::map<ServerName, std::size_t> busy;
    for (const auto& [other, name] : taken_) busy[name] += other == procedure ? 0 : 1;
    for (const ServerName& name : live) {
      if (busy[name] < kSlotsPerServer && (!chosen || busy[name] < busy[*chosen])) chosen = name;
    }
  }
  if (!chosen) return false;
  taken_[procedure] = *chosen;
  done(Result<ServerName>(*chosen));
  return true;
}

}  // namespace pv2::cluster

// SPDX-License-Identifier: Apache-2.0
//
// How the simulation drives a story of two procedures, and what must hold when it ends.

#include "pairs_story.h"

#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/procedures/server_crash.h>
#include <pv2/procedures/transit_region_state.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace pv2::testing {
namespace {

/// A refusal that a procedure may end with, because another one came first.
bool is_refusal(StatusCode code) {
  return code == StatusCode::kFailedPrecondition || code == StatusCode::kNotFound ||
         code == StatusCode::kAlreadyExists;
}

bool is_done(const KeyedClient& client) { return client.result() && client.result()->status.ok(); }

}  // namespace

PairsStory::PairsStory(std::uint64_t seed, ActorPair pair, PairTally* tally)
    : pair_(pair),
      tally_(tally),
      random_(seed),
      cluster_(Delivery::kQueued,
               has({Actor::kInitMeta}) ? FirstState::kNothing : FirstState::kNamespaces) {
  plan();
}

void PairsStory::add_types(ProcedureRegistry& types) {
  add_cluster_procedures(types, cluster_.ports());
}

void PairsStory::configure(ExecutorOptions& options) {
  options.retry.cap = std::chrono::seconds(4);
  // A server that is dead is reported late, perhaps only at the end: until then calls fail.
  options.retry.undo_attempts = 100'000;
}

void PairsStory::send(std::string words, Nonce nonce, Send send, bool of_pair,
                      ProcedureExecutor& executor) {
  sent_.push_back({std::move(words), KeyedClient(nonce), std::move(send), of_pair});
  sent_.back().send(sent_.back().client, executor);
}

void PairsStory::report_death(const ServerName& server, bool of_pair, ProcedureExecutor& executor) {
  if (!reported_.insert(server).second) return;
  const auto submit = [this, server](KeyedClient& client, ProcedureExecutor& now) {
    client.submit(now, ServerCrash(cluster_.ports(), server));
  };
  send("the crash of " + to_string(server), crash_nonce(server), submit, of_pair, executor);
}

void PairsStory::begin_life(ProcedureExecutor& executor) {
  executor_ = &executor;
  for (Sent& sent : sent_) {
    sent.client.begin_life();
    sent.send(sent.client, executor);
  }
}

std::size_t PairsStory::answers_due() const {
  const std::size_t reports = executor_ == nullptr ? 0 : cluster_.unsent_reports(*executor_);
  return cluster_.undelivered() + reports;
}

void PairsStory::answer(std::size_t which) {
  const std::size_t undelivered = cluster_.undelivered();
  if (which < undelivered) return cluster_.deliver(which);
  cluster_.deliver_report(*executor_, which - undelivered);
}

bool PairsStory::wind_up(ProcedureExecutor& executor) {
  for (const ServerName& server : killed_) {
    if (reported_.contains(server)) continue;
    report_death(server, false, executor);
    return true;
  }
  return executor.inspect().list().empty() && tidy_up(executor);
}

// Rows can be read when their table is enabled and its regions are open.
bool PairsStory::tidy_up(ProcedureExecutor& executor) {
  const ClusterSnapshot snapshot = cluster_.snapshot();
  const auto submit = [&](std::string words, Actor actor) {
    std::optional<Send> act = choose_act(actor, cluster_, servers_, 0);
    if (!act) return false;
    send(std::move(words), {kClients, 100 + sent_.size()}, *std::move(act), false, executor);
    return true;
  };
  if (!enabled_at_end_ && state_of_table() == TableState::kDisabled) {
    enabled_at_end_ = true;
    return submit("enable the table at the end", Actor::kEnableTable);
  }
  if (state_of_table() != TableState::kEnabled) return false;
  const auto is_left_closed = [](const RegionRow& row) {
    return row.region.table == stage_table() && row.state == RegionState::kClosed;
  };
  if (std::ranges::none_of(snapshot.regions, is_left_closed)) return false;
  return submit("assign a region at the end", Actor::kAssign);
}

void PairsStory::write_rows() {
  // One in each quarter of the key space, on both sides of the keys at which regions are split.
  for (const char* prefix : {"1", "\x40n", "\x80", "\xc0z"}) {
    const std::string row = prefix + std::to_string(++row_);
    if (!cluster_.write_row(stage_table(), row)) continue;
    rows_[row] = cluster_.calls(ClusterCall::kArchiveTable);
  }
}

void PairsStory::count_meeting(ProcedureExecutor& executor) {
  std::size_t live = 0;
  for (const Sent& sent : sent_) {
    if (sent.of_pair && sent.client.id() && executor.inspect().describe(sent.client.id()).ok()) {
      live += sent.client.result() ? 0 : 1;
    }
  }
  met_ = met_ || live == pair_.size();
}

std::set<ServerName> PairsStory::unrecovered() const {
  std::set<ServerName> servers = killed_;
  servers.insert(reported_.begin(), reported_.end());
  std::erase_if(servers, [this](const ServerName& server) {
    return std::ranges::any_of(sent_, [&](const Sent& sent) {
      return sent.client.nonce() == crash_nonce(server) && is_done(sent.client);
    });
  });
  return servers;
}

bool PairsStory::is_at_rest(ProcedureExecutor& executor) const {
  return executor.health().ok() && executor.inspect().list().empty() && unrecovered().empty();
}

void PairsStory::check(ProcedureExecutor& executor, Findings& findings) {
  if (!met_) count_meeting(executor);
  const ClusterSnapshot snapshot = cluster_.snapshot();
  watch_.look(snapshot, executor, unrecovered(), findings);
  // A region that an operator has closed stays closed until the end.
  if (acting_.contains(Actor::kUnassign) || !is_at_rest(executor)) return;
  for (std::string& disorder : find_disorder(snapshot)) findings.add(std::move(disorder));
}

void PairsStory::check_end(SimulationEnd& end) {
  check_results(end);
  for (const ProcedureInfo& left : end.executor.inspect().list()) {
    end.findings.add(left.type + " stays for ever in " + left.step_name + ": " +
                     left.error.to_string());
  }
  for (std::string& disorder : find_disorder(cluster_.snapshot())) {
    end.findings.add(std::move(disorder));
  }
  check_limits(end.findings);
  check_rows(end.findings);
  if (tally_ == nullptr || !end.findings.empty()) return;
  ++tally_->stories;
  if (!met_) return;
  ++tally_->met;
  const bool both_done = std::ranges::all_of(
      sent_, [](const Sent& sent) { return !sent.of_pair || is_done(sent.client); });
  if (both_done) ++tally_->done;
}

void PairsStory::check_results(SimulationEnd& end) const {
  for (const Sent& sent : sent_) {
    const KeyedClient& client = sent.client;
    if (!client.trouble().empty()) end.findings.add(sent.words + ": " + client.trouble());
    if (!client.result()) {
      end.findings.add(sent.words + ": its client was never told a result");
      continue;
    }
    const StatusCode code = client.result()->status.code();
    const bool is_crash = client.nonce().group != kClients;
    const bool allowed = code == StatusCode::kOk ||
                         (!is_crash && (is_refusal(code) || code == StatusCode::kAborted));
    if (!allowed) end.findings.add(sent.words + ": " + client.result()->status.to_string());
  }
}

void PairsStory::check_limits(Findings& findings) const {
  // Tables that are made at the same time may exceed the limit (create_table.h).
  if (acting_.count(Actor::kCreateTable) > 1) return;
  const ClusterSnapshot snapshot = cluster_.snapshot();
  for (const NamespaceRow& row : snapshot.namespaces) {
    const auto tables = std::ranges::count_if(snapshot.tables, [&](const TableRow& table) {
      return table.descriptor.name.name_space == row.name;
    });
    if (row.max_tables != 0 && static_cast<std::uint64_t>(tables) > row.max_tables) {
      findings.add("namespace " + row.name + " has " + std::to_string(tables) +
                   " tables and may have " + std::to_string(row.max_tables));
    }
  }
}

void PairsStory::check_rows(Findings& findings) const {
  const std::set<std::string> readable = cluster_.readable_rows(stage_table());
  const std::size_t archived = cluster_.calls(ClusterCall::kArchiveTable);
  for (const auto& [row, archived_before] : rows_) {
    if (archived_before != archived || readable.contains(row)) continue;
    findings.add("row " + row + " was acknowledged and is lost");
  }
}

std::optional<TableState> PairsStory::state_of_table() const {
  for (const TableRow& row : cluster_.snapshot().tables) {
    if (row.descriptor.name == stage_table()) return row.state;
  }
  return std::nullopt;
}

}  // namespace pv2::testing

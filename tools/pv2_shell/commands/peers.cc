// SPDX-License-Identifier: Apache-2.0
//
// Commands about replication peers: other clusters that rows are sent to. Each change is a
// procedure of the master. The list is read from where the master stores it.

#include <fmt/format.h>
#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/disable_peer.h>
#include <pv2/procedures/enable_peer.h>
#include <pv2/procedures/remove_peer.h>
#include <pv2/procedures/update_peer_config.h>

#include <filesystem>
#include <map>
#include <system_error>

#include "commands/call.h"
#include "commands/catalogue_reads.h"
#include "commands/procedure_run.h"
#include "commands/subjects.h"
#include "language/escape.h"

namespace pv2::shell {
namespace {

using Shape = OptionSpec::Shape;

struct Peers {
  std::map<std::string, PeerRow> readable{};
  std::map<std::string, std::string> unreadable{};  ///< Id -> why.
};

Result<Peers> read_peers(Shell& shell, const Call& call) {
  auto snapshot = inspect(shell, call);
  if (!snapshot.ok()) return snapshot.status();
  return Peers{std::move(snapshot->peers), std::move(snapshot->unreadable_peers)};
}

// What the statement says replaces what was there.
Status take_options(const Call& call, PeerConfig& config) {
  if (call.has_option("CLUSTER")) {
    const std::string directory = call.option_text("CLUSTER");
    if (directory.empty()) {
      return {StatusCode::kInvalidArgument,
              "CLUSTER is empty: it is the directory of the other cluster; for example: " +
                  std::string(call.command->example)};
    }
    std::error_code error;
    config.cluster = std::filesystem::absolute(directory, error).string();
    if (error) {
      return {StatusCode::kInvalidArgument,
              "CLUSTER " + in_quotes(directory) + " has no place: " + error.message()};
    }
  }
  if (!call.has_option("TABLES")) return {};
  config.tables.clear();
  for (const std::string& table : call.option_texts("TABLES")) {
    config.tables.push_back(parse_table_name(table));
  }
  return {};
}

Answer add_peer(Shell& shell, const Call& call) {
  if (!call.has_option("CLUSTER")) {
    return Status(StatusCode::kInvalidArgument,
                  "CLUSTER is missing: the directory of the other cluster; for example: " +
                      std::string(call.command->example));
  }
  PeerRow row{.id = call.text(0), .config = {}, .enabled = !call.flag("DISABLED")};
  if (Status bad = take_options(call, row.config); !bad.ok()) return bad;
  return run_procedure(shell, call, submission_of(AddPeer(ports_elsewhere(), std::move(row))));
}

Answer update_peer(Shell& shell, const Call& call) {
  const auto peers = read_peers(shell, call);
  if (!peers.ok()) return peers.status();
  if (const auto bad = peers->unreadable.find(call.text(0)); bad != peers->unreadable.end()) {
    return Status(StatusCode::kCorruption,
                  "peer " + in_quotes(bad->first) + " cannot be read: " + bad->second);
  }
  const auto found = peers->readable.find(call.text(0));
  if (found == peers->readable.end()) {
    return Status(StatusCode::kNotFound, "there is no peer " + in_quotes(call.text(0)));
  }
  PeerConfig config = found->second.config;
  if (Status bad = take_options(call, config); !bad.ok()) return bad;
  return run_procedure(shell, call,
                       submission_of(UpdatePeerConfig(ports_elsewhere(), call.text(0), config)));
}

template <class P>
Answer change_peer(Shell& shell, const Call& call) {
  return run_procedure(shell, call, submission_of(P(ports_elsewhere(), call.text(0))));
}

Answer list_peers(Shell& shell, const Call& call) {
  const auto peers = read_peers(shell, call);
  if (!peers.ok()) return peers.status();
  Answer answer;
  answer.columns = {"PEER", "ENABLED", "TABLES", "CLUSTER"};
  for (const auto& [id, row] : peers->readable) {
    std::string tables;
    for (const TableName& table : row.config.tables) {
      tables += (tables.empty() ? "" : ", ") + to_string(table);
    }
    answer.add_row({id, row.enabled, tables.empty() ? "all" : tables, row.config.cluster});
  }
  for (const auto& [id, why] : peers->unreadable) {
    answer.add_row({id, "DAMAGED", "", ""});
    answer.note(fmt::format("peer {} cannot be read: {}", in_quotes(id), why));
  }
  answer.note(counted(answer.rows.size(), "peer"));
  return answer;
}

// How far one server has shipped its logs, and those that it has claimed.
void add_queues(const cluster::ServerStatus& server, const std::string& peer, Answer& answer) {
  for (const cluster::PeerStatus& each : server.peers) {
    if (!peer.empty() && each.peer.id != peer) continue;
    for (const cluster::QueueStatus& queue : each.queues) {
      answer.add_row({each.peer.id, server.server.host, to_string(queue.owner), queue.edits_shipped,
                      queue.bytes_behind, queue.log, queue.offset, queue.problem});
    }
  }
}

Answer peer_status(Shell& shell, const Call& call) {
  const auto servers = read_servers(shell, call);
  if (!servers.ok()) return servers.status();
  Answer answer;
  answer.columns = {"PEER",         "SERVER", "LOGS OF", "SHIPPED",
                    "BYTES BEHIND", "LOG",    "OFFSET",  "PROBLEM"};
  for (const cluster::ServerEntry& entry : servers->live) {
    const auto status = shell.ask<cluster::ServerStatus>(
        [&](auto done) { shell.client().server_status(entry.name, std::move(done)); },
        call.timeout(Shell::kCallTime));
    if (status.status().code() == StatusCode::kAborted) return status.status();
    if (status.ok()) {
      add_queues(*status, call.has(0) ? call.text(0) : std::string(), answer);
    } else {
      answer.note(fmt::format("{} does not answer: {}", to_string(entry.name),
                              status.status().to_string()));
    }
  }
  answer.note(counted(answer.rows.size(), "queue"));
  return answer;
}

Command change(std::string_view name, std::string_view summary, std::string_view example,
               std::vector<OptionSpec> options, Answer (*run)(Shell&, const Call&)) {
  return {.name = name,
          .group = "peers",
          .summary = summary,
          .example = example,
          .arguments = {{"peer", Takes::kPeer}},
          .options = std::move(options),
          .effect = Effect::kProcedure,
          .run = run};
}

}  // namespace

void add_peer_commands(std::vector<Command>& table) {
  const OptionSpec cluster{"CLUSTER", Shape::kText, "the directory of the other cluster"};
  const OptionSpec tables{"TABLES", Shape::kTexts, "the tables that are sent; none named: all"};
  const OptionSpec disabled{"DISABLED", Shape::kFlag, "sends nothing until it is enabled"};
  table.push_back(change("add_peer", "Makes another cluster a peer of this one.",
                         "add_peer 'backup', CLUSTER => '/clusters/b', TABLES => ['t']",
                         {cluster, tables, disabled}, add_peer));
  table.push_back(change("update_peer", "Changes what goes to a peer.",
                         "update_peer 'backup', TABLES => ['t', 'u']", {cluster, tables},
                         update_peer));
  table.push_back(change("remove_peer", "Forgets a peer.", "remove_peer 'backup'", {},
                         change_peer<RemovePeer>));
  table.push_back(change("enable_peer", "Has rows sent to a peer.", "enable_peer 'backup'", {},
                         change_peer<EnablePeer>));
  table.push_back(change("disable_peer", "Keeps rows for a peer, and sends none.",
                         "disable_peer 'backup'", {}, change_peer<DisablePeer>));
  table.push_back({.name = "list_peers",
                   .group = "peers",
                   .summary = "Lists peers.",
                   .example = "list_peers",
                   .run = list_peers});
  table.push_back({.name = "peer_status",
                   .group = "peers",
                   .summary = "Says how far each server has shipped its logs to the peers.",
                   .example = "peer_status 'backup'",
                   .arguments = {{"peer", Takes::kPeer, Argument::Count::kOptional}},
                   .run = peer_status});
}

}  // namespace pv2::shell

// SPDX-License-Identifier: Apache-2.0
//
// Commands that look at the cluster as a whole: its servers, a summary, and whether its parts
// agree.

#include <fmt/format.h>

#include "commands/call.h"
#include "commands/catalogue_reads.h"
#include "commands/subjects.h"
#include "output/duration.h"

namespace pv2::shell {
namespace {

using Shape = OptionSpec::Shape;

Answer servers(Shell& shell, const Call& call) {
  const auto list = read_servers(shell, call);
  if (!list.ok()) return list.status();
  Answer answer;
  answer.columns = {"SERVER", "STATE", "REGIONS", "REQUESTS", "BYTES", "SILENT", "ADDRESS"};
  for (const cluster::ServerEntry& entry : list->live) {
    answer.add_row({to_string(entry.name), "ONLINE", entry.regions, entry.requests, entry.bytes,
                    in_words(entry.silent), entry.address});
  }
  for (const ServerRow& row : list->dead) {
    if (row.state == ServerState::kRetired && !call.flag("ALL")) continue;
    answer.add_row({to_string(row.name), std::string(to_string(row.state)), {}, {}, {}, {}, {}});
  }
  answer.note(counted(list->live.size(), "live server"));
  return answer;
}

Answer status(Shell& shell, const Call& call) {
  const auto list = read_servers(shell, call);
  if (!list.ok()) return list.status();
  const auto tables = read_tables(shell, call);
  if (!tables.ok()) return tables.status();
  const auto page = shell.ask<ProcedurePage>(
      [&](PageDone done) {
        return shell.executor().list({.is_root = true}, {}, 1000, std::move(done));
      },
      call.timeout(Shell::kCallTime));
  if (!page.ok()) return page.status();
  std::uint64_t regions = 0;
  for (const cluster::ServerEntry& entry : list->live) regions += entry.regions;
  std::uint64_t recovering = 0;
  for (const ServerRow& row : list->dead) recovering += row.state != ServerState::kRetired ? 1 : 0;
  std::uint64_t parked = 0;
  for (const ProcedureInfo& info : page->procedures) parked += info.parked ? 1 : 0;
  Answer answer;
  answer.columns = {"WHAT", "VALUE"};
  answer.add_row({"directory", shell.root()});
  answer.add_row({"master's epoch", list->epoch});
  answer.add_row({"live servers", std::uint64_t{list->live.size()}});
  answer.add_row({"dead servers that are being recovered", recovering});
  answer.add_row({"the catalogue is on", to_string(list->meta.server)});
  answer.add_row({"tables", std::uint64_t{tables->size()}});
  answer.add_row({"regions on servers", regions});
  answer.add_row({"procedures that have not ended", std::uint64_t{page->procedures.size()}});
  answer.add_row({"of these parked", parked});
  return answer;
}

Answer check(Shell& shell, const Call& call) {
  shell.progress().show("looks at the catalogue, the servers and the files");
  const auto snapshot = inspect(shell, call);
  if (!snapshot.ok()) return snapshot.status();
  const std::vector<std::string> disorder = find_disorder(*snapshot);
  Answer answer;
  if (disorder.empty()) {
    answer.note(fmt::format(
        "all is in order: {}, {}, {}, {}", counted(snapshot->namespaces.size(), "namespace"),
        counted(snapshot->tables.size(), "table"), counted(snapshot->regions.size(), "region"),
        counted(snapshot->open.size(), "server")));
    return answer;
  }
  answer = Answer(Status(StatusCode::kFailedPrecondition,
                         counted(disorder.size(), "thing") +
                             " in disorder; while procedures run, that is no fault: check again "
                             "when list_procedures is empty"));
  answer.columns = {"DISORDER"};
  for (const std::string& sentence : disorder) answer.add_row({sentence});
  return answer;
}

}  // namespace

void add_server_commands(std::vector<Command>& table) {
  table.push_back({.name = "status",
                   .group = "cluster",
                   .summary = "Sums the cluster up.",
                   .example = "status",
                   .run = status});
  table.push_back({.name = "servers",
                   .group = "cluster",
                   .summary = "Lists region servers: those that live, and those being recovered.",
                   .example = "servers",
                   .options = {{"ALL", Shape::kFlag, "dead ones too of which nothing is left"}},
                   .run = servers});
  table.push_back({.name = "check",
                   .group = "cluster",
                   .summary = "Compares the catalogue, the servers and the files with each other.",
                   .example = "check",
                   .run = check});
}

}  // namespace pv2::shell

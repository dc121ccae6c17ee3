// SPDX-License-Identifier: Apache-2.0
//
// Commands about regions. A region is named by its id, or by the first digits of it. Each change is
// a procedure; a statement that means several regions takes them one after the other, and its
// answer is that of the first one that does not succeed.

#include <fmt/format.h>
#include <pv2/procedures/merge_table_regions.h>
#include <pv2/procedures/split_table_region.h>
#include <pv2/procedures/transit_region_state.h>

#include <algorithm>

#include "commands/call.h"
#include "commands/catalogue_reads.h"
#include "commands/procedure_run.h"
#include "commands/subjects.h"
#include "language/escape.h"

namespace pv2::shell {
namespace {

using Count = Argument::Count;

Answer regions(Shell& shell, const Call& call) {
  const auto rows = read_regions(shell, call, parse_table_name(call.text(0)));
  if (!rows.ok()) return rows.status();
  Answer answer;
  answer.columns = {"REGION", "STATE", "START KEY", "END KEY", "SERVER"};
  for (const RegionRow& row : *rows) {
    answer.add_row({row.region.id, std::string(to_string(row.state)), Bytes{row.region.start_key},
                    Bytes{row.region.end_key},
                    row.server.empty() ? Field() : Field(to_string(row.server))});
  }
  answer.note(counted(rows->size(), "region"));
  return answer;
}

/// The open regions that an argument means: one, or all of a table.
Result<std::vector<RegionInfo>> chosen(Shell& shell, const Call& call) {
  const std::string& text = call.text(0);
  const TableName table = parse_table_name(text);
  bool is_table = !looks_like_region(text);
  if (!is_table) {
    const Status known = read_table(shell, call, table).status();
    if (!known.ok() && known.code() != StatusCode::kNotFound) return known;
    is_table = known.ok();
  }
  std::vector<RegionInfo> regions;
  if (is_table) {
    const auto rows = read_regions(shell, call, table);
    if (!rows.ok()) return rows.status();
    for (const RegionRow& row : *rows) regions.push_back(row.region);
  } else {
    const auto row = find_region(shell, call, text);
    if (!row.ok()) return row.status();
    regions.push_back(row->region);
  }
  return regions;
}

// Without an answer the files may have been written; the same statement asks again.
Answer not_rewritten(const Call& call, const RegionInfo& region, const Status& why) {
  Answer answer(why.with_context("region " + region.id));
  switch (why.code()) {
    case StatusCode::kAborted:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kUnavailable:
    case StatusCode::kUnknownOutcome:
      answer.outcome = Outcome::kUnknown;
      answer.again = to_text(call.statement);
      break;
    default:
      break;
  }
  return answer;
}

template <bool kCompacts>
Answer rewrite(Shell& shell, const Call& call) {
  const auto regions = chosen(shell, call);
  if (!regions.ok()) return regions.status();
  const Duration timeout = call.timeout(Shell::kCallTime);
  for (std::size_t i = 0; i < regions->size(); ++i) {
    shell.progress().show(fmt::format("{} of {} regions", i, regions->size()));
    const RegionInfo& region = (*regions)[i];
    const Result<bool> done = shell.ask<bool>(
        [&](const std::function<void(Result<bool>)>& done) {
          auto answer = [done](Status status) {
            done(status.ok() ? Result<bool>(true) : Result<bool>(std::move(status)));
          };
          kCompacts ? shell.client().compact(region, std::move(answer), Shell::beyond(timeout))
                    : shell.client().flush(region, std::move(answer), Shell::beyond(timeout));
        },
        timeout);
    if (!done.ok()) return not_rewritten(call, region, done.status());
  }
  return said(fmt::format("{} {}", counted(regions->size(), "region"),
                          kCompacts ? "compacted" : "flushed"));
}

Result<std::string> split_point(Shell& shell, const Call& call, const RegionInfo& region) {
  const Duration timeout = call.timeout(Shell::kCallTime);
  return shell.ask<std::string>(
      [&](auto done) {
        shell.client().split_point(region, std::move(done), Shell::beyond(timeout));
      },
      timeout);
}

// For each region the statement that means this one split alone is what asks again.
Answer split_one(Shell& shell, const Call& call, const RegionInfo& region, const std::string& key) {
  Call one = call;
  one.arguments = {{.kind = Value::Kind::kText, .text = region.id},
                   {.kind = Value::Kind::kText, .text = key}};
  return run_procedure(shell, one, submission_of(SplitTableRegion(ports_elsewhere(), region, key)));
}

bool has_key(const RegionInfo& region, const std::string& key) {
  return region.start_key < key && (region.end_key.empty() || key < region.end_key);
}

Answer split(Shell& shell, const Call& call) {
  const auto regions = chosen(shell, call);
  if (!regions.ok()) return regions.status();
  if (call.has(1)) {
    const auto found = std::ranges::find_if(
        *regions, [&](const RegionInfo& region) { return has_key(region, call.text(1)); });
    if (found != regions->end()) return split_one(shell, call, *found, call.text(1));
    return Status(StatusCode::kInvalidArgument, "no region has " + in_quotes(call.text(1)) +
                                                    " inside it; regions may meet there");
  }
  if (call.identity.nonce && regions->size() > 1) {
    return Status(StatusCode::kInvalidArgument,
                  "a nonce names the split of one region; name the region");
  }
  Answer all;
  std::size_t small = 0;
  for (const RegionInfo& region : *regions) {
    const Result<std::string> key = split_point(shell, call, region);
    if (!key.ok()) return key.status();
    if (key->empty()) {
      ++small;
      continue;
    }
    Answer one = split_one(shell, call, region, *key);
    one.notes.insert(one.notes.begin(), all.notes.begin(), all.notes.end());
    if (!one.ok()) return one;
    all = std::move(one);
  }
  if (small > 0) all.note(counted(small, "region") + " with too few rows to be split");
  return all;
}

Answer merge(Shell& shell, const Call& call) {
  std::vector<RegionInfo> parents;
  for (std::size_t i = 0; call.has(i); ++i) {
    const auto row = find_region(shell, call, call.text(i));
    if (!row.ok()) return row.status();
    parents.push_back(row->region);
  }
  return run_procedure(shell, call,
                       submission_of(MergeTableRegions(ports_elsewhere(), std::move(parents))));
}

// The live server with the fewest regions that is not the region's own.
Result<ServerName> emptiest_other(Shell& shell, const Call& call, const ServerName& own) {
  const auto servers = read_servers(shell, call);
  if (!servers.ok()) return servers.status();
  const cluster::ServerEntry* best = nullptr;
  for (const cluster::ServerEntry& entry : servers->live) {
    if (entry.name == own) continue;
    if (best == nullptr || entry.regions < best->regions) best = &entry;
  }
  if (best != nullptr) return best->name;
  return Status(StatusCode::kFailedPrecondition, "there is no other live server");
}

Answer move(Shell& shell, const Call& call) {
  const auto row = find_region(shell, call, call.text(0));
  if (!row.ok()) return row.status();
  const auto target = call.has(1) ? find_server(shell, call, call.text(1))
                                  : emptiest_other(shell, call, row->server);
  if (!target.ok()) return target.status();
  return run_procedure(
      shell, call,
      submission_of(TransitRegionState::move(ports_elsewhere(), row->region, *target)));
}

Answer assign(Shell& shell, const Call& call) {
  const auto row = find_region(shell, call, call.text(0));
  if (!row.ok()) return row.status();
  return run_procedure(shell, call,
                       submission_of(TransitRegionState::assign(ports_elsewhere(), row->region)));
}

Answer unassign(Shell& shell, const Call& call) {
  const auto row = find_region(shell, call, call.text(0));
  if (!row.ok()) return row.status();
  return run_procedure(shell, call,
                       submission_of(TransitRegionState::unassign(ports_elsewhere(), row->region)));
}

}  // namespace

void add_region_commands(std::vector<Command>& table) {
  const Argument of_region{"region", Takes::kRegion};
  const Argument table_or_region{"table or region", Takes::kTableOrRegion};
  table.push_back({.name = "regions",
                   .group = "regions",
                   .summary = "Lists the regions of a table, and where they are.",
                   .example = "regions 't'",
                   .arguments = {{"table", Takes::kTable}},
                   .run = regions});
  table.push_back({.name = "flush",
                   .group = "regions",
                   .summary = "Writes what regions have in memory to files.",
                   .example = "flush 't'",
                   .arguments = {table_or_region},
                   .effect = Effect::kTwice,
                   .run = rewrite<false>});
  table.push_back({.name = "compact",
                   .group = "regions",
                   .summary = "Unites the files of regions, without what was removed.",
                   .example = "compact 't'",
                   .arguments = {table_or_region},
                   .effect = Effect::kTwice,
                   .run = rewrite<true>});
  table.push_back(
      {.name = "split",
       .group = "regions",
       .summary = "Divides a region, or each region of a table: at a key, or in the middle.",
       .example = "split 't', 'm'",
       .arguments = {table_or_region, {"key", Takes::kBytes, Count::kOptional}},
       .effect = Effect::kProcedure,
       .run = split});
  table.push_back({.name = "merge",
                   .group = "regions",
                   .summary = "Unites neighbouring regions of one table.",
                   .example = "merge '01ab', '23cd'",
                   .arguments = {of_region, {"region", Takes::kRegion, Count::kMany}},
                   .effect = Effect::kProcedure,
                   .run = merge});
  table.push_back({.name = "move",
                   .group = "regions",
                   .summary = "Moves a region to a server, or to the one with the fewest regions.",
                   .example = "move '01ab', 'rs2'",
                   .arguments = {of_region, {"server", Takes::kServer, Count::kOptional}},
                   .effect = Effect::kProcedure,
                   .run = move});
  table.push_back({.name = "assign",
                   .group = "regions",
                   .summary = "Opens a region that is closed.",
                   .example = "assign '01ab'",
                   .arguments = {of_region},
                   .effect = Effect::kProcedure,
                   .run = assign});
  table.push_back({.name = "unassign",
                   .group = "regions",
                   .summary = "Closes a region; its table then has a hole until it is assigned.",
                   .example = "unassign '01ab'",
                   .arguments = {of_region},
                   .effect = Effect::kProcedure,
                   .run = unassign});
}

}  // namespace pv2::shell

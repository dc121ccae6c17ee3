// SPDX-License-Identifier: Apache-2.0
//
// Reads the row, chooses a server, asks it, and records its answer. Each retry of the undo begins
// with the row again.

#include "region_reopening.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace pv2 {
namespace {

Status words(StatusCode code, const RegionInfo& region, const std::string& what) {
  return {code, to_string(region) + " " + what};
}

}  // namespace

RegionReopening::Answer RegionReopening::reopen(const std::vector<RegionInfo>& regions) {
  // This attempt has ended with a new round: the next one begins with the catalogue.
  if (progress_.failed_in == ctx_.attempt()) {
    return {Kind::kRetry, {StatusCode::kUnavailable, progress_.reason}};
  }
  for (const RegionInfo& region : regions) {
    Answer answer = reopen_one(region);
    if (answer.kind == Kind::kOpen) continue;
    if (answer.kind == Kind::kNewRound) {
      ++progress_.round;
      progress_.failed_in = ctx_.attempt();
      progress_.reason = std::string(answer.why.message());
    }
    return answer;
  }
  return {};
}

RegionReopening::Answer RegionReopening::reopen_one(const RegionInfo& region) {
  const auto* read = ctx_.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_.catalogue.read_region(region.id, std::move(done)); });
  const auto* live = ctx_.await<Result<std::vector<ServerName>>>(
      [&](auto done) { ports_.servers.live_servers(std::move(done)); });
  if (read == nullptr || live == nullptr) return {Kind::kWait};
  if (!read->ok()) return {Kind::kRetry, read->status()};
  if (!live->ok()) return {Kind::kRetry, live->status()};
  if (!read->value()) return {};
  const RegionRow& row = *read->value();
  // An open region was not closed, or is open again. If its server is dead, ServerCrash moves it.
  if (row.state == RegionState::kOpen || row.state == RegionState::kSplit) return {};

  const auto* home = ctx_.await<Result<ServerRow>>(
      [&](auto done) { ports_.catalogue.read_server(row.server, std::move(done)); });
  if (home == nullptr) return {Kind::kWait};
  if (!home->ok()) return {Kind::kRetry, home->status()};
  const bool home_is_dead = is_dead(home->value().state);
  const bool was_placed =
      row.state != RegionState::kClosed && row.state != RegionState::kFailedOpen;
  if (was_placed && home_is_dead) {
    const auto* recovered = ctx_.await<Status>([&](auto done) {
      ports_.servers.when_recovered(row.server, LogKind::kUser, std::move(done));
    });
    if (recovered == nullptr) return {Kind::kWait};
    if (!recovered->ok()) return {Kind::kRetry, *recovered};
  }
  if (row.state == RegionState::kOpening && !home_is_dead) {
    // An earlier run has chosen it, or an operator has ended the procedure that was opening it.
    return open_on(region, row.server, row.open_sequence, OpenRegion::Asked::kPerhaps);
  }
  if (row.state == RegionState::kClosing && !home_is_dead) {
    // An operator has ended the procedure that was closing it. Its server may serve it still.
    if (Answer closed = close_on(region, row.server); closed.kind != Kind::kOpen) return closed;
  }
  std::vector<ServerName> servers = live->value();
  std::erase_if(servers,
                [&](const ServerName& server) { return home_is_dead && server == row.server; });
  if (servers.empty()) {
    return {Kind::kRetry, words(StatusCode::kUnavailable, region,
                                "has to be opened again, and there is no live region server")};
  }
  const bool stays =
      progress_.round == 0 && std::ranges::find(servers, row.server) != servers.end();
  return open_on(region, stays ? row.server : servers[progress_.round % servers.size()],
                 row.open_sequence, OpenRegion::Asked::kNever);
}

RegionReopening::Reply RegionReopening::ask(const RemoteOperation& operation,
                                            OpenRegion::Asked asked_before) {
  const std::string server = to_string(operation.server);
  const std::string act = operation.kind == RemoteKind::kOpenRegion ? "opened" : "closed";
  const auto* sent = ctx_.await<DispatchOutcome>(
      [&](auto done) { ports_.servers.dispatch(operation, std::move(done)); });
  if (sent == nullptr) return {.answer = {Kind::kWait}};
  const bool never_sent =
      sent->kind == DispatchOutcome::Kind::kNotSent && asked_before == OpenRegion::Asked::kNever;
  if (sent->kind == DispatchOutcome::Kind::kRefused || never_sent) return {.refusal = sent->reason};
  if (sent->kind != DispatchOutcome::Kind::kDone) {
    return {.answer = {Kind::kRetry, words(StatusCode::kUnknownOutcome, operation.region,
                                           "may or may not be " + act + " on " + server + " (" +
                                               sent->reason + "); asking again")}};
  }
  const auto* crashed = ctx_.await<Status>(
      [&](auto done) { ports_.servers.when_crashed(operation.server, std::move(done)); });
  const std::optional<RemoteReport> report = find_report(reports_, operation);
  if (report && !report->done) return {.refusal = report->reason};
  if (report) return {.done = report};
  if (crashed == nullptr) return {.answer = {Kind::kWait}};
  return {
      .answer = {Kind::kRetry, words(StatusCode::kUnavailable, operation.region,
                                     "was being " + act + " on " + server + ", which crashed")}};
}

RegionReopening::Answer RegionReopening::open_on(const RegionInfo& region, const ServerName& target,
                                                 std::uint64_t sequence,
                                                 OpenRegion::Asked asked_before) {
  const auto* opening = ctx_.await<Result<Applied>>([&](auto done) {
    ports_.catalogue.write({.effect_key = key(region, target) + "/opening",
                            .regions = {{region, RegionState::kOpening, target, sequence}}},
                           std::move(done));
  });
  if (opening == nullptr) return {Kind::kWait};
  if (!opening->ok()) return {Kind::kRetry, opening->status()};
  // An earlier run has written this, and perhaps asked.
  if (opening->value() != Applied::kNow) asked_before = OpenRegion::Asked::kPerhaps;
  const Reply reply = ask({.kind = RemoteKind::kOpenRegion,
                           .server = target,
                           .procedure = ctx_.id(),
                           .effect_key = key(region, target) + "/open",
                           .region = region,
                           .sequence = sequence},
                          asked_before);
  if (reply.refusal) return give_up(region, target, *reply.refusal);
  if (reply.done) return record(region, target, reply.done->sequence);
  return reply.answer;
}

RegionReopening::Answer RegionReopening::close_on(const RegionInfo& region,
                                                  const ServerName& home) {
  const Reply reply = ask({.kind = RemoteKind::kCloseRegion,
                           .server = home,
                           .procedure = ctx_.id(),
                           .effect_key = key(region, home) + "/close",
                           .region = region},
                          OpenRegion::Asked::kPerhaps);
  if (reply.refusal) {
    return {Kind::kNewRound, words(StatusCode::kUnavailable, region,
                                   "was not closed by " + to_string(home) + ": " + *reply.refusal)};
  }
  if (!reply.done) return reply.answer;
  const auto* closed = ctx_.await<Result<Applied>>([&](auto done) {
    ports_.catalogue.write(
        {.effect_key = key(region, home) + "/closed",
         .regions = {{region, RegionState::kClosed, home, reply.done->sequence}}},
        std::move(done));
  });
  if (closed == nullptr) return {Kind::kWait};
  if (!closed->ok()) return {Kind::kRetry, closed->status()};
  return {};
}

RegionReopening::Answer RegionReopening::record(const RegionInfo& region, const ServerName& target,
                                                std::uint64_t sequence) {
  const auto* open = ctx_.await<Result<Applied>>([&](auto done) {
    ports_.catalogue.write({.effect_key = key(region, target) + "/opened",
                            .regions = {{region, RegionState::kOpen, target, sequence}}},
                           std::move(done));
  });
  if (open == nullptr) return {Kind::kWait};
  if (!open->ok()) return {Kind::kRetry, open->status()};  // perhaps fenced: the row says what next
  return {};
}

RegionReopening::Answer RegionReopening::give_up(const RegionInfo& region, const ServerName& target,
                                                 const std::string& reason) {
  // From now on the row does not say any more that the server may have the region.
  const auto* failed = ctx_.await<Result<Applied>>([&](auto done) {
    ports_.catalogue.write({.effect_key = key(region, target) + "/failed",
                            .regions = {{region, RegionState::kFailedOpen, target, 0}}},
                           std::move(done));
  });
  if (failed == nullptr) return {Kind::kWait};
  if (!failed->ok()) return {Kind::kRetry, failed->status()};
  return {Kind::kNewRound, words(StatusCode::kUnavailable, region,
                                 "was not opened by " + to_string(target) + ": " + reason)};
}

std::string RegionReopening::key(const RegionInfo& region, const ServerName& target) const {
  return ctx_.effect_key() + "/reopen/" + region.id + '/' + to_string(target) + '/' +
         std::to_string(progress_.round);
}

}  // namespace pv2

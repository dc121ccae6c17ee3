// SPDX-License-Identifier: Apache-2.0
//
// Every call ends in a callback that tells the history what the client was told.

#include "cluster/simulation/story_clients.h"

#include <pv2/base/fields.h>

#include <chrono>
#include <utility>

#include "wire/methods.h"
#include "wire/region_messages.h"

namespace pv2::testing::cluster_simulation {

using namespace pv2::cluster;  // NOLINT: of the simulation
using std::chrono::milliseconds;

namespace {

constexpr std::size_t kClients = 3;
constexpr std::uint64_t kGroup = 0xc11e;

std::string words_of(const WriteOutcome& outcome) {
  switch (outcome.kind) {
    case WriteOutcome::Kind::kOk:
      return "done at " + std::to_string(outcome.result.sequence);
    case WriteOutcome::Kind::kFailed:
      return "failed: " + outcome.status.to_string();
    case WriteOutcome::Kind::kUnknown:
      break;
  }
  return "unknown: " + outcome.status.to_string();
}

}  // namespace

StoryClients::StoryClients(cluster_world::ClusterWorld& world, WriteHistory& history,
                           Random& random, ProcessTransport::Route route,
                           std::function<void(std::string)> tell)
    : world_(world),
      history_(history),
      random_(random),
      route_(std::move(route)),
      tell_(std::move(tell)) {
  for (std::size_t i = 0; i < kClients; ++i) processes_.push_back(start());
}

StoryClients::~StoryClients() {
  raw_.clear();
  for (Process& process : processes_) process.client.reset();
}

StoryClients::Process StoryClients::start() {
  Process process;
  process.number = ++started_;
  process.network = std::make_shared<ProcessTransport>(world_.transport, route_);
  auto opened = ClusterClient::open(
      {.find_master = [&world = world_] { return world.files.read(world.layout.master_address()); },
       .transport = process.network,
       .clock = world_.clock,
       .seed = 1000 + process.number});
  REQUIRE(opened.ok());
  process.client = *std::move(opened);
  return process;
}

ClusterClient& StoryClients::any() { return *processes_.front().client; }

void StoryClients::replace_one() {
  const std::size_t place = random_.below(processes_.size());
  tell_("client " + std::to_string(processes_[place].number) + " dies");
  // What it has sent is on its way; its answers come to nobody.
  processes_[place].network->die(ProcessTransport::Death::kHeard);
  raw_.clear();
  processes_[place].client.reset();
  processes_[place] = start();
}

bool StoryClients::turn() {
  return processes_[random_.below(processes_.size())].network->run_one();
}

bool StoryClients::settle() {
  bool is_busy = false;
  for (Process& process : processes_) is_busy |= process.network->run_one();
  return is_busy;
}

Write* StoryClients::choose(Write::State state) {
  const std::vector<Write*> found = history_.writes_in(state);
  return found.empty() ? nullptr : found[random_.below(found.size())];
}

void StoryClients::act(const std::vector<TableName>& tables) {
  Process& process = processes_[random_.below(processes_.size())];
  const TableName& table = tables[random_.below(tables.size())];
  const std::uint64_t choice = random_.below(100);
  if (choice < 55) return write(process, table);
  if (choice < 70) return read(process, table);
  if (choice < 76) return scan(process, table);
  if (choice < 80) return tend(process, table);
  if (choice < 90) {
    Write* const unknown = choose(Write::State::kUnknown);
    if (unknown != nullptr) send(process, *unknown, {.resumed = true});
    return;
  }
  // What was done, or is under way, is sent again.
  Write* const old =
      choose(random_.below(3) == 0 ? Write::State::kPending : Write::State::kAcknowledged);
  if (old == nullptr) return;
  if (random_.below(3) == 0) return ask_a_server(process, *old);
  send(process, *old, {.resumed = random_.below(2) == 0});
}

void StoryClients::resume(Write& write) {
  send(processes_.front(), write, {.resumed = true, .timeout = std::chrono::minutes(2)});
}

void StoryClients::write(Process& process, const TableName& table) {
  const Nonce nonce{kGroup + process.number, ++process.writes};
  Write& write = history_.begin(table, nonce, random_);
  send(process, write, {});
}

void StoryClients::send(Process& process, Write& write, WriteOptions options) {
  options.nonce = write.nonce;
  // Whoever goes on with a write knows until when it may.
  if (options.resumed || write.copies > 0) options.expires_at = write.expires_at;
  if (!options.expires_at) {
    options.expires_at = later(world_.clock->wall_now(), std::chrono::minutes(15));
    write.expires_at = options.expires_at;
  }
  if (!options.timeout) {
    // Some give up in the middle.
    options.timeout = random_.below(3) == 0 ? milliseconds(1 + random_.below(400))
                                            : milliseconds(1000 + random_.below(20'000));
  }
  ++write.copies;
  ++write.in_flight;
  ++open_;
  tell_("client " + std::to_string(process.number) + (options.resumed ? " resumes" : " sends") +
        " write " + std::to_string(write.number) + " of " + write.row.substr(1) + " " +
        std::to_string(static_cast<unsigned char>(write.row[0])) + " of " + to_string(write.table));
  process.client->write(
      write.table, write.mutations, options, [this, &write](const WriteOutcome& outcome) {
        --open_;
        tell_("write " + std::to_string(write.number) + " is " + words_of(outcome));
        history_.heard(write, outcome);
      });
}

void StoryClients::read(Process& process, const TableName& table) {
  const std::string row = WriteHistory::row(random_.below(WriteHistory::kRows));
  ++open_;
  process.client->get(
      table, row, {},
      [this, table, row, begun = history_.now()](const Result<std::vector<Cell>>& cells) {
        --open_;
        if (cells.ok()) history_.read(table, row, *cells, begun);
      });
}

void StoryClients::scan(Process& process, const TableName& table) {
  ++open_;
  Scan range;
  range.rows_max = 1 + random_.below(20);
  process.client->scan(
      table, range, [this, table, begun = history_.now()](const Result<ScanPage>& page) {
        --open_;
        if (!page.ok()) return;
        std::vector<Cell> cells;
        for (std::size_t i = 0; i < page->cells.size(); ++i) {
          cells.push_back(page->cells[i]);
          const bool is_last =
              i + 1 == page->cells.size() || page->cells[i + 1].row != cells.front().row;
          if (!is_last) continue;
          history_.read(table, cells.front().row, cells, begun);
          cells.clear();
        }
      });
}

void StoryClients::tend(Process& process, const TableName& table) {
  std::vector<RegionInfo> regions;
  if (!world_.has_master()) return;
  for (const RegionRow& row : world_.master().rows().regions_of(table))
    regions.push_back(row.region);
  if (regions.empty()) return;
  const RegionInfo region = regions[random_.below(regions.size())];
  ++open_;
  const auto done = [this](const Status&) { --open_; };
  if (random_.below(3) == 0) {
    process.client->compact(region, done);
  } else {
    process.client->flush(region, done);
  }
}

// Past the client library: whichever server it is, it may say "not here", or do it once.
void StoryClients::ask_a_server(Process& process, Write& write) {
  const std::vector<ServerName> servers = world_.servers();
  if (servers.empty() || !world_.has_master()) return;
  const ServerName server = servers[random_.below(servers.size())];
  std::string region;
  for (const RegionRow& row : world_.master().rows().regions_of(write.table)) {
    const bool has_row = write.row >= row.region.start_key &&
                         (row.region.end_key.empty() || write.row < row.region.end_key);
    if (has_row && (region.empty() || random_.below(2) == 0)) region = row.region.id;
  }
  if (region.empty()) return;
  call(process, server, region, write, std::chrono::seconds(2));
}

void StoryClients::insist_on(const ServerName& server) {
  for (const RegionStatus& status : world_.status_of(server).regions) {
    if (is_meta(status.region.table) || random_.below(3) == 0) continue;
    Process& process = processes_[random_.below(processes_.size())];
    Write& write =
        history_.begin(status.region.table, {kGroup + process.number, ++process.writes}, random_);
    write.expires_at = later(world_.clock->wall_now(), std::chrono::minutes(15));
    call(process, server, status.region.id, write, std::chrono::seconds(40));
  }
}

void StoryClients::read_from(const ServerName& server) {
  for (const RegionStatus& status : world_.status_of(server).regions) {
    const RegionInfo& region = status.region;
    const std::string row = WriteHistory::row(random_.below(WriteHistory::kRows));
    const bool has_row =
        row >= region.start_key && (region.end_key.empty() || row < region.end_key);
    if (is_meta(region.table) || !has_row) continue;
    Process& process = processes_[random_.below(processes_.size())];
    auto client = RpcClient::open(
        {.transport = process.network, .addresses = {world_.server(server).address()}, .seed = 7});
    REQUIRE(client.ok());
    ScanRequest request{region.id, {.start_row = row, .end_row = row + '\0', .families = {}}, 0};
    std::string body;
    encode_fields(request, FieldSelection::kAll, body);
    ++open_;
    raw_.push_back(*std::move(client));
    raw_.back()->call(
        std::string(kRegionScan), std::move(body),
        {.read_only = true, .timeout = std::chrono::seconds(10)},
        [this, table = region.table, row, begun = history_.now()](const CallOutcome& outcome) {
          --open_;
          ScanPage page;
          if (!outcome.ok()) return;
          REQUIRE(decode_fields(page, FieldSelection::kAll, outcome.body).ok());
          history_.read(table, row, page.cells, begun);
        });
  }
}

void StoryClients::call(Process& process, const ServerName& server, const std::string& region,
                        Write& write, Duration timeout) {
  auto client = RpcClient::open(
      {.transport = process.network, .addresses = {world_.server(server).address()}, .seed = 7});
  REQUIRE(client.ok());
  WriteRequest request{region, write.mutations, 0};
  std::string body;
  encode_fields(request, FieldSelection::kAll, body);
  tell_("client " + std::to_string(process.number) + " asks " + to_string(server) + " for write " +
        std::to_string(write.number));
  ++write.copies;
  ++write.in_flight;
  ++open_;
  raw_.push_back(*std::move(client));
  raw_.back()->call(
      std::string(kRegionWrite), std::move(body),
      {.nonce = write.nonce,
       .resumed = write.copies > 1,
       .expires_at = write.expires_at,
       .timeout = timeout,
       .attempt_timeout = timeout},
      [this, &write](const CallOutcome& outcome) {
        --open_;
        WriteOutcome heard{.kind = outcome.kind, .status = outcome.status, .nonce = write.nonce};
        if (outcome.ok()) {
          REQUIRE(decode_fields(heard.result, FieldSelection::kAll, outcome.body).ok());
        }
        tell_("write " + std::to_string(write.number) + " there is " + words_of(heard));
        history_.heard(write, heard);
      });
}

}  // namespace pv2::testing::cluster_simulation

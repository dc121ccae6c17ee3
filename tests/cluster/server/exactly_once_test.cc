// SPDX-License-Identifier: Apache-2.0
//
// Random stories: clients add to counters while their network loses and repeats, regions move and
// are split, servers die, are fenced and come back. In the end every addition was done exactly
// once, and no read has shown less than what was acknowledged before it.

#include <pv2/base/random.h>
#include <pv2/procedures/init_meta.h>
#include <pv2/rpc/random_faults.h>
#include <pv2/testing/seeds.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "cluster/server/server_world.h"
#include "storage/log_directories.h"
#include "wire/catalogue_rows.h"

namespace pv2::testing::exactly_once_test {
namespace {

using namespace cluster;       // NOLINT: the layer under test
using namespace server_world;  // NOLINT

const TableName kTable{"default", "t"};
constexpr FaultRates kBad{
    .drop = 0.06, .duplicate = 0.06, .delay = 0.1, .reorder = 0.05, .cut = 0.02};

/// One counter, in its own row.
struct Counter {
  std::uint64_t begun = 0;
  std::set<std::uint64_t> told;  ///< What the additions were told that it is.
};

/// An addition whose outcome is not known.
struct Unknown {
  std::string row;
  Nonce nonce;
  std::optional<WallTime> expires_at;
};

class Story : public ServerWorld {
 public:
  explicit Story(std::uint64_t seed) : random_(seed) {
    auto faults = RandomFaults::create({.seed = seed});
    REQUIRE(faults.ok());
    faults_ = *std::move(faults);
    plan = faults_;
    swallows = [this](const RemoteReport&) { return random_.below(5) == 0; };
    const RegionInfo whole = whole_table(kTable, "r0");
    make_table(kTable, {"f"}, {whole});
    make_table(meta_table(), meta_descriptor().families, {meta_region()});
    for (const char* const host : {"rs1", "rs2", "rs3"}) start_server(host);
    open(meta_region(), live()[0]);
    open(whole, live()[1]);
    for (std::uint64_t i = 0; i < 3; ++i) clients_.push_back(connect(seed * 10 + i + 1));
  }
  ~Story() { clients_.clear(); }

  void run(int steps) {
    set_faults(kBad);
    for (int i = 0; i < steps; ++i) {
      for (std::uint64_t n = random_.below(6); n > 0; --n) begin_addition();
      if (random_.below(2) == 0) begin_read();
      run_for(std::chrono::milliseconds(10 * random_.below(20)));
      disturb();
    }
    set_faults({});
    run_until([this] { return under_way_ == 0; });
    resolve();
    check();
  }

 private:
  void start_server(const std::string& host) {
    start(host, [](RegionServerOptions& options) {
      options.memory_max = 20'000;
      options.log_bytes_max = 5'000;
      options.logs_max = 3;
    });
  }
  void set_faults(const FaultRates& rates) {
    REQUIRE(faults_->set_rates(Direction::kToServer, rates).ok());
    REQUIRE(faults_->set_rates(Direction::kToClient, rates).ok());
  }
  ClusterClient& any_client() { return *clients_[random_.below(clients_.size())]; }
  std::string any_row() { return std::string(1, static_cast<char>('a' + random_.below(8))); }
  RegionInfo any_region() {
    std::vector<RegionInfo> regions;
    for (const auto& [id, row] : rows) {
      if (row.state == RegionState::kOpen) regions.push_back(row.region);
    }
    return regions[random_.below(regions.size())];
  }
  ServerName any_server() {
    const auto servers = live();
    return servers[random_.below(servers.size())];
  }

  void add(ClusterClient& client, const std::string& row, const WriteOptions& options) {
    ++under_way_;
    client.write(
        kTable, {{MutationKind::kIncrement, row, "f", "n", "", 1}}, options,
        [this, row](const WriteOutcome& outcome) {
          --under_way_;
          INFO(outcome.status.to_string());
          switch (outcome.kind) {
            case WriteOutcome::Kind::kOk:
              REQUIRE(counters_[row].told.insert(std::stoull(outcome.result.values.at(0))).second);
              return;
            case WriteOutcome::Kind::kFailed:
              --counters_[row].begun;
              ++failed_;
              return;
            case WriteOutcome::Kind::kUnknown:
              unknown_.push_back({row, outcome.nonce, outcome.expires_at});
          }
        });
  }
  void begin_addition() {
    const std::string row = any_row();
    ++counters_[row].begun;
    // A short time makes outcomes that are not known.
    add(any_client(), row, {.timeout = std::chrono::milliseconds(50 + random_.below(20'000))});
  }
  void begin_read() {
    const std::string row = any_row();
    const auto& told = counters_[row].told;
    const std::uint64_t least = told.empty() ? 0 : *told.rbegin();
    ++under_way_;
    any_client().get(kTable, row, {}, [this, row, least](const Result<std::vector<Cell>>& cells) {
      --under_way_;
      if (!cells.ok()) return;
      ++reads_;
      const std::uint64_t value = cells->empty() ? 0 : std::stoull(cells->at(0).value);
      INFO("row " << row);
      CHECK(value >= least);
      CHECK(value <= counters_[row].begun + failed_);
    });
  }

  void disturb() {
    switch (random_.below(10)) {
      case 0:
      case 1:
        return move(any_region(), any_server());
      case 2:
        return split_one();
      case 3:
        return lose_server(Death::kCrash);
      case 4:
        return lose_server(Death::kFence);
      case 5:
        return begin_flush(&ClusterClient::flush);
      case 6:
        return begin_flush(&ClusterClient::compact);
      case 7:
        stop_master();
        run_for(std::chrono::milliseconds(random_.below(500)));
        return start_master(epoch + 1);
      default:
        return;
    }
  }
  void begin_flush(void (ClusterClient::*verb)(const RegionInfo&, ClusterClient::Done<Status>,
                                               std::optional<Duration>)) {
    ++under_way_;
    (any_client().*verb)(any_region(), [this](const Status&) { --under_way_; }, {});
  }
  void split_one() {
    const RegionInfo region = any_region();
    const std::string row = any_row();
    const bool is_inside =
        row > region.start_key && (region.end_key.empty() || row < region.end_key);
    if (!is_meta(region.table) && is_inside) split(region, row);
  }
  enum class Death { kCrash, kFence };
  /// The server dies, or goes on without knowing that it was taken for dead.
  void lose_server(Death death) {
    const ServerName lost = any_server();
    const auto regions = regions_on(lost);
    if (death == Death::kCrash) kill(lost);
    start_server(lost.host);
    std::vector<ServerName> others = live();
    std::erase(others, lost);
    recover(lost, others[random_.below(others.size())]);
    // The catalogue first.
    for (const bool meta : {true, false}) {
      for (const RegionInfo& region : regions) {
        if (is_meta(region.table) == meta) open(region, others[random_.below(others.size())]);
      }
    }
    if (death == Death::kFence && random_.below(2) == 0) {
      run_until([&] { return process(lost).end.has_value(); });
      kill(lost);
    }
  }

  void resolve() {
    for (int round = 0; !unknown_.empty(); ++round) {
      REQUIRE(round < 20);
      const auto unknown = std::exchange(unknown_, {});
      for (const Unknown& addition : unknown) {
        add(any_client(), addition.row,
            {.nonce = addition.nonce, .expires_at = addition.expires_at, .resumed = true});
      }
      run_until([this] { return under_way_ == 0; });
    }
  }
  void check() {
    for (const auto& [row, counter] : counters_) {
      const auto cells = answer<Result<std::vector<Cell>>>(
          [&, key = row](std::function<void(Result<std::vector<Cell>>)> done) {
            clients_[0]->get(kTable, key, {}, std::move(done));
          });
      REQUIRE(cells.status().to_string() == "OK");
      INFO("row " << row);
      const std::uint64_t value = cells->empty() ? 0 : std::stoull(cells->at(0).value);
      CHECK(value == counter.begun);
      CHECK(counter.told.size() == counter.begun);
      if (!counter.told.empty()) CHECK(*counter.told.rbegin() == value);
    }
    CHECK(reads_ > 0);
  }

  Random random_;
  std::shared_ptr<RandomFaults> faults_;
  std::vector<std::unique_ptr<ClusterClient>> clients_;
  std::map<std::string, Counter> counters_;
  std::vector<Unknown> unknown_;
  std::size_t under_way_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t reads_ = 0;
};

}  // namespace

TEST_CASE("additions are done exactly once while regions move, split and lose their servers") {
  const Seeds seeds = seeds_from_environment(12);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    INFO("PV2_TEST_SEED=" << seed);
    Story(seed).run(30);
  }
}

}  // namespace pv2::testing::exactly_once_test

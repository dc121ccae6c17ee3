// SPDX-License-Identifier: Apache-2.0
//
// Servers that do not know that they are dead. The master moves a region from server to server;
// each old one goes on with its writes, flushes, compactions and the archiving of its logs at
// random times. Every acknowledged increment counts once, and a server that answers is the owner.

#include "pv2/base/random.h"
#include "pv2/testing/seeds.h"
#include "storage_fixture.h"

namespace pv2::testing::late_server_test {
namespace {

class Run {
 public:
  explicit Run(std::uint64_t seed) : random_(seed) {
    disk_.make_table({whole_table()});
    move();
  }

  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      if (random_.below(25) == 0) move();
      // The present server is as likely as all late ones together.
      const std::size_t at =
          random_.below(2) == 0 ? servers_.size() - 1 : random_.below(servers_.size());
      act(*servers_[at]);
    }
    move();
    StorageServer& last = *servers_.back();
    const auto nonces = last.region().nonces();
    REQUIRE(nonces.ok());
    const auto rows = rows_of(last.region());
    REQUIRE((rows.empty() ? 0 : std::stoul(rows.at("n"))) == nonces->size());
    for (const std::uint64_t operation : acknowledged_) {
      INFO("operation " << operation);
      REQUIRE(std::any_of(nonces->begin(), nonces->end(), [&](const cluster::NonceCell& nonce) {
        return nonce.nonce.value == operation;
      }));
    }
  }

 private:
  void act(StorageServer& server) {
    switch (random_.below(8)) {
      case 0:
        server.region().flush([this, &server](const Result<std::uint64_t>& done) {
          if (done.ok()) server.log->flushed(whole_table().id, *done);
          note(server, done.status());
        });
        break;
      case 1:
        server.region().compact({}, [this, &server](const Status& done) { note(server, done); });
        break;
      case 2:
      case 3:
        write(server);
        break;
      default:
        server.work.run_one();
    }
  }

  void write(StorageServer& server) {
    const std::uint64_t operation = ++operations_;
    const auto done = [this, &server, operation](const Result<cluster::WriteResult>& result) {
      if (result.ok()) {
        // The fence is exact: only the owner acknowledges.
        REQUIRE(&server == servers_.back().get());
        acknowledged_.push_back(operation);
      }
      note(server, result.status());
    };
    server.region().write(
        {.mutations = {increment("n", 1)}, .nonce = cluster::WriteNonce{{1, operation}, {}, {}}},
        *server.log, done);
  }

  // Nothing fails on the present server.
  void note(StorageServer& server, const Status& status) {
    INFO(status.to_string());
    if (&server == servers_.back().get()) REQUIRE(status.ok());
  }

  void move() {
    if (!servers_.empty()) {
      StorageServer& old = *servers_.back();
      // What the old server has queued stays there, half done.
      REQUIRE(disk_.logs.fence(old.name()).ok());
      const auto logs = disk_.logs.logs(old.name(), cluster::LogKind::kUser);
      REQUIRE(logs.ok());
      for (const cluster::LogFile& log : *logs) {
        const auto first = split_log(disk_.files, disk_.layout, old.name(), log);
        INFO(first.status().to_string());
        REQUIRE(first.ok());
        // The old server goes on in the middle of it, and a second worker splits the same log.
        const std::size_t more = random_.below(4);
        servers_.push_back(nullptr);  // nobody is the owner
        for (std::size_t i = 0; i < more; ++i) act(*servers_[servers_.size() - 2]);
        servers_.pop_back();
        REQUIRE(split_log(disk_.files, disk_.layout, old.name(), log).ok());
        REQUIRE(disk_.logs.archive(old.name(), log.name).ok());
      }
    }
    servers_.push_back(std::make_unique<StorageServer>(disk_, servers_.size() + 1, 400));
    REQUIRE(servers_.back()->start().ok());
    const Status opened = servers_.back()->open(whole_table(), servers_.size());
    INFO(opened.to_string());
    REQUIRE(opened.ok());
  }

  Random random_;
  Disk disk_;
  std::vector<std::unique_ptr<StorageServer>> servers_;  ///< The last one is the owner.
  std::vector<std::uint64_t> acknowledged_;
  std::uint64_t operations_ = 0;
};

}  // namespace

TEST_CASE("cluster: servers that do not know that they are dead change nothing") {
  const Seeds seeds = seeds_from_environment(10);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    INFO("PV2_TEST_SEED=" << seed);
    Run(seed).steps(400);
  }
}

}  // namespace pv2::testing::late_server_test

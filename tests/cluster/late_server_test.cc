// SPDX-License-Identifier: Apache-2.0
//
// Servers that do not know that they are dead. The master moves a region from server to server;
// each old one goes on with its writes, flushes, compactions and the archiving of its logs at
// random times. Every acknowledged increment counts once, and a server that answers is the owner.

#include <functional>
#include <tuple>

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
        REQUIRE(disk_.logs.archive(old.name(), log).ok());
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

using Act = std::function<void(StorageServer&)>;

/// An old server with data in memory and in files.
std::unique_ptr<StorageServer> old_server(Disk& disk) {
  disk.make_table({whole_table()});
  auto server = std::make_unique<StorageServer>(disk, 1, 300);
  REQUIRE(server->start().ok());
  REQUIRE(server->open(whole_table(), 1).ok());
  for (const char* row : {"a", "b", "c"}) {
    REQUIRE(server->write({put(row, "1")}).ok());
    if (*row != 'c') REQUIRE(server->flush().ok());
  }
  return server;
}

/// Calls `interrupt` before the `at`-th operation on the disk during `act`. False: there are fewer.
bool interrupted(Disk& disk, std::size_t at, const std::function<void()>& act,
                 const std::function<void()>& interrupt) {
  std::size_t seen = 0;
  disk.env.set_fault([&](CrashEnv::Operation, const std::string&) {
    if (seen++ == at) interrupt();
    return leveldb::Status::OK();
  });
  act();
  disk.env.set_fault(nullptr);
  return seen > at;
}

/// Opens the region on a server of its own and looks at what is there.
void check_final(Disk& disk, const ServerName& last,
                 const std::map<std::string, std::string>& rows) {
  REQUIRE(recover(disk, last).ok());
  StorageServer reader(disk, 99);
  REQUIRE(reader.start().ok());
  const Status opened = reader.open(whole_table(), 99);
  INFO(opened.to_string());
  REQUIRE(opened.ok());
  REQUIRE(rows_of(reader.region()) == rows);
}

}  // namespace

TEST_CASE("cluster: a region may move away before any operation of its old server") {
  const std::vector<Act> acts{
      [](StorageServer& old) { std::ignore = old.flush(); },
      [](StorageServer& old) { std::ignore = old.compact(); },
      [](StorageServer& old) { std::ignore = old.close(); },
      [](StorageServer& old) { std::ignore = old.write({put("d", "late")}); },
      [](StorageServer& old) {
        if (old.close().ok()) std::ignore = old.open(whole_table(), 2);
      },
  };
  for (std::size_t which = 0; which < acts.size(); ++which) {
    for (std::size_t at = 0;; ++at) {
      INFO("act " << which << ", operation " << at);
      Disk disk;
      const auto old = old_server(disk);
      StorageServer next(disk, 2, 300);
      const auto move = [&] {
        disk.env.set_fault(nullptr);
        REQUIRE(recover(disk, old->name()).ok());
        REQUIRE(next.start().ok());
        const Status opened = next.open(whole_table(), 3);
        INFO(opened.to_string());
        REQUIRE(opened.ok());
        REQUIRE(next.region().get("c")->size() == 1);
        REQUIRE(next.write({erase("a"), erase("d")}).ok());
        if (at % 2 == 0) REQUIRE(next.flush().ok());
        if (at % 4 == 0) REQUIRE(next.compact().ok());
      };
      const bool moved = interrupted(
          disk, at, [&] { acts[which](*old); }, move);
      if (!moved) break;
      REQUIRE(next.write({put("e", "5")}).ok());
      check_final(disk, next.name(), {{"b", "1"}, {"c", "1"}, {"e", "5"}});
    }
  }
}

TEST_CASE("cluster: the old server may do anything before any operation of the next opening") {
  const std::vector<Act> acts{
      [](StorageServer& old) { std::ignore = old.flush(); },
      [](StorageServer& old) { std::ignore = old.compact(); },
      [](StorageServer& old) {
        std::ignore = old.flush();
        std::ignore = old.compact();
      },
      [](StorageServer& old) {  // an order to open it that was given up
        std::ignore = old.open(whole_table(), 2);
      },
  };
  for (std::size_t which = 0; which < acts.size(); ++which) {
    for (std::size_t at = 0;; ++at) {
      INFO("act " << which << ", operation " << at);
      Disk disk;
      const auto old = old_server(disk);
      REQUIRE(recover(disk, old->name()).ok());
      StorageServer next(disk, 2);
      REQUIRE(next.start().ok());
      Status opened;
      const bool acted = interrupted(
          disk, at, [&] { opened = next.open(whole_table(), 3); },
          [&] {
            disk.env.set_fault(nullptr);
            acts[which](*old);
          });
      INFO(opened.to_string());
      // It may have to try again, and loses nothing.
      if (!opened.ok()) REQUIRE(next.open(whole_table(), 3).ok());
      REQUIRE(next.write({erase("a")}).ok());
      check_final(disk, next.name(), {{"b", "1"}, {"c", "1"}});
      if (!acted) break;
    }
  }
}

TEST_CASE("cluster: an opening that a later one overtakes anywhere changes nothing") {
  for (std::size_t at = 0;; ++at) {
    INFO("operation " << at);
    Disk disk;
    const auto old = old_server(disk);
    REQUIRE(recover(disk, old->name()).ok());
    StorageServer overtaken(disk, 2);
    StorageServer next(disk, 3);
    REQUIRE(overtaken.start().ok());
    REQUIRE(next.start().ok());
    const auto overtake = [&] {
      disk.env.set_fault(nullptr);
      const Status opened = next.open(whole_table(), 3);
      INFO(opened.to_string());
      REQUIRE(opened.ok());
      REQUIRE(next.write({put("d", "4")}).ok());
      REQUIRE(next.flush().ok());
      REQUIRE(next.compact().ok());
    };
    const bool was_overtaken = interrupted(
        disk, at, [&] { std::ignore = overtaken.open(whole_table(), 2); }, overtake);
    if (!was_overtaken) break;
    REQUIRE(disk.files.list(disk.layout.recovered(whole_table().table, whole_table().id))->empty());
    check_final(disk, next.name(), {{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "4"}});
  }
}

TEST_CASE("cluster: servers that do not know that they are dead change nothing") {
  const Seeds seeds = seeds_from_environment(10);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    INFO("PV2_TEST_SEED=" << seed);
    Run(seed).steps(400);
  }
}

}  // namespace pv2::testing::late_server_test

// SPDX-License-Identifier: Apache-2.0
//
// The whole life of a table under power cuts: writes, flushes, compactions, a split, a merge, moves
// to the archive. The power goes out before each operation of the file system in turn, and again
// during the recovery. Or only the processes die there, others do the recovery, and then the power
// goes out. The test plays the master: it remembers which step it is in, and repeats it.
//
// Each operation adds 1 to a row under a nonce of its own. So at every opening the number in a row
// must be the number of nonces of that row, and every acknowledged operation must have its nonce.

#include <functional>
#include <set>

#include "pv2/base/random.h"
#include "pv2/testing/seeds.h"
#include "storage_fixture.h"

namespace pv2::testing::storage_crash_test {
namespace {

RegionInfo region(const std::string& id, std::string start, std::string end) {
  return {{"default", "t"}, id, std::move(start), std::move(end)};
}

const RegionInfo kParent = whole_table();
const RegionInfo kLow = region("00000000000000b1", "", "c");
const RegionInfo kHigh = region("00000000000000b2", "c", "");
const RegionInfo kMerged = region("00000000000000cc", "", "");

// What ends a life: the power goes out, or all processes are killed.
enum class End { kPower, kProcesses };

class World {
 public:
  World(std::uint64_t seed, CrashEnv::TornTail torn, End end)
      : disk_(seed), random_(seed), torn_(torn), end_(end) {}

  /// Runs everything; the power goes out before operation `first_crash`, and then some more times.
  /// False: the run ended before the first one.
  bool run(std::size_t first_crash) {
    end_before_operation(first_crash);
    int crashes = 0;
    for (;;) {
      const Status status = live();
      // The power may have gone out after the last answer, while a log was archived.
      if (status.ok() && !is_off()) break;
      INFO(status.to_string());
      REQUIRE(is_off());  // nothing fails but for the power
      server_.reset();
      if (end_ == End::kProcesses) {
        is_dead_ = false;
        disk_.env.set_fault(nullptr);
        const Status recovered = recover_dead();
        INFO(recovered.to_string());
        REQUIRE(recovered.ok());
        disk_.env.crash(torn_);
      }
      disk_.env.reboot();
      if (++crashes < 4) end_before_operation(random_.below(60));
    }
    check_end();
    return crashes > 0;
  }

 private:
  using Step = std::function<Status()>;

  void end_before_operation(std::size_t operations) {
    if (end_ == End::kPower) return disk_.env.crash_before_operation(operations, torn_);
    left_ = operations;
    disk_.env.set_fault([this](CrashEnv::Operation, const std::string& file) {
      is_dead_ = is_dead_ || left_ == 0;
      if (is_dead_) return leveldb::Status::IOError(file, "the process is dead");
      --left_;
      return leveldb::Status::OK();
    });
  }
  bool is_off() { return is_dead_ || !disk_.files.list("root").ok(); }

  /// One life of all processes.
  Status live() {
    if (Status bad = recover_dead(); !bad.ok()) return bad;
    const std::vector<Step> steps{
        [this] { return make_table(); },
        [this] { return operate(1, 7); },
        [this] { return flush_all(); },
        [this] { return operate(7, 12); },
        [this] { return compact_all(); },
        [this] { return operate(12, 15); },
        [this] { return flush_all(); },
        [this] { return split(); },
        [this] { return operate(15, 21); },
        [this] { return compact_and_archive({kParent.id}); },
        [this] { return operate(21, 24); },
        [this] { return merge(); },
        [this] { return operate(24, 28); },
        [this] { return compact_and_archive({kLow.id, kHigh.id}); },
        [this] { return operate(28, 33); },
    };
    while (step_ < steps.size()) {
      if (step_ > 0) {
        if (Status bad = open_all(); !bad.ok()) return bad;
      }
      if (Status bad = steps[step_](); !bad.ok()) return bad;
      ++step_;
    }
    return open_all();
  }

  // The master knows the sizes from its first look at the fenced directory.
  Status recover_dead() {
    while (!dead_.empty()) {
      Dead& dead = dead_.front();
      if (!dead.logs) {
        if (Status bad = disk_.logs.fence(dead.server); !bad.ok()) return bad;
        auto logs = disk_.logs.logs(dead.server, cluster::LogKind::kUser);
        if (!logs.ok()) return logs.status();
        dead.logs = *std::move(logs);
      }
      for (const cluster::LogFile& log : *dead.logs) {
        const auto split = cluster::split_log(disk_.files, disk_.layout, dead.server, log);
        if (!split.ok() && split.status().code() != StatusCode::kNotFound) return split.status();
        if (split.ok()) {
          const auto again = cluster::split_log(disk_.files, disk_.layout, dead.server, log);
          if (!again.ok()) return again.status();
        }
        if (Status bad = disk_.logs.archive(dead.server, log); !bad.ok()) return bad;
      }
      if (Status bad = disk_.logs.remove(dead.server); !bad.ok()) return bad;
      dead_.pop_front();
    }
    return {};
  }

  Status make_table() {
    regions_ = {kParent};
    return disk_.tables.write_layout({kParent.table, {"f"}}, regions_);
  }

  Status open_all() {
    if (!server_) {
      const std::uint64_t code = ++start_codes_;
      server_ = std::make_unique<StorageServer>(disk_, code, /*log_bytes=*/500);
      dead_.push_back({server_->name(), {}});  // in every later life it is
      if (Status bad = server_->start(); !bad.ok()) return bad;
    }
    for (const RegionInfo& info : regions_) {
      if (server_->regions.contains(info.id)) continue;
      if (Status bad = server_->open(info, ++openings_, with_families({"f"})); !bad.ok())
        return bad;
      if (Status bad = check_opened(server_->region(info.id)); !bad.ok()) return bad;
    }
    return {};
  }

  Status check_opened(const cluster::Region& region) {
    const auto nonces = region.nonces();
    if (!nonces.ok()) return nonces.status();
    std::map<std::string, std::uint64_t> counts;
    for (const cluster::NonceCell& nonce : *nonces) {
      ++counts[nonce.row];
      known_.insert(nonce.nonce.value);
      REQUIRE(row_of(nonce.nonce.value) == nonce.row);
    }
    std::uint64_t found = 0;
    for (const auto& [row, value] : rows_of(region)) {
      REQUIRE(std::to_string(counts[row]) == value);
      ++found;
    }
    REQUIRE(found == counts.size());
    for (const std::uint64_t operation : acknowledged_) {
      if (!in(region.info(), row_of(operation))) continue;
      INFO("operation " << operation << " was acknowledged");
      REQUIRE(known_.contains(operation));
    }
    std::uint64_t& highest = open_sequences_[region.info().id];
    REQUIRE(region.open_sequence() > highest);
    highest = region.open_sequence();
    return {};
  }

  static std::string row_of(std::uint64_t operation) {
    return std::string(1, static_cast<char>('a' + operation % 5));
  }
  static bool in(const RegionInfo& info, const std::string& row) {
    return row >= info.start_key && (info.end_key.empty() || row < info.end_key);
  }

  Status operate(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t operation = from; operation < to; ++operation) {
      if (acknowledged_.contains(operation)) continue;
      if (!known_.contains(operation)) {
        const std::string row = row_of(operation);
        const std::string& id =
            in(regions_.front(), row) ? regions_.front().id : regions_.back().id;
        const auto done =
            server_->write({increment(row, 1)}, cluster::WriteNonce{{1, operation}, {}, {}}, id);
        if (!done.ok()) return done.status();
        known_.insert(operation);
      }
      acknowledged_.insert(operation);
    }
    return {};
  }

  Status flush_all() {
    for (const RegionInfo& info : regions_) {
      if (Status bad = server_->flush(info.id); !bad.ok()) return bad;
    }
    return {};
  }
  Status compact_all() {
    for (const RegionInfo& info : regions_) {
      if (Status bad = server_->flush(info.id); !bad.ok()) return bad;
      if (Status bad = server_->compact({}, info.id); !bad.ok()) return bad;
      if (server_->region(info.id).has_references())
        return {StatusCode::kInternal, "a compacted region has references"};
    }
    return {};
  }
  Status compact_and_archive(const std::vector<std::string>& ids) {
    if (Status bad = compact_all(); !bad.ok()) return bad;
    const auto references = disk_.tables.references(kParent.table);
    if (!references.ok()) return references.status();
    REQUIRE(references->empty());
    return disk_.tables.archive_regions(kParent.table, ids);
  }

  Status close_all() {
    for (const RegionInfo& info : regions_) {
      if (Status bad = server_->close(info.id); !bad.ok()) return bad;
      server_->regions.erase(info.id);
      const auto recovered = disk_.tables.has_recovered_edits(info);
      if (!recovered.ok()) return recovered.status();
      REQUIRE_FALSE(*recovered);
    }
    return {};
  }
  Status split() {
    if (Status bad = close_all(); !bad.ok()) return bad;
    for (int times = 0; times < 2; ++times) {
      Status bad = disk_.tables.make_daughters(kParent, {kLow, kHigh});
      if (!bad.ok()) return bad;
    }
    regions_ = {kLow, kHigh};
    return {};
  }
  Status merge() {
    if (Status bad = close_all(); !bad.ok()) return bad;
    if (Status bad = disk_.tables.make_merged({kLow, kHigh}, kMerged); !bad.ok()) return bad;
    regions_ = {kMerged};
    return {};
  }

  void check_end() {
    std::map<std::string, std::uint64_t> expected;
    for (std::uint64_t operation = 1; operation < 33; ++operation) ++expected[row_of(operation)];
    std::map<std::string, std::string> rows;
    for (const auto& [row, count] : expected) rows[row] = std::to_string(count);
    REQUIRE(rows_of(server_->region(kMerged.id)) == rows);
    const auto infos = disk_.tables.regions(kParent.table);
    REQUIRE(infos.ok());
    REQUIRE(*infos == std::vector{kMerged});
    // Nothing is left of the openings and attempts before: one list, what it names, the region.
    const std::string directory = disk_.layout.region(kMerged.table, kMerged.id);
    const auto list = read_region_files(disk_.files, disk_.layout, kMerged.table, kMerged.id);
    REQUIRE(list.ok());
    for (const std::string& name : *disk_.files.list(directory)) {
      if (!cluster::ClusterLayout::parse_store_file(name)) continue;
      const bool is_listed = std::any_of(list->files.begin(), list->files.end(),
                                         [&](const auto& file) { return file.name == name; });
      INFO(name);
      REQUIRE(is_listed);
    }
  }

  struct Dead {
    ServerName server;
    std::optional<std::vector<cluster::LogFile>> logs;
  };

  Disk disk_;
  Random random_;
  const CrashEnv::TornTail torn_;
  const End end_;
  std::size_t left_ = 0;  ///< Operations until the processes are killed.
  bool is_dead_ = false;  ///< The processes are killed, and the power is on.
  std::unique_ptr<StorageServer> server_;

  // What the master has made durable.
  std::size_t step_ = 0;
  std::vector<RegionInfo> regions_;
  std::deque<Dead> dead_;
  std::uint64_t start_codes_ = 0;
  std::uint64_t openings_ = 0;
  std::map<std::string, std::uint64_t> open_sequences_;
  // What the clients know.
  std::set<std::uint64_t> acknowledged_;
  std::set<std::uint64_t> known_;
};

void crash_everywhere(CrashEnv::TornTail torn, std::uint64_t stride, End end = End::kPower) {
  const Seeds seeds = seeds_from_environment(1);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    for (std::size_t at = seed % stride;; at += stride) {
      INFO("seed " << seed << ", end before operation " << at);
      if (!World(seed * 100'000 + at, torn, end).run(at)) {
        REQUIRE(at > 300);
        break;
      }
    }
  }
}

}  // namespace

TEST_CASE("cluster: nothing acknowledged is lost or done twice, wherever the power goes out") {
  crash_everywhere(CrashEnv::TornTail::kNone, 1);
}

TEST_CASE("cluster: so it is when parts of what was not synced survive") {
  crash_everywhere(CrashEnv::TornTail::kRandom, 3);
}

TEST_CASE("cluster: so it is when all bytes survive and no name that was not synced") {
  crash_everywhere(CrashEnv::TornTail::kBytes, 5);
}

TEST_CASE("cluster: so it is when the processes are killed, and the power goes out later") {
  crash_everywhere(CrashEnv::TornTail::kNone, 2, End::kProcesses);
  crash_everywhere(CrashEnv::TornTail::kRandom, 7, End::kProcesses);
}

}  // namespace pv2::testing::storage_crash_test

// SPDX-License-Identifier: Apache-2.0
//
// Random operations on a table against a std::map: whatever flushes, compactions, openings,
// crashes, splits, merges and changes of the families happen in between, the regions show what the
// map has. A server that crashes may have failed at a flush before, and goes on after its logs were
// split.

#include <algorithm>
#include <limits>
#include <tuple>

#include "pv2/base/random.h"
#include "pv2/testing/seeds.h"
#include "storage_fixture.h"

namespace pv2::testing::region_model_test {
namespace {

// Row, family, qualifier.
using Rows = std::map<std::tuple<std::string, std::string, std::string>, std::string>;

class Run {
 public:
  explicit Run(std::uint64_t seed) : random_(seed) {
    disk_.make_table(regions_);
    start();
  }

  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      step();
      if (i % 10 == 0) compare();
    }
    for (const RegionInfo& info : regions_) {
      REQUIRE(server_->flush(info.id).ok());
      REQUIRE(server_->compact({}, info.id).ok());
      REQUIRE(server_->region(info.id).file_count() <= 1);
      REQUIRE_FALSE(server_->region(info.id).has_references());
    }
    compare();
  }

 private:
  void step() {
    switch (random_.below(24)) {
      case 0:
      case 1:
        REQUIRE(server_->flush(any_region().id).ok());
        break;
      case 2:
      case 3:
        REQUIRE(server_->compact({}, any_region().id).ok());
        break;
      case 4:
        if (random_.below(3) == 0) restart();
        break;
      case 5:
        split();
        break;
      case 6:
        merge();
        break;
      case 7:
        if (random_.below(3) == 0) alter();
        break;
      default:
        write();
    }
  }

  void start() {
    server_ = std::make_unique<StorageServer>(disk_, ++start_code_, /*log_bytes=*/2000);
    REQUIRE(server_->start().ok());
    open_all();
  }
  void open(const RegionInfo& info) { REQUIRE(server_->open(info, ++openings_, table_).ok()); }
  void open_all() {
    for (const RegionInfo& info : regions_) open(info);
  }
  void close(const RegionInfo& info) {
    REQUIRE(server_->close(info.id).ok());
    server_->regions.erase(info.id);
  }
  void close_all() {
    for (const RegionInfo& info : regions_) close(info);
  }
  // Some regions are closed in order, and others lose their server, which hears of it late.
  void restart() {
    for (const RegionInfo& info : regions_) {
      if (random_.below(2) == 0) close(info);
    }
    flush_until_failure();
    REQUIRE(recover(disk_, server_->name()).ok());
    flush_until_failure();
    server_.reset();
    start();
  }
  // The file system fails from an operation on, until all flushes are over.
  void flush_until_failure() {
    std::uint64_t left = random_.below(30);
    disk_.env.set_fault([&left](CrashEnv::Operation, const std::string& file) {
      if (left == 0) return leveldb::Status::IOError(file, "Too many open files");
      --left;
      return leveldb::Status::OK();
    });
    for (const auto& [id, region] : server_->regions) (void)server_->flush(id);
    disk_.env.set_fault(nullptr);
  }

  RegionInfo& any_region() { return regions_[random_.below(regions_.size())]; }
  RegionInfo& region_of(const std::string& row) {
    return *std::ranges::find_if(regions_, [&](const RegionInfo& info) {
      return info.end_key.empty() || row < info.end_key;
    });
  }
  std::string random_row() {
    return std::string(1 + random_.below(2), static_cast<char>('a' + random_.below(6)));
  }
  RegionInfo new_region(std::string start, std::string end) {
    std::string id = std::to_string(++made_);
    id.insert(0, 16 - id.size(), '0');
    return {whole_table().table, std::move(id), std::move(start), std::move(end)};
  }
  void archive(const std::vector<RegionInfo>& parents) {
    if (random_.below(2) == 0) return;
    std::vector<std::string> ids;
    for (const RegionInfo& parent : parents) ids.push_back(parent.id);
    REQUIRE(disk_.tables.archive_regions(whole_table().table, ids).ok());
  }

  void split() {
    const std::string key = random_row();
    RegionInfo& place = region_of(key);
    const RegionInfo parent = place;
    if (key <= parent.start_key || regions_.size() > 5) return;
    const std::vector<RegionInfo> daughters{new_region(parent.start_key, key),
                                            new_region(key, parent.end_key)};
    close(parent);
    REQUIRE(disk_.tables.make_daughters(parent, daughters).ok());
    archive({parent});
    place = daughters[1];
    regions_.insert(regions_.begin() + (&place - regions_.data()), daughters[0]);
    for (const RegionInfo& daughter : daughters) open(daughter);
  }
  void merge() {
    const std::size_t count = 2 + random_.below(2);
    if (regions_.size() < count) return;
    const auto first =
        regions_.begin() + static_cast<std::ptrdiff_t>(random_.below(regions_.size() - count + 1));
    const auto last = first + static_cast<std::ptrdiff_t>(count);
    const std::vector<RegionInfo> parents(first, last);
    const RegionInfo merged = new_region(parents.front().start_key, parents.back().end_key);
    for (const RegionInfo& parent : parents) close(parent);
    REQUIRE(disk_.tables.make_merged(parents, merged).ok());
    archive(parents);
    *first = merged;
    regions_.erase(first + 1, last);
    open(merged);
  }

  [[nodiscard]] bool has_g() const { return table_.descriptor.families.size() == 2; }
  void change_families() {
    TableDescriptor next{whole_table().table, {"f"}};
    if (has_g()) {
      std::erase_if(rows_, [](const auto& cell) { return std::get<1>(cell.first) == "g"; });
    } else {
      next.families.push_back("g");
    }
    table_ = cluster::next_descriptor(table_, next, table_.version + 1, false);
  }
  // The table is disabled, or each change of it is seen by its regions.
  void alter() {
    const bool is_disabled = random_.below(2) == 0;
    close_all();
    for (std::uint64_t i = 0; i <= random_.below(3); ++i) {
      change_families();
      if (is_disabled) continue;
      open_all();
      close_all();
    }
    open_all();
  }

  Mutation random_mutation() {
    Mutation mutation;
    mutation.kind = static_cast<MutationKind>(1 + random_.below(5));
    mutation.row = random_row();
    if (mutation.kind == MutationKind::kDeleteRow) return mutation;
    mutation.family = has_g() && random_.below(2) == 0 ? "g" : "f";
    mutation.qualifier = std::to_string(random_.below(3));
    if (mutation.kind == MutationKind::kIncrement) {
      mutation.qualifier += "n";
      mutation.amount = static_cast<std::int64_t>(random_.below(100)) - 50;
    } else {
      mutation.value = std::string(random_.below(30), static_cast<char>('A' + random_.below(26)));
    }
    return mutation;
  }

  void write() {
    std::vector<Mutation> mutations{random_mutation()};
    const std::string id = region_of(mutations.front().row).id;
    for (std::uint64_t i = random_.below(3); i > 0; --i) {
      Mutation another = random_mutation();
      if (region_of(another.row).id == id) mutations.push_back(std::move(another));
    }
    REQUIRE(server_->write(mutations, {}, id).ok());
    for (const Mutation& mutation : mutations) apply(mutation);
  }

  void apply(const Mutation& mutation) {
    const std::tuple key(mutation.row, mutation.family, mutation.qualifier);
    switch (mutation.kind) {
      case MutationKind::kPut:
        rows_[key] = mutation.value;
        break;
      case MutationKind::kDelete:
        rows_.erase(key);
        break;
      case MutationKind::kDeleteRow:
        std::erase_if(rows_,
                      [&](const auto& cell) { return std::get<0>(cell.first) == mutation.row; });
        break;
      case MutationKind::kAppend:
        rows_[key] += mutation.value;
        break;
      case MutationKind::kIncrement:
        rows_[key] =
            std::to_string((rows_.contains(key) ? std::stoll(rows_[key]) : 0) + mutation.amount);
        break;
      case MutationKind::kReplicatedPut:
      case MutationKind::kReplicatedDelete:
        FAIL("replicated writes have a test of their own");
        break;
    }
  }

  void compare() {
    Rows found;
    for (const RegionInfo& info : regions_) {
      cluster::Scan scan{.rows_max = 1 + random_.below(4), .bytes_max = 1 + random_.below(200)};
      for (;;) {
        const auto page = server_->region(info.id).scan(scan);
        REQUIRE(page.ok());
        for (const cluster::Cell& cell : page->cells)
          found[{cell.row, cell.family, cell.qualifier}] = cell.value;
        if (!page->next_row) break;
        scan = rest_of(std::move(scan), *page);
      }
    }
    REQUIRE(found == rows_);
  }

  Random random_;
  Disk disk_;
  cluster::StoredDescriptor table_ = with_families({"f", "g"});
  std::vector<RegionInfo> regions_{whole_table()};  ///< In order of their keys.
  std::unique_ptr<StorageServer> server_;
  std::uint64_t start_code_ = 0;
  std::uint64_t openings_ = 0;
  std::uint64_t made_ = 0;
  Rows rows_;
};

}  // namespace

TEST_CASE(
    "cluster: a table shows what a map would, whatever is split, merged, altered and replayed") {
  const Seeds seeds = seeds_from_environment(20);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    INFO("PV2_TEST_SEED=" << seed);
    Run(seed).steps(400);
  }
}

}  // namespace pv2::testing::region_model_test

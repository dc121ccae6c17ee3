// SPDX-License-Identifier: Apache-2.0
//
// Random operations on a region against a std::map: whatever flushes, compactions and openings
// happen in between, the region shows what the map has.

#include <limits>

#include "pv2/base/random.h"
#include "pv2/testing/seeds.h"
#include "storage_fixture.h"

namespace pv2::testing::region_model_test {
namespace {

using Rows = std::map<std::pair<std::string, std::string>, std::string>;

class Run {
 public:
  explicit Run(std::uint64_t seed) : random_(seed) {
    disk_.make_table({whole_table()});
    start();
  }

  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      switch (random_.below(12)) {
        case 0:
          REQUIRE(server_->flush().ok());
          break;
        case 1:
          REQUIRE(server_->compact().ok());
          break;
        case 2:
          if (random_.below(4) == 0) reopen();
          break;
        default:
          write();
      }
      if (i % 10 == 0) compare();
    }
    REQUIRE(server_->flush().ok());
    REQUIRE(server_->compact().ok());
    compare();
    REQUIRE(server_->region().file_count() <= 1);
  }

 private:
  void start() {
    server_ = std::make_unique<StorageServer>(disk_, ++start_code_, /*log_bytes=*/2000);
    REQUIRE(server_->start().ok());
    REQUIRE(server_->open(whole_table(), start_code_).ok());
  }
  void reopen() {
    if (random_.below(2) == 0) REQUIRE(server_->close().ok());
    const ServerName dead = server_->name();
    server_.reset();
    REQUIRE(recover(disk_, dead).ok());
    start();
  }

  Mutation random_mutation() {
    Mutation mutation;
    mutation.kind = static_cast<MutationKind>(1 + random_.below(5));
    mutation.row = std::string(1 + random_.below(2), static_cast<char>('a' + random_.below(6)));
    if (mutation.kind == MutationKind::kDeleteRow) return mutation;
    mutation.family = "f";
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
    std::vector<Mutation> mutations;
    for (std::uint64_t i = 0; i <= random_.below(3); ++i) mutations.push_back(random_mutation());
    REQUIRE(server_->write(mutations).ok());
    for (const Mutation& mutation : mutations) apply(mutation);
  }

  void apply(const Mutation& mutation) {
    const std::pair key(mutation.row, mutation.qualifier);
    switch (mutation.kind) {
      case MutationKind::kPut:
        rows_[key] = mutation.value;
        break;
      case MutationKind::kDelete:
        rows_.erase(key);
        break;
      case MutationKind::kDeleteRow:
        std::erase_if(rows_, [&](const auto& cell) { return cell.first.first == mutation.row; });
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
    cluster::Scan scan{.rows_max = 1 + random_.below(4), .bytes_max = 1 + random_.below(200)};
    for (;;) {
      const auto page = server_->region().scan(scan);
      REQUIRE(page.ok());
      for (const cluster::Cell& cell : page->cells) found[{cell.row, cell.qualifier}] = cell.value;
      if (!page->next_row) break;
      scan = rest_of(std::move(scan), *page);
    }
    REQUIRE(found == rows_);
  }

  Random random_;
  Disk disk_;
  std::unique_ptr<StorageServer> server_;
  std::uint64_t start_code_ = 0;
  Rows rows_;
};

}  // namespace

TEST_CASE("cluster: a region shows what a map would, whatever is flushed, merged and replayed") {
  const Seeds seeds = seeds_from_environment(8);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    INFO("PV2_TEST_SEED=" << seed);
    Run(seed).steps(250);
  }
}

}  // namespace pv2::testing::region_model_test

// SPDX-License-Identifier: Apache-2.0
//
// The rules of the catalogue: which change of a row may follow which, the fence, and effects that
// happen once.

#include "cluster/catalogue_state.h"

#include <string>

#include "support/catch.h"

namespace pv2::testing::catalogue_state_test {
namespace {

const ServerName kA{"a", 1};
const ServerName kB{"b", 2};
const RegionInfo kRegion{{"default", "t"}, "0123456789abcdef", "", ""};

/// A catalogue that is asked under a new effect key each time.
struct AskedCatalogue {
  CatalogueState state;
  int keys = 0;

  StatusCode region(RegionState to, const ServerName& server, std::uint64_t sequence = 0) {
    return state.apply({std::to_string(++keys), {}, {{kRegion, to, server, sequence}}, {}})
        .status()
        .code();
  }
  StatusCode server(ServerState to, const ServerName& name) {
    return state.apply({std::to_string(++keys), {}, {}, {{name, to}}}).status().code();
  }
};

constexpr StatusCode kOk = StatusCode::kOk;
constexpr StatusCode kNo = StatusCode::kFailedPrecondition;

}  // namespace

TEST_CASE("an effect happens once, and a repeated write learns that it has happened before") {
  CatalogueState state;
  const CatalogueWrite write{"p1.s3.v2/regions", {}, {{kRegion, RegionState::kClosed, {}, 0}}, {}};

  CHECK(*state.apply(write) == Applied::kNow);
  CHECK(*state.apply({"other", {}, {{kRegion, RegionState::kOpening, kA, 0}}, {}}) ==
        Applied::kNow);
  CHECK(*state.apply(write) == Applied::kBefore);

  CHECK(state.region(kRegion.id)->state == RegionState::kOpening);
}

TEST_CASE("a region becomes open only on the server that was opening it") {
  AskedCatalogue catalogue;
  CHECK(catalogue.region(RegionState::kOpening, kA) == kNo);  // not in the catalogue
  CHECK(catalogue.region(RegionState::kClosed, {}) == kOk);
  CHECK(catalogue.region(RegionState::kOpen, kA, 1) == kNo);
  CHECK(catalogue.region(RegionState::kOpening, kA) == kOk);
  CHECK(catalogue.region(RegionState::kOpen, kB, 1) == kNo);
  CHECK(catalogue.region(RegionState::kOpen, kA, 1) == kOk);
  CHECK(catalogue.region(RegionState::kClosed, {}) == kNo);
  CHECK(catalogue.region(RegionState::kClosing, kB) == kNo);
  CHECK(catalogue.region(RegionState::kClosing, kA) == kOk);
  CHECK(catalogue.region(RegionState::kClosed, {}) == kOk);
}

TEST_CASE("a region is abnormally closed only on the server that its row names") {
  AskedCatalogue catalogue;
  (void)catalogue.region(RegionState::kClosed, {});
  CHECK(catalogue.region(RegionState::kAbnormallyClosed, kA) == kNo);
  (void)catalogue.region(RegionState::kOpening, kA);
  CHECK(catalogue.region(RegionState::kAbnormallyClosed, kB) == kNo);
  CHECK(catalogue.region(RegionState::kAbnormallyClosed, kA) == kOk);
  CHECK(catalogue.state.regions_on(kA).size() == 1);
  CHECK(catalogue.region(RegionState::kOpening, kB) == kOk);
  CHECK(catalogue.state.regions_on(kA).empty());
}

TEST_CASE("nothing is recorded on a server that is crashed or retired") {
  AskedCatalogue catalogue;
  (void)catalogue.region(RegionState::kClosed, {});
  (void)catalogue.region(RegionState::kOpening, kA);
  CHECK(catalogue.server(ServerState::kCrashed, kA) == kOk);
  CHECK(catalogue.region(RegionState::kOpen, kA, 1) == StatusCode::kFenced);
  CHECK(catalogue.region(RegionState::kOpening, kA) == StatusCode::kFenced);
  CHECK(catalogue.server(ServerState::kRetired, kA) == kOk);
  CHECK(catalogue.region(RegionState::kOpening, kA) == StatusCode::kFenced);
  CHECK(catalogue.region(RegionState::kOpening, kB) == kOk);
}

TEST_CASE("a server goes from online to crashed to retired and never back") {
  AskedCatalogue catalogue;
  CHECK(catalogue.server(ServerState::kRetired, kA) == kNo);
  CHECK(catalogue.server(ServerState::kCrashed, kA) == kOk);
  CHECK(catalogue.server(ServerState::kCrashed, kA) == kOk);
  CHECK(catalogue.server(ServerState::kOnline, kA) == kNo);
  CHECK(catalogue.server(ServerState::kRetired, kA) == kOk);
  CHECK(catalogue.server(ServerState::kCrashed, kA) == kNo);
}

TEST_CASE("the open sequence of a region never decreases") {
  AskedCatalogue catalogue;
  (void)catalogue.region(RegionState::kClosed, {});
  (void)catalogue.region(RegionState::kOpening, kA);
  CHECK(catalogue.region(RegionState::kOpen, kA, 5) == kOk);
  CHECK(catalogue.region(RegionState::kOpening, kA, 0) == kOk);
  CHECK(catalogue.state.region(kRegion.id)->open_sequence == 5);
  CHECK(catalogue.region(RegionState::kOpen, kA, 4) == kNo);
  CHECK(catalogue.region(RegionState::kOpen, kA, 6) == kOk);
}

TEST_CASE("a write with one bad row changes nothing, and its key may be used again") {
  CatalogueState state;
  const RegionInfo other{{"default", "t"}, "fedcba9876543210", "m", ""};
  CatalogueWrite write{"k",
                       {{{{"default", "t"}, {"f"}}, TableState::kEnabling}},
                       {{other, RegionState::kClosed, {}, 0}, {kRegion, RegionState::kOpen, kA, 1}},
                       {}};

  CHECK(state.apply(write).status().code() == kNo);
  CHECK_FALSE(state.table({"default", "t"}).has_value());
  CHECK_FALSE(state.region(other.id).has_value());

  write.regions.pop_back();
  CHECK(*state.apply(write) == Applied::kNow);
}

}  // namespace pv2::testing::catalogue_state_test

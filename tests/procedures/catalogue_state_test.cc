// SPDX-License-Identifier: Apache-2.0
//
// The rules of the catalogue: which change of a row may follow which, the fence, the wait for the
// logs of a dead server, and effects that happen once.

#include <pv2/procedures/catalogue_state.h>

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

  StatusCode region(RegionState to, const ServerName& server, std::uint64_t sequence = 0,
                    const RegionInfo& region = kRegion) {
    CatalogueWrite write{.effect_key = std::to_string(++keys)};
    write.regions = {{region, to, server, sequence}};
    return state.apply(write).status().code();
  }
  StatusCode server(ServerState to, const ServerName& name, bool meta_recovered = false) {
    CatalogueWrite write{.effect_key = std::to_string(++keys)};
    write.servers = {{name, to, meta_recovered}};
    return state.apply(write).status().code();
  }
  /// The region is open on `server`.
  void open(const ServerName& server, const RegionInfo& info = kRegion) {
    REQUIRE(region(RegionState::kClosed, {}, 0, info) == StatusCode::kOk);
    REQUIRE(region(RegionState::kOpening, server, 0, info) == StatusCode::kOk);
    REQUIRE(region(RegionState::kOpen, server, 1, info) == StatusCode::kOk);
  }
};

constexpr StatusCode kOk = StatusCode::kOk;
constexpr StatusCode kNo = StatusCode::kFailedPrecondition;
constexpr StatusCode kFenced = StatusCode::kFenced;

CatalogueWrite row(std::string key, RegionState state, const ServerName& server) {
  CatalogueWrite write{.effect_key = std::move(key)};
  write.regions = {{kRegion, state, server, 0}};
  return write;
}

}  // namespace

TEST_CASE("an effect happens once, and a repeated write learns that it has happened before") {
  CatalogueState state;
  const CatalogueWrite write = row("p1.s3.v2/regions", RegionState::kClosed, {});

  CHECK(*state.apply(write) == Applied::kNow);
  CHECK(*state.check(write) == Applied::kBefore);
  CHECK(*state.apply(write) == Applied::kBefore);
  CHECK(*state.apply(row("other", RegionState::kOpening, kA)) == Applied::kNow);

  CHECK(state.region(kRegion.id)->state == RegionState::kOpening);
}

TEST_CASE("a check of a write changes nothing") {
  CatalogueState state;

  CHECK(*state.check(row("k", RegionState::kClosed, {})) == Applied::kNow);
  CHECK_FALSE(state.region(kRegion.id).has_value());
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
  CHECK(catalogue.region(RegionState::kClosed, kA) == kOk);
  CHECK(catalogue.state.region(kRegion.id)->server == kA);
}

TEST_CASE("a region that a live server may serve opens nowhere before that server has closed it") {
  AskedCatalogue catalogue;
  catalogue.open(kA);
  CHECK(catalogue.region(RegionState::kOpening, kB) == kNo);
  CHECK(catalogue.region(RegionState::kOpening, kA) == kNo);
  CHECK(catalogue.region(RegionState::kClosing, kA) == kOk);
  CHECK(catalogue.region(RegionState::kOpening, kB) == kNo);
  CHECK(catalogue.region(RegionState::kClosed, kB) == kNo);
  CHECK(catalogue.region(RegionState::kClosed, kA) == kOk);
  CHECK(catalogue.region(RegionState::kOpening, kB) == kOk);
}

TEST_CASE("the opening of a region fails only on the server that was opening it") {
  AskedCatalogue catalogue;
  (void)catalogue.region(RegionState::kClosed, {});
  (void)catalogue.region(RegionState::kOpening, kA);
  CHECK(catalogue.region(RegionState::kFailedOpen, kB) == kNo);
  CHECK(catalogue.region(RegionState::kOpening, kB) == kOk);  // kA was asked and refused
  CHECK(catalogue.region(RegionState::kFailedOpen, kB) == kOk);
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

TEST_CASE("nothing is recorded on a server that is dead") {
  AskedCatalogue catalogue;
  catalogue.open(kA);
  CHECK(catalogue.server(ServerState::kCrashed, kA) == kOk);
  for (const ServerState state : {ServerState::kRecovered, ServerState::kRetired}) {
    CHECK(catalogue.region(RegionState::kOpening, kA) == kFenced);
    CHECK(catalogue.region(RegionState::kOpen, kA, 2) == kFenced);
    CHECK(catalogue.region(RegionState::kClosing, kA) == kFenced);
    CHECK(catalogue.server(state, kA) == kOk);
  }
  CHECK(catalogue.region(RegionState::kOpening, kA) == kFenced);
  CHECK(catalogue.region(RegionState::kOpening, kB) == kOk);
}

TEST_CASE("a region gets no new home while the logs of its dead host are not split") {
  AskedCatalogue catalogue;
  catalogue.open(kA);
  (void)catalogue.server(ServerState::kCrashed, kA);

  CHECK(catalogue.region(RegionState::kOpening, kB) == kNo);
  CHECK(catalogue.region(RegionState::kAbnormallyClosed, kA) == kNo);
  (void)catalogue.server(ServerState::kCrashed, kA, true);
  CHECK(catalogue.region(RegionState::kOpening, kB) == kNo);
  (void)catalogue.server(ServerState::kRecovered, kA);
  CHECK(catalogue.region(RegionState::kAbnormallyClosed, kA) == kOk);
  CHECK(catalogue.region(RegionState::kOpening, kB) == kOk);
}

TEST_CASE("the catalogue's own region waits for the logs of its own edits only") {
  AskedCatalogue catalogue;
  catalogue.open(kA, meta_region());
  (void)catalogue.server(ServerState::kCrashed, kA);

  CHECK(catalogue.region(RegionState::kOpening, kB, 0, meta_region()) == kNo);
  (void)catalogue.server(ServerState::kCrashed, kA, true);
  CHECK(catalogue.region(RegionState::kOpening, kB, 0, meta_region()) == kOk);
}

TEST_CASE("a region that was closed cleanly does not wait for its dead host") {
  AskedCatalogue catalogue;
  catalogue.open(kA);
  (void)catalogue.region(RegionState::kClosing, kA);
  (void)catalogue.server(ServerState::kCrashed, kA);

  CHECK(catalogue.region(RegionState::kClosed, kA) == kOk);  // the report came before the crash
  CHECK(catalogue.region(RegionState::kOpening, kB) == kOk);
}

TEST_CASE("a server goes from online to crashed to recovered to retired and never back") {
  AskedCatalogue catalogue;
  CHECK(catalogue.server(ServerState::kRetired, kA) == kNo);
  CHECK(catalogue.server(ServerState::kRecovered, kA) == kNo);
  CHECK(catalogue.server(ServerState::kCrashed, kA) == kOk);
  CHECK(catalogue.server(ServerState::kCrashed, kA) == kOk);
  CHECK(catalogue.server(ServerState::kOnline, kA) == kNo);
  CHECK(catalogue.server(ServerState::kRetired, kA) == kNo);
  CHECK(catalogue.server(ServerState::kRecovered, kA) == kOk);
  CHECK(catalogue.server(ServerState::kCrashed, kA) == kNo);
  CHECK(catalogue.server(ServerState::kRetired, kA) == kOk);
  CHECK(catalogue.server(ServerState::kRecovered, kA) == kNo);
}

TEST_CASE("a split region was closed before and is never opened again") {
  AskedCatalogue catalogue;
  catalogue.open(kA);
  CHECK(catalogue.region(RegionState::kSplit, kA) == kNo);
  (void)catalogue.region(RegionState::kClosing, kA);
  (void)catalogue.region(RegionState::kClosed, kA);
  CHECK(catalogue.region(RegionState::kSplit, kA) == kOk);
  CHECK(catalogue.region(RegionState::kOpening, kA) == kNo);
  CHECK(catalogue.region(RegionState::kClosed, kA) == kNo);
  CHECK(catalogue.state.regions_on(kA).empty());
}

TEST_CASE("a region whose opening has failed may be opened elsewhere or counts as closed") {
  AskedCatalogue catalogue;
  (void)catalogue.region(RegionState::kClosed, {});
  CHECK(catalogue.region(RegionState::kFailedOpen, kA) == kNo);
  (void)catalogue.region(RegionState::kOpening, kA);
  CHECK(catalogue.region(RegionState::kFailedOpen, kA) == kOk);
  CHECK(catalogue.state.regions_on(kA).empty());
  CHECK(catalogue.region(RegionState::kOpening, kB) == kOk);
  (void)catalogue.region(RegionState::kFailedOpen, kB);
  CHECK(catalogue.region(RegionState::kClosed, kB) == kOk);
}

TEST_CASE("the open sequence of a region never decreases") {
  AskedCatalogue catalogue;
  (void)catalogue.region(RegionState::kClosed, {});
  (void)catalogue.region(RegionState::kOpening, kA);
  CHECK(catalogue.region(RegionState::kOpen, kA, 5) == kOk);
  CHECK(catalogue.region(RegionState::kClosing, kA, 0) == kOk);
  CHECK(catalogue.region(RegionState::kClosed, kA, 0) == kOk);
  CHECK(catalogue.region(RegionState::kOpening, kA, 0) == kOk);
  CHECK(catalogue.state.region(kRegion.id)->open_sequence == 5);
  CHECK(catalogue.region(RegionState::kOpen, kA, 4) == kNo);
  CHECK(catalogue.region(RegionState::kOpen, kA, 6) == kOk);
}

TEST_CASE("a write with one bad row changes nothing, and its key may be used again") {
  CatalogueState state;
  const RegionInfo other{{"default", "t"}, "fedcba9876543210", "m", ""};
  CatalogueWrite write{.effect_key = "k"};
  write.tables = {{{{"default", "t"}, {"f"}}, TableState::kEnabling}};
  write.regions = {{other, RegionState::kClosed, {}, 0}, {kRegion, RegionState::kOpen, kA, 1}};

  CHECK(state.apply(write).status().code() == kNo);
  CHECK_FALSE(state.table({"default", "t"}).has_value());
  CHECK_FALSE(state.region(other.id).has_value());

  write.regions.pop_back();
  CHECK(*state.apply(write) == Applied::kNow);
}

TEST_CASE("the regions of a table come in the order of their keys") {
  AskedCatalogue catalogue;
  const TableName t{"default", "t"};
  (void)catalogue.region(RegionState::kClosed, {}, 0, {t, "01", "m", ""});
  (void)catalogue.region(RegionState::kClosed, {}, 0, {t, "02", "", "m"});
  (void)catalogue.region(RegionState::kClosed, {}, 0, {t, "03", "m", "t"});
  (void)catalogue.region(RegionState::kClosed, {}, 0, {{"default", "u"}, "04", "", ""});

  std::string ids;
  for (const RegionRow& found : catalogue.state.regions_of(t)) ids += found.region.id + ' ';
  CHECK(ids == "02 03 01 ");
}

TEST_CASE("rows that are removed are gone, and may be removed again") {
  AskedCatalogue catalogue;
  catalogue.open(kA);
  CatalogueWrite removal{.effect_key = "removal"};
  removal.removed_regions = {kRegion.id, "no such region"};

  CHECK(catalogue.state.apply(removal).ok());
  CHECK(catalogue.state.apply(removal).ok());

  CHECK(catalogue.state.regions_on(kA).empty());
  CHECK(catalogue.state.regions_of(kRegion.table).empty());
}

}  // namespace pv2::testing::catalogue_state_test

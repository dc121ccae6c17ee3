// SPDX-License-Identifier: Apache-2.0
//
// What an operator may give a process of the cluster.

#include "wire/option_limits.h"

#include "support/catch.h"

namespace pv2::cluster {
namespace {

template <class Options>
std::string refusal(Options options) {
  const Status status = check_options(options);
  return status.code() == StatusCode::kInvalidArgument ? std::string(status.message()) : "";
}

}  // namespace

TEST_CASE("the options of a process of the cluster have limits, and a refusal names the option") {
  const MasterOptions master{.root = "here"};
  const RegionServerOptions server{.host = "rs1", .root = "here"};
  REQUIRE(check_options(master).ok());
  REQUIRE(check_options(server).ok());

  CHECK(refusal(MasterOptions{}) == "root is empty; name the directory of the cluster");
  MasterOptions hasty = master;
  hasty.lease = Duration::zero();
  CHECK(refusal(hasty) == "lease is 0 microseconds; it may be a millisecond to a year");
  RegionServerOptions patient = server;
  patient.nonce_retention = Duration::max();
  CHECK(refusal(patient).starts_with("nonce_retention is "));
  RegionServerOptions backwards = server;
  backwards.report_pause_min = -std::chrono::seconds(1);
  CHECK(refusal(backwards).starts_with("report_pause_min is -1000000 "));
  RegionServerOptions large = server;
  large.memory_max = ~std::size_t{0};
  CHECK(refusal(large).starts_with("memory_max is 18446744073709551615; it may be 1 to "));
}

}  // namespace pv2::cluster

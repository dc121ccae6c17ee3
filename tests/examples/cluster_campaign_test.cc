// SPDX-License-Identifier: Apache-2.0
//
// The program cluster_campaign: a short campaign on real processes, and its control, which it has
// to find. The nightly run holds one of twenty minutes.

#include <string>

#include "support/program_run.h"

namespace pv2::testing::cluster_campaign_test {
namespace {

ProgramRun run(const std::string& arguments) {
  return run_program(std::string(PV2_CLUSTER_CAMPAIGN) + " " + arguments);
}

}  // namespace

TEST_CASE("a cluster of processes under fire has each acknowledged write once") {
  const ProgramRun campaign = run("--seconds 15 --seed 11");
  INFO(campaign.output);
  CHECK(campaign.code == 0);
  CHECK(campaign.output.find("OK: each write that was acknowledged") != std::string::npos);
}

TEST_CASE("a campaign finds clients that send again under a new nonce") {
  const ProgramRun control = run("--seconds 6 --seed 12 --control");
  INFO(control.output);
  CHECK(control.code == 0);
  CHECK(control.output.find("WRONG: ") != std::string::npos);
}

TEST_CASE("a campaign is told what it does not know") {
  CHECK(run("--sekunden 6").code == 2);
  CHECK(run("--servers 0").code == 2);
  CHECK(run("--seed").code == 2);
}

}  // namespace pv2::testing::cluster_campaign_test

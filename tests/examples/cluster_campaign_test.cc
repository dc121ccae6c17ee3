// SPDX-License-Identifier: Apache-2.0
//
// The program cluster_campaign: a short campaign on real processes, and its control, which it has
// to find. The nightly run holds one of twenty minutes.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "support/catch.h"

namespace pv2::testing::cluster_campaign_test {
namespace {

struct Run {
  int code = -1;
  std::string output;
};

Run run(const std::string& arguments) {
  Run run;
  const std::string command = std::string(PV2_CLUSTER_CAMPAIGN) + " " + arguments + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");  // NOLINT: the program is ours
  REQUIRE(pipe != nullptr);
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) run.output += line.data();
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) run.code = WEXITSTATUS(status);
  return run;
}

}  // namespace

TEST_CASE("a cluster of processes under fire has each acknowledged write once") {
  const Run campaign = run("--seconds 15 --seed 11");
  INFO(campaign.output);
  CHECK(campaign.code == 0);
  CHECK(campaign.output.find("OK: each write that was acknowledged") != std::string::npos);
}

TEST_CASE("a campaign finds clients that send again under a new nonce") {
  const Run control = run("--seconds 6 --seed 12 --control");
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

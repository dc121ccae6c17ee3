// SPDX-License-Identifier: Apache-2.0
//
// cluster_campaign: a cluster of real processes under fire, and whether each write is there once.
// The program starts itself again as the processes of the cluster.

#include <pv2/base/standard_files.h>
#include <pv2/cluster/cluster_processes.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "campaign.h"

namespace campaign {
namespace {

namespace fs = std::filesystem;

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

int usage() {
  std::fputs(
      "usage: cluster_campaign [--minutes N | --seconds N] [--servers N] [--clients N]\n"
      "                        [--seed N] [--dir PATH] [--control]\n"
      "  --dir PATH   an empty directory, which is kept; otherwise a temporary one is removed\n"
      "               unless something is wrong\n"
      "  --control    clients send again under a new nonce: the campaign has to find it\n",
      stderr);
  return 2;
}

/// A whole number from 1 to a million.
std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value == 0 || value > 1'000'000) return std::nullopt;
  return value;
}

std::optional<CampaignOptions> options_of(std::span<char* const> arguments) {
  CampaignOptions options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--control") {
      options.forgets_nonces = true;
      continue;
    }
    if (++i == arguments.size()) return std::nullopt;
    if (name == "--dir") {
      options.directory = arguments[i];
      continue;
    }
    const auto value = number(arguments[i]);
    if (!value) return std::nullopt;
    if (name == "--minutes") {
      options.time = std::chrono::minutes(*value);
    } else if (name == "--seconds") {
      options.time = std::chrono::seconds(*value);
    } else if (name == "--servers") {
      options.servers = *value;
    } else if (name == "--clients") {
      options.clients = *value;
    } else if (name == "--seed") {
      options.seed = *value;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

int run(CampaignOptions options) {
  const bool is_temporary = options.directory.empty();
  if (is_temporary) {
    options.directory = (fs::temp_directory_path() / "cluster-campaign.XXXXXX").string();
    if (::mkdtemp(options.directory.data()) == nullptr) {
      std::fprintf(stderr, "cluster_campaign: cannot make %s\n", options.directory.c_str());
      return 1;
    }
  }
  options.progress = [](const std::string& line) { say(line + "\n"); };
  const auto report = run_campaign(options);
  const bool is_well = report.ok() && report->wrong.empty() != options.forgets_nonces;
  if (report.ok()) say(to_text(*report));
  if (!report.ok()) {
    std::fprintf(stderr, "cluster_campaign: %s\n", report.status().to_string().c_str());
  } else if (options.forgets_nonces) {
    say(report->wrong.empty() ? "   the control was NOT found\n" : "   the control was found\n");
  }
  if (!is_well) {
    say("   kept for you to look at: " + options.directory + "\n");
  } else if (is_temporary) {
    std::error_code ignored;
    fs::remove_all(options.directory, ignored);
  }
  return is_well ? 0 : 1;
}

}  // namespace
}  // namespace campaign

int main(int argc, char** argv) {
  pv2::reserve_standard_files();
  const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
  if (const auto code = pv2::cluster::run_as_cluster_process(arguments.subspan(1))) return *code;
  const auto options = campaign::options_of(arguments);
  return options ? campaign::run(*options) : campaign::usage();
}

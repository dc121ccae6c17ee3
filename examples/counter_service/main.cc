// SPDX-License-Identifier: Apache-2.0
//
// counter_service: counters and texts that are changed exactly once, over a network that loses
// things, by a server that is killed. The program starts itself again as the server.

#include <pv2/base/standard_files.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include "campaign.h"
#include "options.h"
#include "serve.h"

namespace counter {
namespace {

namespace fs = std::filesystem;

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

int fail(const pv2::Status& why) {
  std::fprintf(stderr, "counter_service: %s\n", why.to_string().c_str());
  return 1;
}

/// Where the campaigns of this run keep their stores. A temporary place is removed at the end,
/// unless keep() was called.
class Place {
 public:
  explicit Place(const std::string& given) : directory_(given) {
    if (!given.empty()) return;
    directory_ = (fs::temp_directory_path() / "counter-service.XXXXXX").string();
    is_temporary_ = ::mkdtemp(directory_.data()) != nullptr;
  }
  ~Place() {
    std::error_code ignored;
    if (is_temporary_) fs::remove_all(directory_, ignored);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  /// A new directory in it.
  [[nodiscard]] std::string make(const std::string& name) const {
    fs::create_directories(directory_ + '/' + name);
    return directory_ + '/' + name;
  }
  void keep() {
    if (is_temporary_) say("   kept for you to look at: " + directory_ + '\n');
    is_temporary_ = false;
  }

 private:
  std::string directory_;
  bool is_temporary_ = false;
};

int run(CampaignOptions options) {
  Place place(options.directory);
  options.directory = place.make(std::string(to_string(options.way)));
  options.progress = [](const std::string& line) { say("   " + line + '\n'); };
  const auto report = run_campaign(options);
  if (!report.ok()) return place.keep(), fail(report.status());
  say(to_text(*report));
  if (!report->wrong.empty()) place.keep();
  return report->wrong.empty() ? 0 : 1;
}

/// One campaign of the demo. Returns whether it ended as it should.
bool show(CampaignOptions options, Place& place, const std::string& name) {
  options.directory = place.make(name);
  const auto report = run_campaign(options);
  if (!report.ok()) return fail(report.status()), false;
  say(to_text(*report));
  return report->wrong.empty() == (options.dedup == Dedup::kOn);
}

int demo(CampaignOptions options) {
  Place place(options.directory);
  bool is_well = true;
  for (const Way way : kWays) {
    const std::string name(to_string(way));
    say("== the way '" + name + "': " + std::string(meaning(way)) + '\n');
    options.way = way;
    is_well = show(options, place, name) && is_well;
  }
  say("== the control: by nonce, but the server runs each copy of a call that comes\n");
  options.way = Way::kNonce;
  options.dedup = Dedup::kOff;
  const bool is_caught = show(options, place, "control");
  say(is_caught ? "   which is what the control is for\n"
                : "   WRONG: nothing was found in the control, so the check is worth nothing\n");
  is_well = is_well && is_caught;
  if (!is_well) place.keep();
  return is_well ? 0 : 1;
}

int dispatch(std::span<char* const> arguments) {
  // Writing to a dead child must not end the parent.
  std::signal(SIGPIPE, SIG_IGN);
  const auto options = parse_options(arguments);
  if (!options.ok()) {
    std::fprintf(stderr, "counter_service: %s\n(counter_service --help lists the options)\n",
                 std::string(options.status().message()).c_str());
    return 2;
  }
  switch (options->command) {
    case Options::Command::kDemo:
      return demo(options->campaign);
    case Options::Command::kRun:
      return run(options->campaign);
    case Options::Command::kServe:
      return serve(options->serve);
    case Options::Command::kHelp:
      break;
  }
  say(help() + '\n');
  return 0;
}

}  // namespace
}  // namespace counter

int main(int argc, char** argv) {
  pv2::reserve_standard_files();
  try {
    return counter::dispatch(std::span<char* const>(argv + 1, static_cast<std::size_t>(argc - 1)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "counter_service: %s\n", error.what());
    return 1;
  }
}

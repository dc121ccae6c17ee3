// SPDX-License-Identifier: Apache-2.0
//
// Which moment of the cluster lies in the middle of which step, and how a process ends itself
// there.

#include "kill_point.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>

namespace demo {
namespace {

using pv2::ClusterCall;
using Phase = pv2::ClusterMoment::Phase;

/// The middle of a step: its work has been done, or half of it, but its record has not been
/// written.
struct StepMoment {
  std::string_view step;
  Act act;
  ClusterCall call;
  Phase phase;
  std::string_view effect;  ///< The part of the effect key after its first slash.
  std::uint64_t occurrence;
};

constexpr std::array kStepMoments{
    StepMoment{"PRE_OPERATION", Act::kCreateTable, ClusterCall::kReadTable, Phase::kDone, "", 1},
    StepMoment{"WRITE_FS_LAYOUT", Act::kCreateTable, ClusterCall::kWriteLayout, Phase::kDone,
               "layout", 1},
    StepMoment{"ADD_TO_META", Act::kCreateTable, ClusterCall::kWrite, Phase::kDone, "regions", 1},
    StepMoment{"ASSIGN_REGIONS", Act::kCreateTable, ClusterCall::kWrite, Phase::kDone, "enabling",
               1},
    StepMoment{"GET_ASSIGN_CANDIDATE", Act::kCreateTable, ClusterCall::kLiveServers, Phase::kAsked,
               "", 1},
    StepMoment{"OPEN", Act::kCreateTable, ClusterCall::kWrite, Phase::kAsked, "opening", 1},
    StepMoment{"DISPATCH", Act::kCreateTable, ClusterCall::kOpenRegion, Phase::kAsked, "open", 1},
    StepMoment{"REPORT_SUCCEED", Act::kCreateTable, ClusterCall::kWrite, Phase::kDone, "open", 1},
    StepMoment{"UPDATE_DESC_CACHE", Act::kCreateTable, ClusterCall::kWrite, Phase::kDone, "enabled",
               1},
    StepMoment{"POST_OPERATION", Act::kCreateTable, ClusterCall::kReadTable, Phase::kDone, "", 2},
    StepMoment{"START", Act::kServerCrash, ClusterCall::kWrite, Phase::kDone, "crashed", 1},
    StepMoment{"GET_REGIONS", Act::kServerCrash, ClusterCall::kRegionsOn, Phase::kDone, "", 1},
    StepMoment{"SPLIT_LOGS", Act::kServerCrash, ClusterCall::kLogsOf, Phase::kDone, "", 1},
    StepMoment{"DELETE_SPLIT_WALS_DIR", Act::kServerCrash, ClusterCall::kWrite, Phase::kDone,
               "recovered", 1},
    StepMoment{"ASSIGN", Act::kServerCrash, ClusterCall::kWrite, Phase::kDone, "closed", 1},
    StepMoment{"CHECK", Act::kServerCrash, ClusterCall::kRegionsOn, Phase::kDone, "", 2},
    StepMoment{"FINISH", Act::kServerCrash, ClusterCall::kWrite, Phase::kDone, "retired", 1},
};

const StepMoment* find_step(std::string_view step) {
  const auto found = std::ranges::find(kStepMoments, step, &StepMoment::step);
  return found == kStepMoments.end() ? nullptr : &*found;
}

/// "p1.s4.v3/closed/0123" -> "closed".
std::string_view effect_of(std::string_view effect_key) {
  const std::size_t slash = effect_key.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view rest = effect_key.substr(slash + 1);
  return rest.substr(0, rest.find('/'));
}

std::string_view in_words(Phase phase) {
  switch (phase) {
    case Phase::kAsked:
      return "was asked for and not begun";
    case Phase::kPartly:
      return "was half done";
    case Phase::kDone:
      return "was done and not yet answered";
  }
  return "went on";
}

}  // namespace

pv2::Result<KillPoint> parse_kill_point(std::string_view text) {
  if (text == "none") return KillPoint{};
  if (text == "random") return KillPoint{KillPoint::Kind::kRandom, {}, 0};
  if (find_step(text) != nullptr) return KillPoint{KillPoint::Kind::kStep, std::string(text), 0};
  KillPoint point{KillPoint::Kind::kMoment, {}, 0};
  std::string_view digits = text;
  if (digits.ends_with("us")) {
    point.kind = KillPoint::Kind::kTime;
    digits.remove_suffix(2);
  }
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), point.number);
  if (error != std::errc() || end != digits.data() + digits.size() || point.number == 0) {
    return pv2::Status(pv2::StatusCode::kInvalidArgument,
                       "'" + std::string(text) + "' is no kill point");
  }
  return point;
}

std::string to_string(const KillPoint& point) {
  switch (point.kind) {
    case KillPoint::Kind::kNone:
      return "none";
    case KillPoint::Kind::kStep:
      return point.step;
    case KillPoint::Kind::kMoment:
      return std::to_string(point.number);
    case KillPoint::Kind::kTime:
      return std::to_string(point.number) + "us";
    case KillPoint::Kind::kRandom:
      return "random";
  }
  return "none";
}

Act act_of(const KillPoint& point) {
  const StepMoment* const step = find_step(point.step);
  return step == nullptr ? Act::kCreateTable : step->act;
}

KillPoint random_kill_point(Act act, pv2::Random& random) {
  // Half of them at a call to the cluster, half at any time, which also hits the engine between two
  // records. The numbers are those of three regions; a kill point that comes too late kills nobody.
  const bool create = act == Act::kCreateTable;
  if (random.below(2) == 0)
    return {KillPoint::Kind::kMoment, {}, 1 + random.below(create ? 50 : 25)};
  return {KillPoint::Kind::kTime, {}, 1 + random.below(create ? 100'000 : 50'000)};
}

std::string known_steps() {
  std::string names;
  for (const StepMoment& moment : kStepMoments) {
    if (!names.empty()) names += ' ';
    names += moment.step;
  }
  return names;
}

void KillSwitch::arm(Act act) noexcept {
  passed_ = 0;
  of_the_step_ = 0;
  act_ = static_cast<int>(act);
}

void KillSwitch::pass(const pv2::ClusterMoment& moment) {
  const int act = act_;
  if (act < 0) return;
  const KillPoint& point = points_[static_cast<std::size_t>(act)];
  const std::uint64_t passed = ++passed_;
  bool now = point.kind == KillPoint::Kind::kMoment && passed == point.number;
  if (point.kind == KillPoint::Kind::kStep) {
    const StepMoment& step = *find_step(point.step);
    const bool matches = moment.call == step.call && moment.phase == step.phase &&
                         effect_of(moment.effect_key) == step.effect;
    now = matches && ++of_the_step_ == step.occurrence;
  }
  if (!now) return;
  std::string last_words = "dying " + std::string(to_string(moment.call));
  if (!moment.effect_key.empty()) last_words += " (" + moment.effect_key + ")";
  last_words += " " + std::string(in_words(moment.phase)) + "\n";
  // Not through stdio, which the other thread may be using.
  [[maybe_unused]] const ssize_t told =
      ::write(STDOUT_FILENO, last_words.data(), last_words.size());
  ::raise(SIGKILL);
}

}  // namespace demo

// SPDX-License-Identifier: Apache-2.0
//
// The payload of a signal names its receiver and its number, so that a signal that is lost,
// delivered twice or delivered to another procedure is noticed.

#include "simulation/story_signals.h"

#include <pv2/engine/async_executor.h>

#include <algorithm>

namespace pv2::testing {
namespace {

constexpr std::string_view kName = "go";
constexpr std::string_view kNoise = "noise";

std::string payload_of(std::uint64_t id, std::size_t number) {
  return std::to_string(id) + "/" + std::to_string(number);
}

std::string words_of(std::size_t number) { return "signal " + std::to_string(number); }

std::string words_of(const std::vector<std::size_t>& numbers) {
  std::string words;
  for (const std::size_t number : numbers) words += " " + std::to_string(number);
  return words.empty() ? " none" : words;
}

}  // namespace

void StorySignals::begin_life(ProcedureExecutor& executor) {
  executor_ = &executor;
  wanted_.clear();
  std::vector<std::uint64_t> again;
  for (auto& [id, sent] : sent_) {
    for (Sent& signal : sent) {
      if (signal.answer != Sent::Answer::kNone) continue;
      signal.answer = Sent::Answer::kUnknown;
      again.push_back(id);
    }
  }
  for (const std::uint64_t id : again) send(ProcedureId{id});
}

void StorySignals::send(ProcedureId to) {
  std::vector<Sent>& sent = sent_[to.value];
  const std::size_t number = sent.size();
  sent.emplace_back();
  executor_->async().signal(
      to, std::string(kName), payload_of(to.value, number),
      [this, id = to.value, number](const Status& answer) { heard(id, number, answer); });
}

void StorySignals::send_noise(ProcedureId to) {
  ++noise_[to.value];
  executor_->async().signal(to, std::string(kNoise), "", [](const Status&) {});
}

void StorySignals::send_due(std::size_t which) {
  const ProcedureId to{wanted_.at(which)};
  wanted_.erase(wanted_.begin() + static_cast<std::ptrdiff_t>(which));
  send(to);
}

void StorySignals::heard(std::uint64_t id, std::size_t number, const Status& answer) {
  Sent& signal = sent_[id][number];
  switch (answer.code()) {
    case StatusCode::kOk:
      signal.answer = Sent::Answer::kAccepted;
      return;
    case StatusCode::kFailedPrecondition:
    case StatusCode::kExpired:
      signal.answer = Sent::Answer::kRefused;
      has_ended_.insert(id);
      return;
    case StatusCode::kResourceExhausted:
      if (open(id) < most_) findings_.add("a signal was refused: " + answer.to_string());
      signal.answer = Sent::Answer::kRefused;
      return;
    case StatusCode::kUnknownOutcome:
    case StatusCode::kIoError:
    case StatusCode::kStopping:
      return;  // it is sent again in the next life
    default:
      findings_.add("a signal to procedure " + std::to_string(id) + " was answered " +
                    answer.to_string());
  }
}

bool StorySignals::take(StepContext& ctx, std::size_t count, std::uint64_t newest) {
  const std::uint64_t id = ctx.id().value;
  Numbers given;
  bool wants_more = false;
  while (given.size() < count && !wants_more) {
    const std::string* const payload = ctx.signal(kName);
    wants_more = payload == nullptr;
    if (wants_more) break;
    const std::string to = std::to_string(id) + "/";
    if (!payload->starts_with(to)) {
      findings_.add(place(ctx) + ": it is given the signal " + *payload + " of another");
      return true;
    }
    given.push_back(std::stoull(payload->substr(to.size())));
  }
  check_given(ctx, given, wants_more, newest);
  std::erase(wanted_, id);
  if (wants_more) wanted_.push_back(id);
  return !wants_more;
}

void StorySignals::check_given(const StepContext& ctx, const Numbers& given, bool wants_more,
                               std::uint64_t newest) {
  const std::uint64_t id = ctx.id().value;
  const auto expect = [&](bool holds, const std::string& words) {
    if (!holds) findings_.add(place(ctx) + ": " + words);
  };
  const std::set<std::size_t> gone = consumed(ctx, true, newest);
  const std::set<std::size_t> perhaps_gone = consumed(ctx, false, newest);
  const std::vector<Sent>& sent = sent_[id];
  for (const std::size_t number : given) {
    expect(number < sent.size(), "it is given a signal that nobody sent");
    if (number >= sent.size()) return;
    expect(sent[number].answer != Sent::Answer::kRefused,
           "it is given " + words_of(number) + ", which was refused");
    expect(!gone.contains(number), "it is given " + words_of(number) + " again");
  }
  expect(std::is_sorted(given.begin(), given.end()), "its signals come in another order");
  const std::size_t seen = wants_more ? sent.size() : given.empty() ? 0 : given.back();
  for (std::size_t number = 0; number < seen; ++number) {
    const bool is_due =
        sent[number].answer == Sent::Answer::kAccepted && !perhaps_gone.contains(number);
    expect(!is_due || std::find(given.begin(), given.end(), number) != given.end(),
           "it does not see " + words_of(number) + ", which was accepted");
  }
  // After a restart a later step may count as begun; it is undone before the steps that had their
  // turn.
  auto& of_turns = given_[id];
  of_turns.erase(of_turns.upper_bound(turn_of(ctx)), of_turns.end());
  Numbers& before = of_turns[turn_of(ctx)];
  const auto common = std::min(before.size(), given.size());
  expect(std::equal(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(common),
                    before.begin()) &&
             given.size() >= before.size(),
         "it is given signals" + words_of(given) + "; an earlier run of the same turn was given" +
             words_of(before));
  before = given;
  ended_.erase({id, turn_of(ctx)});
}

// The record of a visit is certainly durable when a later visit was seen; that of an undone step,
// when the step below it is undone.
std::set<std::size_t> StorySignals::consumed(const StepContext& ctx, bool certain,
                                             std::uint64_t newest) const {
  std::set<std::size_t> all;
  const auto known = given_.find(ctx.id().value);
  if (known == given_.end()) return all;
  const Turn now = turn_of(ctx);
  for (const auto& [turn, numbers] : known->second) {
    if (turn >= now) break;
    const bool durable = turn.undo ? ended_.contains({ctx.id().value, turn}) : turn.place < newest;
    if (!certain || durable) all.insert(numbers.begin(), numbers.end());
  }
  return all;
}

std::size_t StorySignals::open(std::uint64_t id) const {
  const auto noise = noise_.find(id);
  const auto& sent = sent_.at(id);
  const auto kept = std::count_if(sent.begin(), sent.end(), [](const Sent& signal) {
    return signal.answer != Sent::Answer::kRefused;
  });
  return static_cast<std::size_t>(kept) + (noise == noise_.end() ? 0 : noise->second);
}

}  // namespace pv2::testing

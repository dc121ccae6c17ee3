// SPDX-License-Identifier: Apache-2.0
//
// Puts the steps that clients were told of in order, and looks for the first that does not fit.

#include "answer_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "requests.h"

namespace counter {
namespace {

using Contradiction = std::optional<std::string>;

/// A step from `begin` is the next one that somebody was told of; the one before it ended at `end`.
Contradiction compare(std::string_view name, std::uint64_t end, std::uint64_t begin) {
  if (begin == end) return std::nullopt;
  if (begin > end) {
    return fmt::format(
        "nobody was told what took {} from {} to {}: an operation was done twice, "
        "or an answer was wrong",
        name, end, begin);
  }
  return fmt::format(
      "two clients were told of what took {} from {} to {}: an answer was wrong, or "
      "an effect was lost",
      name, begin, end);
}

Contradiction compare_end(std::string_view name, std::uint64_t told, std::uint64_t final_value) {
  if (told == final_value) return std::nullopt;
  return fmt::format("{} is {} in the end, and the last answer said {}: {}", name, final_value,
                     told,
                     told < final_value ? "an operation was done twice" : "an effect was lost");
}

}  // namespace

void AnswerLedger::added(const std::string& counter, std::uint64_t amount,
                         std::string_view answer) {
  const auto after = parse_number(answer);
  if (!after || *after < amount) {
    return contradiction(
        fmt::format("an add of {} to {} was answered '{}'", amount, counter, answer.substr(0, 40)));
  }
  Line& line = lines_[counter];
  line.steps.push_back({.after = *after, .amount = amount});
  ++line.told.done;
  line.told.sum += amount;
}

void AnswerLedger::add_failed(const std::string& counter, std::uint64_t amount,
                              std::uint64_t not_above) {
  Line& line = lines_[counter];
  ++line.told.failed;
  line.limit = not_above;
  if (line.smallest_failed == 0) line.smallest_failed = amount;
  line.smallest_failed = std::min(line.smallest_failed, amount);
}

void AnswerLedger::appended(const std::string& text, const std::string& piece,
                            std::string_view answer) {
  const auto after = parse_number(answer);
  if (!after || *after < piece.size()) {
    return contradiction(
        fmt::format("an append to {} was answered '{}'", text, answer.substr(0, 40)));
  }
  Page& page = pages_[text];
  if (!page.pieces.emplace(*after - piece.size(), piece).second) {
    return contradiction(
        fmt::format("two clients were told that their piece begins at byte {} of "
                    "{}",
                    *after - piece.size(), text));
  }
  ++page.told.done;
  page.told.sum += piece.size();
}

void AnswerLedger::contradiction(std::string what) {
  if (contradiction_.empty()) contradiction_ = std::move(what);
}

Contradiction AnswerLedger::check_counter(const std::string& counter, std::uint64_t final_value) {
  Line& line = lines_[counter];
  std::sort(line.steps.begin(), line.steps.end(),
            [](const Step& a, const Step& b) { return a.after < b.after; });
  std::uint64_t end = 0;
  for (const Step& step : line.steps) {
    if (auto wrong = compare(counter, end, step.after - step.amount)) return wrong;
    end = step.after;
  }
  if (auto wrong = compare_end(counter, end, final_value)) return wrong;
  if (line.smallest_failed != 0 && final_value + line.smallest_failed <= line.limit) {
    return fmt::format("an add of {} to {} failed, although {} is not above the limit of {}",
                       line.smallest_failed, counter, final_value + line.smallest_failed,
                       line.limit);
  }
  return std::nullopt;
}

Contradiction AnswerLedger::check_text(const std::string& text, std::string_view final_text) {
  std::uint64_t end = 0;
  for (const auto& [begin, piece] : pages_[text].pieces) {
    if (auto wrong = compare(text, end, begin)) return wrong;
    if (begin >= final_text.size() || final_text.substr(begin, piece.size()) != piece) {
      return fmt::format("{} has at byte {} not the piece whose client was told that it is there",
                         text, begin);
    }
    end = begin + piece.size();
  }
  return compare_end(text, end, final_text.size());
}

AnswerLedger::Told AnswerLedger::told(const std::string& name) const {
  if (const auto line = lines_.find(name); line != lines_.end()) return line->second.told;
  const auto page = pages_.find(name);
  return page == pages_.end() ? Told{} : page->second.told;
}

std::vector<std::string> AnswerLedger::counters() const {
  std::vector<std::string> names;
  for (const auto& [name, line] : lines_) names.push_back(name);
  return names;
}

std::vector<std::string> AnswerLedger::texts() const {
  std::vector<std::string> names;
  for (const auto& [name, page] : pages_) names.push_back(name);
  return names;
}

}  // namespace counter

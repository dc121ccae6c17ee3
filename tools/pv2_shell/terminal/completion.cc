// SPDX-License-Identifier: Apache-2.0
//
// Looks at the line from the left, once: which argument is the cursor in, in quotes or not, in a
// map or not.

#include "terminal/completion.h"

#include <algorithm>

#include "language/escape.h"

namespace pv2::shell {
namespace {

/// Where the cursor is in the line.
struct Place {
  std::string command;
  std::size_t argument = 0;    ///< Commas before it, outside brackets.
  std::size_t word_begin = 0;  ///< Of the word before the cursor, its quote included.
  bool in_command = true;
  char quote = '\0';  ///< The cursor is in a text.
  int depth = 0;      ///< Brackets that are open.
};

constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

Place place_of(std::string_view line) {
  Place place;
  std::size_t i = 0;
  while (i < line.size() && (line[i] == ' ' || line[i] == '\t')) ++i;
  place.word_begin = i;
  while (i < line.size() && is_word(line[i])) place.command += line[i++];
  if (i == line.size()) return place;
  place.in_command = false;
  bool in_word = false;
  for (; i < line.size(); ++i) {
    const char c = line[i];
    if (place.quote != '\0') {
      if (c == '\\') {
        ++i;
      } else if (c == place.quote) {
        place.quote = '\0';
        place.word_begin = i + 1;
      }
      continue;
    }
    if (c == '\'' || c == '"') {
      place.quote = c;
      place.word_begin = i;
      in_word = false;
    } else if (is_word(c)) {
      if (!in_word) place.word_begin = i;
      in_word = true;
    } else {
      in_word = false;
      place.word_begin = i + 1;
      if (c == '[' || c == '{') ++place.depth;
      if (c == ']' || c == '}') --place.depth;
      if (c == ',' && place.depth == 0) ++place.argument;
    }
  }
  if (!in_word && place.quote == '\0') place.word_begin = line.size();
  return place;
}

const Argument* argument_at(const Command& command, std::size_t index) {
  const auto& places = command.arguments;
  if (places.empty()) return nullptr;
  if (index < places.size()) return &places[index];
  return places.back().count == Argument::Count::kMany ? &places.back() : nullptr;
}

void keep_fitting(std::vector<std::string>& candidates, std::string_view word) {
  std::erase_if(candidates, [&](const std::string& each) { return !each.starts_with(word); });
  std::ranges::sort(candidates);
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
}

}  // namespace

std::string Completion::common() const {
  if (candidates.empty()) return {};
  std::string common = candidates.front();
  for (const std::string& each : candidates) {
    const auto differs = std::ranges::mismatch(common, each).in1;
    common.erase(differs, common.end());
  }
  return common;
}

Completion complete(std::string_view line, Vocabulary& vocabulary) {
  const Place place = place_of(line);
  Completion completion{.begin = std::min(place.word_begin, line.size())};
  const std::string_view word = line.substr(completion.begin);
  auto& candidates = completion.candidates;
  if (place.in_command) {
    for (const Command& command : commands()) {
      candidates.push_back(std::string(command.name) + (command.arguments.empty() ? "" : " "));
    }
    keep_fitting(candidates, word);
    return completion;
  }
  const Command* const command = find_command(place.command);
  if (command == nullptr) return completion;
  const Argument* const argument = argument_at(*command, place.argument);
  if (argument != nullptr && place.depth == 0) {
    const bool number = argument->takes == Takes::kProcedure;
    for (const std::string& name : vocabulary.names(argument->takes)) {
      std::string text = number ? name : in_quotes(name);
      // The quote that was typed stays.
      if (place.quote == '"' && !number) text.front() = text.back() = '"';
      candidates.push_back(std::move(text));
    }
  }
  if (place.quote == '\0') {
    for (const OptionSpec& option : options_of(*command)) {
      candidates.push_back(std::string(option.name) + " => ");
    }
  }
  keep_fitting(candidates, word);
  return completion;
}

}  // namespace pv2::shell

// SPDX-License-Identifier: Apache-2.0
//
// AnswerLedger: what the clients were told, and whether it can be true. It is exact: the answer to
// an operation is the value after it, so the operation has taken the value from (answer - amount)
// to the answer. All these steps together have to lead from 0 to the final value, each beginning
// where another one ended:
//
//     0 --3--> 3 --5--> 8 --1--> 9      the final value is 9: right
//     0 --3--> 3        8 --1--> 9      nobody was told of the step from 3 to 8: done twice
//     0 --3--> 3 --5--> 8
//              3 --4--> 7               two were told of a step from 3: one answer is wrong
//
// So a lost effect, a second run and a wrong answer are each found, and their place is said.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace counter {

/// Owned by one thread at a time.
class AnswerLedger {
 public:
  /// A client was told that its add of `amount` to `counter` was done, with this answer.
  void added(const std::string& counter, std::uint64_t amount, std::string_view answer);
  /// A client was told that its add failed for good, because of this limit.
  void add_failed(const std::string& counter, std::uint64_t amount, std::uint64_t not_above);
  void appended(const std::string& text, const std::string& piece, std::string_view answer);
  /// A client was told something that nobody should be told.
  void contradiction(std::string what);

  /// Compares everything that was told with what there is in the end. The first contradiction of
  /// this value; nullopt: each answer was right.
  [[nodiscard]] std::optional<std::string> check_counter(const std::string& counter,
                                                         std::uint64_t final_value);
  [[nodiscard]] std::optional<std::string> check_text(const std::string& text,
                                                      std::string_view final_text);
  /// The first contradiction that was seen before the end.
  [[nodiscard]] const std::string& first_contradiction() const noexcept { return contradiction_; }

  /// What clients were told of one counter or text.
  struct Told {
    std::uint64_t done = 0;
    std::uint64_t failed = 0;
    std::uint64_t sum = 0;  ///< Of the amounts that were added; of a text, its bytes.
  };
  [[nodiscard]] Told told(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> counters() const;
  [[nodiscard]] std::vector<std::string> texts() const;

 private:
  struct Step {
    std::uint64_t after = 0;
    std::uint64_t amount = 0;
  };
  struct Line {
    std::vector<Step> steps;
    Told told;
    std::uint64_t limit = 0;
    std::uint64_t smallest_failed = 0;  // 0: none has failed
  };
  struct Page {
    std::map<std::uint64_t, std::string> pieces;  // by where each begins
    Told told;
  };
  std::map<std::string, Line, std::less<>> lines_;
  std::map<std::string, Page, std::less<>> pages_;
  std::string contradiction_;
};

}  // namespace counter

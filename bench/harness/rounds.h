// SPDX-License-Identifier: Apache-2.0
//
// Rounds: the same thing measured several times, and the one figure that stands for it. For every
// figure of this folder that is the median over the quiet rounds, or over all rounds when none was
// quiet. In a quiet round the rest of the machine used at most 0.3 cores, two processors were worth
// two, and they were about as near to each other as in the nearest round of the program. The filter
// looks at the machine, never at the value. How many rounds were quiet is part of the result,
// because one round is not a median.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/result_row.h"

namespace pv2::bench {

/// One measurement: its figures by name, and how busy the rest of the machine was. A value.
struct Round {
  std::map<std::string, double, std::less<>> values;
  double other_cores = 0;  ///< What other programs used.
  bool is_timed = true;    ///< Its figures depend on how fast the machine is.
};

/// Notes in `round` what two processors are worth now ("processors") and how long a line goes from
/// one to the other and back ("line_ns"). If that was noted before, the worse figure stays. Called
/// by one thread.
void note_processors(Round& round);

/// Owned by one thread.
class Rounds {
 public:
  /// Called when the round is over. Of a timed one it notes the processors, and counts what is
  /// missing of two as used by other programs.
  void add(Round round);

  /// The round that was added last.
  [[nodiscard]] const Round& newest() const { return rounds_.back(); }

  /// The median over the rounds that count.
  [[nodiscard]] double median_of(std::string_view name) const;

  /// Puts the median of every figure into `row`, with the least and the greatest of `main`, the
  /// number of rounds, the number of quiet ones, and the median of what other programs used.
  void fill(ResultRow& row, std::string_view main) const;

 private:
  [[nodiscard]] std::vector<const Round*> counting() const;
  [[nodiscard]] std::vector<const Round*> quiet() const;

  std::vector<Round> rounds_;
};

}  // namespace pv2::bench

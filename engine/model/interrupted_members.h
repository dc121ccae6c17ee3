// SPDX-License-Identifier: Apache-2.0
//
// InterruptedMembers: who of a domain was in the middle of a step when its rollback was planned, as
// ranges of ids. It is recorded when a restart would guess otherwise: by its record alone a member
// whose step never began looks like one whose step was running. A member that stands in a range is
// undone from the step that it is at; one that does not had not begun that step.
//
// Where there would be too many ranges, neighbours are joined. Then members between them are taken
// for interrupted, as all are without such a record: their undo is called although the step never
// ran, but none is ever forgotten.

#pragma once

#include <pv2/base/ids.h>

#include <cstddef>
#include <vector>

namespace pv2 {

/// A value. Ranges are in order of their ids and do not touch.
class InterruptedMembers {
 public:
  /// 32: they take 640 bytes of every later record of the head at most, usually 4 bytes each.
  static constexpr std::size_t kRangesMax = 32;

  struct Range {
    ProcedureId first;
    ProcedureId last;
    friend bool operator==(const Range&, const Range&) = default;
  };
  /// A member that by its record may be in the middle of a step, and whether it is.
  struct Candidate {
    ProcedureId id;
    bool interrupted = false;
  };

  InterruptedMembers() = default;
  /// `candidates` in any order, each once.
  explicit InterruptedMembers(std::vector<Candidate> candidates);

  [[nodiscard]] bool contains(ProcedureId id) const noexcept;
  [[nodiscard]] const std::vector<Range>& ranges() const noexcept { return ranges_; }
  /// Adds a range behind the others, as a record has it. False: it does not lie behind them.
  [[nodiscard]] bool append(Range range);

 private:
  std::vector<Range> ranges_;
};

}  // namespace pv2

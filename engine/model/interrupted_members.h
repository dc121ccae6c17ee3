// SPDX-License-Identifier: Apache-2.0
//
// InterruptedMembers: which members of a domain were in the middle of a step when its rollback was
// planned, as ranges of ids. They are recorded if a restart would guess wrong: the record of a
// member alone does not say whether its step had begun. A member in a range is undone from its
// current step on. A member outside all ranges had not begun that step.
//
// If there are too many ranges, neighbouring ones are joined. The members between them then count
// as interrupted, as all members do without such a record. Their undo is called although the step
// never ran, but no undo is ever forgotten.

#pragma once

#include <pv2/base/ids.h>

#include <cstddef>
#include <vector>

namespace pv2 {

/// A value. Ranges are in order of their ids and do not touch.
class InterruptedMembers {
 public:
  /// 32: they take at most 640 bytes of every later record of the head, and usually 4 bytes each.
  static constexpr std::size_t kRangesMax = 32;

  struct Range {
    ProcedureId first;
    ProcedureId last;
    friend bool operator==(const Range&, const Range&) = default;
  };
  /// A member whose record allows that it is in the middle of a step, and whether it is.
  struct Candidate {
    ProcedureId id;
    bool interrupted = false;
  };

  InterruptedMembers() = default;
  /// `candidates` in any order, each once.
  explicit InterruptedMembers(std::vector<Candidate> candidates);

  [[nodiscard]] bool contains(ProcedureId id) const noexcept;
  [[nodiscard]] const std::vector<Range>& ranges() const noexcept { return ranges_; }
  /// Adds a range that was read from a record. False: it does not lie behind the others, is
  /// malformed, or is one too many.
  [[nodiscard]] bool append(Range range);

 private:
  std::vector<Range> ranges_;
};

}  // namespace pv2

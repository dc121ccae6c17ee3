// SPDX-License-Identifier: Apache-2.0
//
// The field numbers and flags of the state row, persisted (docs/store-format.md). Retired ones are
// not used again.

#pragma once

#include <cstdint>

namespace pv2 {

namespace state_field {
enum : std::uint32_t {
  kState = 1,
  kStep = 2,
  kAttempt = 3,
  kVisits = 4,
  kFlags = 5,
  kDeadline = 6,
  kPatience = 7,
  kUndo = 8,
  kHistory = 9,
  kErrorCode = 10,
  kErrorMessage = 11,
  kFailureSequence = 12,
  kUpdated = 13,
  kResult = 14,
  kParkedCode = 15,
  kParkedMessage = 16,
  kEndedAge = 17,
  kInterrupted = 19,
  kUndoError = 20,
};
}  // namespace state_field

/// The bits of state_field::kFlags.
namespace state_flag {
inline constexpr std::uint64_t kHoldsLocks = 1;
inline constexpr std::uint64_t kNoReturn = 2;
inline constexpr std::uint64_t kParked = 4;
inline constexpr std::uint64_t kAwaits = 8;
inline constexpr std::uint64_t kBypassed = 16;
inline constexpr std::uint64_t kSentBack = 32;
inline constexpr std::uint64_t kReported = 64;
inline constexpr std::uint64_t kUnsure = 128;
inline constexpr std::uint64_t kKnowsInterrupted = 1024;
inline constexpr std::uint64_t kAudited = 2048;
}  // namespace state_flag

}  // namespace pv2

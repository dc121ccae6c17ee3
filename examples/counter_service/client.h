// SPDX-License-Identifier: Apache-2.0
//
// Client: one of those who use the service. It does its share of the operations, many at a time,
// and writes down in the ledger what it was told.

#pragma once

#include <pv2/base/random.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "answer_ledger.h"
#include "caller.h"

namespace counter {

/// What one client is to do.
struct Work {
  std::uint64_t increments = 0;
  std::uint64_t appends = 0;
  std::uint64_t in_flight = 64;
  std::uint32_t counters = 3;  ///< "a", "b", ...; one add in eight is for the purse.
  /// The purse does not take more than this: then an add fails, for good.
  std::uint64_t purse_limit = 0;
};
inline constexpr const char* kPurse = "purse";
inline constexpr const char* kDiary = "diary";

/// Owned by the loop's thread of its caller.
class Client {
 public:
  /// `on_answer` is called for each operation that has its outcome. The others outlive it.
  Client(std::uint64_t number, std::uint64_t seed, Work work, std::unique_ptr<Caller> caller,
         AnswerLedger& ledger, std::function<void()> on_answer);

  /// Begins as many operations as may be under way, now and whenever one ends.
  void go_on();
  /// Begins no more, and gives up what is under way: its outcomes come when the RpcClient is
  /// destroyed, which this object outlives.
  void stop();
  [[nodiscard]] std::uint64_t asked_again() const noexcept { return caller_->asked_again(); }

 private:
  void increment();
  void append();
  void has_no_answer(const pv2::CallOutcome& outcome);
  void ended();

  const std::uint64_t number_;
  pv2::Random random_;
  Work left_;
  AnswerLedger& ledger_;
  const std::function<void()> on_answer_;
  std::uint64_t under_way_ = 0;
  std::uint64_t pieces_ = 0;
  std::unique_ptr<Caller> caller_;
};

}  // namespace counter

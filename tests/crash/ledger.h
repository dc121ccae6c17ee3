// SPDX-License-Identifier: Apache-2.0
//
// Ledger: what the clients of the load were told over all lives, and whether what is found after a
// crash agrees with it: nothing lost that was acknowledged, nothing there that was not submitted,
// every effect counted once. Disagreements are collected as sentences.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "load.h"
#include "pv2/base/mutex.h"
#include "pv2/store/procedure_store.h"

namespace pv2::testing {

using MakeStore = std::function<std::unique_ptr<ProcedureStore>()>;

/// note() is thread-safe; the checks are called by one thread, while no thread notes.
class Ledger {
 public:
  void note(const Event& event);

  /// Checks the store as the crash left it, before anything goes on.
  void check_found(const MakeStore& make_store);
  /// Lets everything come to its end, asks again for every result, and counts. Then acknowledges
  /// everything, so that the next life begins with an empty store and a new range of keys.
  void check_ended(const MakeStore& make_store);

  [[nodiscard]] KeyRange keys() const;
  [[nodiscard]] std::vector<std::string> troubles() const;
  /// How many keys were submitted with an answer, and how many steps ran, over all lives.
  [[nodiscard]] std::uint64_t submitted() const;
  [[nodiscard]] std::uint64_t runs() const;

 private:
  struct Key {
    bool begun = false;
    std::uint64_t id = 0;
    std::optional<std::pair<bool, std::string>> end;
    bool aborts = false;
    bool aborted = false;
    bool acknowledges = false;
    bool acknowledged = false;
  };

  void trouble(std::string what);
  /// Checks that `result`, told now, is the result that was told before, and the one that `number`
  /// must have.
  void compare(std::uint64_t number, const Key& key, const ProcedureResult& result);
  /// While everything runs: compares the end of every key, then acknowledges it.
  void end_all(ProcedureExecutor& executor, const Report& report,
               const std::map<std::uint64_t, Key>& keys);
  /// Counts the host's rows when everything has ended and was acknowledged, and deletes them.
  void count_rows(ProcedureStore& store);
  [[nodiscard]] std::map<std::uint64_t, Key> snapshot() const;

  mutable Mutex keys_mutex_;
  std::map<std::uint64_t, Key> keys_ PV2_GUARDED_BY(keys_mutex_);
  std::uint64_t first_ PV2_GUARDED_BY(keys_mutex_) = 1;
  std::uint64_t next_ PV2_GUARDED_BY(keys_mutex_) = 1;
  std::uint64_t submitted_ PV2_GUARDED_BY(keys_mutex_) = 0;
  std::uint64_t runs_ PV2_GUARDED_BY(keys_mutex_) = 0;
  std::vector<std::string> troubles_ PV2_GUARDED_BY(keys_mutex_);
};

}  // namespace pv2::testing

// SPDX-License-Identifier: Apache-2.0
//
// A listing in words: every field of a ProcedureInfo in one line, so that two listings can be
// compared and a difference read. Not a format: nothing parses it.

#pragma once

#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/procedure_info.h>

#include <string>
#include <vector>

namespace pv2::testing {

/// Every field, in words.
inline std::string in_words(const ProcedureInfo& info) {
  std::string text =
      "#" + std::to_string(info.id.value) + " parent " + std::to_string(info.parent.value) +
      " root " + std::to_string(info.root.value) + " " + info.type + " of '" + info.owner + "' " +
      std::string(to_string(info.state)) + " step " + std::to_string(info.step) + " " +
      info.step_name + " attempt " + std::to_string(info.attempt) + (info.parked ? " parked" : "") +
      (info.quarantined ? " quarantined" : "") + (info.holds_locks ? " holds" : " wants");
  for (const LockRequest& lock : info.locks.requests()) {
    text += " " + to_string(lock.key) + "/" + std::string(to_string(lock.mode));
  }
  if (info.undo) text += " undoing";
  text += " error " + info.error.to_string() + ", of its undo " + info.undo_error.to_string() +
          " at " + std::to_string(info.submitted.time_since_epoch().count()) + " changed at " +
          std::to_string(info.updated.time_since_epoch().count()) + " history";
  for (const HistoryEntry& entry : info.history) {
    text += " " + std::to_string(entry.step) + "/" + std::to_string(entry.attempt) + "/" +
            std::to_string(static_cast<int>(entry.outcome)) + (entry.undo ? "/undo/" : "/") +
            std::to_string(entry.at.time_since_epoch().count());
  }
  return text;
}

inline std::vector<std::string> in_words(const std::vector<ProcedureInfo>& list) {
  std::vector<std::string> words;
  words.reserve(list.size());
  for (const ProcedureInfo& info : list) words.push_back(in_words(info));
  return words;
}

}  // namespace pv2::testing

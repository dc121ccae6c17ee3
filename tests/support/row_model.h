// SPDX-License-Identifier: Apache-2.0
//
// RowModel: what a store should hold, as a map, and random batches that fit to it: rows are
// inserted, updated, put, deleted and inserted again, all among a few keys. Each batch also puts
// the row "E:latest" with its own sequence, so a store tells by itself which batch was its last.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/base/random.h"
#include "pv2/store/commit_request.h"

namespace pv2::testing {

/// A value.
class RowModel {
 public:
  /// Fills `batch`, which will have the sequence `sequence`, and makes its changes here.
  void fill(Random& random, RowBatch& batch, std::uint64_t sequence) {
    static constexpr Space kSpaces[] = {Space::kHost, Space::kNonce, Space::kProcedure};
    for (std::uint64_t left = 1 + random.below(6); left > 0; --left) {
      const Space space = kSpaces[random.below(3)];
      const std::string key = std::to_string(random.below(12));
      const std::string value = value_of(random, sequence);
      const bool exists = rows_.contains(full(space, key));
      const std::uint64_t choice = random.below(10);
      if (choice < 2) {
        batch.put(space, key, value);
      } else if (choice < 5) {
        batch.erase(space, key);  // possibly one that does not exist
      } else if (exists) {
        batch.update(space, key, value);
      } else {
        batch.insert(space, key, value);
      }
      if (choice >= 2 && choice < 5) {
        rows_.erase(full(space, key));
      } else {
        rows_[full(space, key)] = {value, sequence};
      }
    }
    batch.put(Space::kEngine, "latest", std::to_string(sequence));
    rows_["Elatest"] = {std::to_string(sequence), sequence};
  }

  /// As load_rows() gives them.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& [key, row] : rows_) {
      lines.push_back(key.substr(0, 1) + ":" + key.substr(1) + "=" + row.first + "@" +
                      std::to_string(row.second));
    }
    return lines;
  }
  /// nullptr: there is no such row.
  [[nodiscard]] const std::string* find(Space space, const std::string& key) const {
    const auto at = rows_.find(full(space, key));
    return at == rows_.end() ? nullptr : &at->second.first;
  }

 private:
  static std::string full(Space space, const std::string& key) {
    return static_cast<char>(space) + key;
  }
  // Mostly short, sometimes empty, sometimes longer than a small segment.
  static std::string value_of(Random& random, std::uint64_t sequence) {
    const std::uint64_t kind = random.below(40);
    if (kind == 0) return "";
    const std::size_t size = random.below(kind == 1 ? 9'000 : 300);
    return std::to_string(sequence) + std::string(size, static_cast<char>('a' + kind % 26));
  }

  std::map<std::string, std::pair<std::string, std::uint64_t>> rows_;  // value and sequence
};

}  // namespace pv2::testing

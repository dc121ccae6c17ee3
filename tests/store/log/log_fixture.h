// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the step log share: units of a few batches, and their frames as bytes. Nothing
// here checks anything by itself.

#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "little_endian.h"
#include "log/unit_frame.h"
#include "pv2/base/crc32c.h"
#include "pv2/store/commit_request.h"

namespace pv2::testing {

/// Batches with consecutive sequences, which are one unit.
class Unit {
 public:
  explicit Unit(std::uint64_t first) : next_(first) {}
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  Unit& add(const std::function<void(RowBatch&)>& fill) {
    Request& request = requests_.emplace_back();
    fill(request.batch);
    request.sequence.value = next_++;
    list_.push_back(request);
    return *this;
  }
  /// Inserts one row.
  Unit& insert(std::string_view key, std::string_view value) {
    return add([&](RowBatch& batch) { batch.insert(Space::kHost, key, value); });
  }
  [[nodiscard]] const CommitList& list() const noexcept { return list_; }
  [[nodiscard]] std::string frame(std::uint64_t segment) const {
    std::string bytes(frame_bytes(list_), '?');
    write_frame(bytes.data(), list_, {segment});
    return bytes;
  }

 private:
  struct Request : CommitRequest {};
  std::uint64_t next_;
  std::deque<Request> requests_;
  CommitList list_;
};

/// The frame of commit `sequence`, which inserts one row of about `bytes` bytes.
inline std::string frame_of(std::uint64_t segment, std::uint64_t sequence, std::size_t bytes = 20) {
  Unit unit(sequence);
  unit.insert(std::to_string(sequence), std::string(bytes, static_cast<char>('a' + sequence % 26)));
  return unit.frame(segment);
}

/// Any header and payload under a correct checksum.
inline std::string sealed_frame(std::uint32_t batches, std::uint64_t segment, std::uint64_t first,
                                std::string_view payload) {
  std::string checked;
  append_fixed32(checked, static_cast<std::uint32_t>(payload.size()));
  append_fixed32(checked, batches);
  append_fixed64(checked, segment);
  append_fixed64(checked, first);
  checked.append(payload);
  std::string frame = "PV2U";
  append_fixed32(frame, crc32c(checked));
  return frame + checked;
}

}  // namespace pv2::testing

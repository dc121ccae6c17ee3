// SPDX-License-Identifier: Apache-2.0
//
// CatalogueJournal: a catalogue on disk, as one append-only file of frames (base/frame.h), each
// holding one entry in protobuf's wire format. A write that was applied is synced before it is
// answered. Repeats and refusals are recorded too, unsynced, so that a reader sees not only what
// happened but also what was attempted.
//
// How it fails: after a failed write every later one fails too. A torn last entry (the process died
// while it wrote) is cut off at the next open: no caller was told that it was written.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pv2/procedures/catalogue_state.h"

namespace pv2 {

/// One entry of the catalogue's history.
struct JournalEntry {
  /// Persisted.
  enum class Kind : std::uint8_t { kApplied = 1, kRepeated = 2, kRefused = 3 };
  Kind kind = Kind::kApplied;
  CatalogueWrite write;
  std::string reason;  ///< Why the write was refused.

  void fields(auto& f) {
    f(1, "kind", kind);
    f(2, "write", write);
    f(3, "reason", reason);
  }
};

/// Every whole entry of the journal at `path`, oldest first; none when there is no such file.
Result<std::vector<JournalEntry>> read_journal(const std::filesystem::path& path);

/// Owned by one thread.
class CatalogueJournal {
 public:
  /// Opens or creates the journal and makes this process its only writer. kBusy: another one is.
  static Result<std::unique_ptr<CatalogueJournal>> open(const std::filesystem::path& path);
  ~CatalogueJournal();
  CatalogueJournal(const CatalogueJournal&) = delete;
  CatalogueJournal& operator=(const CatalogueJournal&) = delete;

  /// When it returns kNow, the write is durable.
  Result<Applied> apply(CatalogueWrite write);
  [[nodiscard]] const CatalogueState& state() const noexcept { return state_; }

 private:
  CatalogueJournal(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status append(JournalEntry entry);

  std::filesystem::path path_;
  int fd_;
  CatalogueState state_;
  Status failure_;
};

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// The merged walk looks at all its parts for each cell: a region has few.

#include "storage/cell_cursor.h"

#include <pv2/base/assert.h>
#include <pv2/base/big_endian.h>

#include <utility>

#include "storage/stored_cell.h"

namespace pv2::cluster {
namespace {

constexpr std::uint64_t kSequenceEnd = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kBytesPerLook = 1024;
// Most cells have few versions, and a step is cheaper than a search.
constexpr int kStepsBeforeSeek = 4;

class MergedCursor final : public CellCursor {
 public:
  explicit MergedCursor(std::vector<std::unique_ptr<CellCursor>> parts)
      : parts_(std::move(parts)) {}

  void seek(std::string_view key) override {
    for (const auto& part : parts_) part->seek(key);
    choose();
  }
  void next() override {
    const std::string key(least_->key());
    for (const auto& part : parts_) {
      if (part->valid() && part->key() == key) part->next();
    }
    choose();
  }
  [[nodiscard]] bool valid() const override { return least_ != nullptr; }
  [[nodiscard]] std::string_view key() const override { return least_->key(); }
  [[nodiscard]] std::string_view value() const override { return least_->value(); }
  [[nodiscard]] std::size_t bytes_read() const override { return least_->bytes_read(); }
  [[nodiscard]] Status status() const override { return status_; }

 private:
  void choose() {
    least_ = nullptr;
    for (const auto& part : parts_) {
      if (!part->valid()) {
        if (Status bad = part->status(); !bad.ok()) status_ = bad;
      } else if (least_ == nullptr || part->key() < least_->key()) {
        least_ = part.get();
      }
    }
    // A walk without one of its parts would show older values as the newest.
    if (!status_.ok()) least_ = nullptr;
  }

  std::vector<std::unique_ptr<CellCursor>> parts_;
  CellCursor* least_ = nullptr;
  Status status_;
};

}  // namespace

std::unique_ptr<CellCursor> merge_cursors(std::vector<std::unique_ptr<CellCursor>> parts) {
  return std::make_unique<MergedCursor>(std::move(parts));
}

NewestCells::NewestCells(std::unique_ptr<CellCursor> all, std::string end,
                         std::uint64_t sequence_max, std::uint64_t looks_max)
    : all_(std::move(all)),
      end_(std::move(end)),
      sequence_max_(sequence_max),
      looks_max_(looks_max) {
  PV2_ASSERT(looks_max >= kLooksLeast, "a walk may look at some cells");
}

void NewestCells::seek(std::string_view key) {
  all_->seek(key);
  settle();
}

void NewestCells::next() {
  skip_cell();
  settle();
}

void NewestCells::settle() {
  while (valid() && !is_spent()) {
    // A cell is read and copied on the way: a large one is as much work as many small ones.
    looks_ += 1 + (all_->key().size() + all_->bytes_read()) / kBytesPerLook;
    if (sequence_of_key(all_->key()) > sequence_max_) {
      std::string newest(prefix_of_key(all_->key()));
      append_big_endian(newest, kSequenceEnd - sequence_max_);
      skip_to(newest);
    } else if (all_->value()[0] == static_cast<char>(CellKind::kTombstone)) {
      skip_cell();
    } else {
      return;
    }
  }
}

void NewestCells::skip_cell() {
  std::string after(prefix_of_key(all_->key()));
  after.append(kKeySequenceBytes + 1, '\xFF');  // after the oldest version
  skip_to(after);
}

void NewestCells::skip_to(const std::string& key) {
  for (int step = 0; step < kStepsBeforeSeek; ++step) {
    if (!all_->valid() || all_->key() >= key) return;
    all_->next();
  }
  if (all_->valid() && all_->key() < key) all_->seek(key);
}

}  // namespace pv2::cluster

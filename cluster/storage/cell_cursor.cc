// SPDX-License-Identifier: Apache-2.0
//
// The merged walk looks at all its parts for each cell: a region has few.

#include "storage/cell_cursor.h"

#include <utility>

#include "storage/stored_cell.h"

namespace pv2::cluster {
namespace {

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

void NewestCells::seek(std::string_view key) {
  all_->seek(key);
  settle();
}

void NewestCells::next() {
  skip_cell();
  settle();
}

void NewestCells::settle() {
  while (all_->valid()) {
    if (sequence_of_key(all_->key()) > sequence_max_) {
      all_->next();
    } else if (all_->value()[0] == static_cast<char>(CellKind::kTombstone)) {
      skip_cell();
    } else {
      return;
    }
  }
}

void NewestCells::skip_cell() {
  const std::string cell(prefix_of_key(all_->key()));
  while (all_->valid() && prefix_of_key(all_->key()) == cell) all_->next();
}

}  // namespace pv2::cluster

// SPDX-License-Identifier: Apache-2.0
//
// The cursor takes the mutex for each move, and copies the cell.

#include "storage/mem_store.h"

#include <utility>

namespace pv2::cluster {

class MemStore::Cursor final : public CellCursor {
 public:
  explicit Cursor(std::shared_ptr<const MemStore> store) : store_(std::move(store)) {}

  void seek(std::string_view key) override {
    MutexLock lock(store_->cells_mutex_);
    at_ = store_->cells_.lower_bound(key);
    copy(store_->cells_.end());
  }
  void next() override {
    MutexLock lock(store_->cells_mutex_);
    ++at_;
    copy(store_->cells_.end());
  }
  [[nodiscard]] bool valid() const override { return valid_; }
  [[nodiscard]] std::string_view key() const override { return key_; }
  [[nodiscard]] std::string_view value() const override { return value_; }
  [[nodiscard]] Status status() const override { return {}; }

 private:
  void copy(Cells::const_iterator end) {
    valid_ = at_ != end;
    if (!valid_) return;
    key_ = at_->first;
    value_ = at_->second;
  }

  const std::shared_ptr<const MemStore> store_;
  Cells::const_iterator at_;
  bool valid_ = false;
  std::string key_;
  std::string value_;
};

void MemStore::add(const std::vector<StoredCell>& cells, std::uint64_t sequence) {
  // Made outside of the mutex.
  std::vector<std::pair<std::string, std::string>> made;
  made.reserve(cells.size());
  for (const StoredCell& cell : cells)
    made.emplace_back(cell_key(cell, sequence), cell_value(cell.kind, cell.value));

  MutexLock lock(cells_mutex_);
  for (auto& [key, value] : made) {
    // A node of the map and two strings: about 100 bytes besides the text.
    bytes_ += key.size() + value.size() + 100;
    cells_.insert_or_assign(std::move(key), std::move(value));
  }
}

std::size_t MemStore::bytes() const {
  MutexLock lock(cells_mutex_);
  return bytes_;
}

bool MemStore::empty() const {
  MutexLock lock(cells_mutex_);
  return cells_.empty();
}

std::unique_ptr<CellCursor> MemStore::cursor(std::shared_ptr<const MemStore> store) {
  return std::make_unique<Cursor>(std::move(store));
}

}  // namespace pv2::cluster

// SPDX-License-Identifier: Apache-2.0
//
// Encodes each row as the catalogue's table keeps it, and adds up the bytes.

#include "pv2/procedures/catalogue_limits.h"

#include <pv2/base/fields.h>

#include <algorithm>
#include <string>

#include "pv2/procedures/catalogue_state.h"

namespace pv2 {
namespace {

// Of each row, besides its name and its value: the letter of its kind, separators, family and
// qualifier.
constexpr std::size_t kFraming = 16;

/// Of the rows that were added.
class Size {
 public:
  explicit Size(const std::string& effect_key) : effect_key_(effect_key) {}

  template <class Row>
  void add(const Row& row, std::size_t name_bytes) {
    CatalogueState::Kept<Row> kept{row, effect_key_};
    encoded_.clear();
    encode_fields(kept, FieldSelection::kAll, encoded_);
    add(name_bytes, encoded_.size());
  }
  void add(std::size_t name_bytes, std::size_t value_bytes) {
    ++rows_;
    largest_ = std::max(largest_, value_bytes);
    bytes_ += name_bytes + value_bytes + kFraming;
  }
  [[nodiscard]] Status check() const {
    if (largest_ > kCellValueBytesMax) return too_large("a row", largest_, kCellValueBytesMax);
    if (bytes_ > kBytesPerWriteMax) return too_large("a write", bytes_, kBytesPerWriteMax);
    if (rows_ <= kRowsPerWriteMax) return {};
    return {StatusCode::kInvalidArgument, "a write of the catalogue would have " +
                                              std::to_string(rows_) + " rows of at most " +
                                              std::to_string(kRowsPerWriteMax)};
  }

 private:
  static Status too_large(const std::string& what, std::size_t bytes, std::size_t limit) {
    return {StatusCode::kInvalidArgument, what + " of the catalogue would have " +
                                              std::to_string(bytes) + " bytes of at most " +
                                              std::to_string(limit)};
  }

  const std::string& effect_key_;
  std::string encoded_;
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
  std::size_t largest_ = 0;
};

}  // namespace

Status check_size(const CatalogueWrite& write) {
  Size size(write.effect_key);
  for (const NamespaceRow& row : write.namespaces) size.add(row, row.name.size());
  for (const TableRow& row : write.tables) size.add(row, to_string(row.descriptor.name).size());
  for (const RegionRow& row : write.regions) {
    size.add(row, to_string(row.region.table).size() + row.region.id.size());
  }
  for (const std::string& name : write.removed_namespaces) size.add(name.size(), 0);
  for (const TableName& name : write.removed_tables) size.add(to_string(name).size(), 0);
  for (const std::string& id : write.removed_regions) size.add(id.size(), 0);
  return size.check();
}

Status check_row_key(std::string_view whose, std::string_view key) {
  if (key.size() <= kRowKeyBytesMax) return {};
  return {StatusCode::kInvalidArgument,
          std::string(whose) + " cannot have a region that begins with a key of " +
              std::to_string(key.size()) + " bytes, because a row's key has at most " +
              std::to_string(kRowKeyBytesMax) + "; give a shorter key"};
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Reads of a region. A view holds what it looks at, so a read takes the mutex once.

#include "storage/region.h"

#include <fmt/core.h>
#include <pv2/base/assert.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace pv2::cluster {

namespace {

// Ends a page at a cell because it took too much work. Only the row with which the page began is
// divided: at the next one the page has come further already.
void end_page(const Scan& scan, StoredCell cell, ScanPage& page) {
  if (cell.row == scan.start_row) {
    page.next_family = std::move(cell.family);
    page.next_qualifier = std::move(cell.qualifier);
  }
  while (cell.row != scan.start_row && !page.cells.empty() && page.cells.back().row == cell.row)
    page.cells.pop_back();
  page.next_row = std::move(cell.row);
}

}  // namespace

Region::Region(const FileTree& files, ClusterLayout layout, WorkQueue& work, RegionInfo info,
               RegionOptions options)
    : files_(files),
      layout_(std::move(layout)),
      work_(work),
      info_(std::move(info)),
      options_(std::move(options)),
      active_(std::make_shared<MemStore>()),
      open_files_(std::make_shared<OpenFiles>()) {}
Region::~Region() = default;

Status Region::check_row(std::string_view row) const {
  if (row >= info_.start_key && (info_.end_key.empty() || row < info_.end_key)) return {};
  return {StatusCode::kFailedPrecondition,
          fmt::format("row {} is not in region {}", row, info_.id)};
}

Status Region::check_families(const std::vector<std::string>& families) const {
  for (const std::string& family : families) {
    if (std::ranges::find(options_.families, family) == options_.families.end())
      return {StatusCode::kInvalidArgument,
              fmt::format("table {} has no family {}", to_string(info_.table), family)};
  }
  return {};
}

Status Region::refusal() const {
  if (!failure_.ok()) return failure_;
  if (phase_ == Phase::kClosed)
    return {StatusCode::kUnavailable, fmt::format("region {} is closed", info_.id)};
  return {};
}

Region::View Region::view() const { return {active_, flushing_, open_files_, visible_}; }

Result<Region::View> Region::view_for_read() const {
  MutexLock lock(state_mutex_);
  if (Status bad = refusal(); !bad.ok()) return bad;
  return view();
}

std::unique_ptr<CellCursor> Region::cursor_over(const View& view) {
  std::vector<std::unique_ptr<CellCursor>> parts;
  parts.push_back(MemStore::cursor(view.active));
  if (view.flushing) parts.push_back(MemStore::cursor(view.flushing));
  for (const OpenFile& file : *view.files) parts.push_back(StoreFile::cursor(file.file, file.part));
  return merge_cursors(std::move(parts));
}

std::string Region::lower_bound(CellSpace space, std::string_view row) const {
  return row_key(space, std::max<std::string_view>(row, info_.start_key));
}

std::string Region::upper_bound(CellSpace space, std::string_view row) const {
  std::string_view end = info_.end_key;
  if (!row.empty() && (end.empty() || row < end)) end = row;
  return end.empty() ? space_end(space) : row_key(space, end);
}

Result<std::vector<Cell>> Region::get(const std::string& row,
                                      const std::vector<std::string>& families) const {
  if (Status bad = check_row(row); !bad.ok()) return bad;
  // The row after this one is this one with a zero byte.
  Result<ScanPage> page = scan_within({.start_row = row,
                                       .end_row = row + std::string(1, '\0'),
                                       .families = families,
                                       .rows_max = 1,
                                       .bytes_max = std::numeric_limits<std::uint64_t>::max()},
                                      NewestCells::kNoLimit);
  if (!page.ok()) return page.status();
  PV2_ASSERT(!page->next_row, "a page without a bound has the whole row");
  return std::move(page->cells);
}

std::string Region::first_key(const Scan& scan) const {
  if (scan.start_family.empty() || scan.start_row < info_.start_key)
    return lower_bound(CellSpace::kCells, scan.start_row);
  return cell_prefix(CellSpace::kCells, scan.start_row, scan.start_family, scan.start_qualifier);
}

Result<ScanPage> Region::scan(const Scan& scan) const {
  return scan_within(scan, options_.looks_max);
}

Result<ScanPage> Region::scan_within(const Scan& scan, std::uint64_t looks_max) const {
  if (Status bad = check_families(scan.families); !bad.ok()) return bad;
  const Result<View> view = view_for_read();
  if (!view.ok()) return view.status();

  const std::vector<std::string>& families =
      scan.families.empty() ? options_.families : scan.families;
  ScanPage page;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t row_bytes = 0;  // of the last row
  NewestCells cells(cursor_over(*view), upper_bound(CellSpace::kCells, scan.end_row), view->visible,
                    looks_max);
  for (cells.seek(first_key(scan)); cells.valid(); cells.next()) {
    std::optional<DecodedCell> decoded = decode_cell(cells.key(), cells.value());
    if (!decoded)
      return Status(StatusCode::kCorruption, "region " + info_.id + " has a key that is no cell");
    StoredCell& cell = decoded->cell;
    if (cells.is_spent()) {
      end_page(scan, std::move(cell), page);
      return page;
    }
    if (std::ranges::find(families, cell.family) == families.end()) continue;
    if (page.cells.empty() || page.cells.back().row != cell.row) {
      if (rows >= std::max<std::uint64_t>(scan.rows_max, 1) ||
          (rows > 0 && bytes >= scan.bytes_max)) {
        page.next_row = std::move(cell.row);
        return page;
      }
      ++rows;
      row_bytes = 0;
    } else if (row_bytes >= scan.bytes_max) {
      page.next_row = std::move(cell.row);
      page.next_family = std::move(cell.family);
      page.next_qualifier = std::move(cell.qualifier);
      return page;
    }
    const std::uint64_t size = cells.key().size() + cells.value().size();
    bytes += size;
    row_bytes += size;
    page.cells.push_back({std::move(cell.row), std::move(cell.family), std::move(cell.qualifier),
                          std::move(cell.value), decoded->sequence});
  }
  if (!cells.status().ok()) return cells.status();
  return page;
}

Result<std::vector<NonceCell>> Region::nonces() const {
  const Result<View> view = view_for_read();
  if (!view.ok()) return view.status();
  std::vector<NonceCell> nonces;
  NewestCells cells(cursor_over(*view), upper_bound(CellSpace::kNonces, {}), view->visible);
  for (cells.seek(lower_bound(CellSpace::kNonces, {})); cells.valid(); cells.next()) {
    const std::optional<DecodedCell> decoded = decode_cell(cells.key(), cells.value());
    std::optional<NonceCell> nonce = decoded ? decode_nonce_cell(decoded->cell) : std::nullopt;
    // A server that ran without it could do an operation twice.
    if (!nonce)
      return Status(StatusCode::kCorruption, "region " + info_.id + " has a damaged nonce");
    nonces.push_back(*std::move(nonce));
  }
  if (!cells.status().ok()) return cells.status();
  return nonces;
}

Result<std::optional<std::string>> Region::split_point() const {
  const Result<View> view = view_for_read();
  if (!view.ok()) return view.status();
  std::uint64_t total = 0;
  std::string first;
  // Once to know how many bytes there are, once to find the middle of them.
  for (const bool is_second : {false, true}) {
    const std::uint64_t half = total / 2;
    std::uint64_t passed = 0;
    std::string row;
    NewestCells cells(cursor_over(*view), upper_bound(CellSpace::kCells, {}), view->visible);
    for (cells.seek(lower_bound(CellSpace::kCells, {})); cells.valid(); cells.next()) {
      std::optional<DecodedCell> decoded = decode_cell(cells.key(), cells.value());
      if (!decoded)
        return Status(StatusCode::kCorruption, "region " + info_.id + " has a key that is no cell");
      row = std::move(decoded->cell.row);
      if (total == 0 && passed == 0 && !is_second) first = row;
      if (is_second && passed >= half && row != first) return std::optional(row);
      passed += cells.key().size() + cells.value().size();
    }
    if (!cells.status().ok()) return cells.status();
    // The last row has more than half.
    if (is_second && row != first) return std::optional(row);
    total = passed;
  }
  return std::optional<std::string>();
}

bool Region::has_references() const {
  MutexLock lock(state_mutex_);
  return std::ranges::any_of(
      *open_files_, [this](const OpenFile& file) { return file.entry.region_id != info_.id; });
}

std::size_t Region::memory_bytes() const {
  MutexLock lock(state_mutex_);
  return active_->bytes() + (flushing_ ? flushing_->bytes() : 0);
}

std::uint64_t Region::file_bytes() const {
  MutexLock lock(state_mutex_);
  std::uint64_t bytes = 0;
  for (const OpenFile& file : *open_files_) bytes += file.entry.bytes;
  return bytes;
}

std::size_t Region::file_count() const {
  MutexLock lock(state_mutex_);
  return open_files_->size();
}

std::uint64_t Region::visible_sequence() const {
  MutexLock lock(state_mutex_);
  return visible_;
}

Status Region::status() const {
  MutexLock lock(state_mutex_);
  return refusal();
}

}  // namespace pv2::cluster

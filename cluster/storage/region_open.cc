// SPDX-License-Identifier: Apache-2.0
//
// The opening of a region: claim, replay, one new list, and then the removal of what the list does
// not need. A crash anywhere leaves the old list with the recovered files, or the new list.

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "storage/log_splitter.h"
#include "storage/region.h"

namespace pv2::cluster {

class Region::Opening {
 public:
  explicit Opening(Region& region) : region_(region) {}

  Status run() {
    if (Status bad = claim(); !bad.ok()) return bad;
    if (Status bad = read(); !bad.ok()) return bad;
    if (Status bad = open_files(); !bad.ok()) return bad;
    if (Status bad = replay(); !bad.ok()) return bad;
    if (Status bad = publish(); !bad.ok()) return bad;
    return clean_up();
  }

 private:
  [[nodiscard]] const TableName& table() const { return region_.info_.table; }
  [[nodiscard]] const std::string& id() const { return region_.info_.id; }
  [[nodiscard]] std::uint64_t opening() const { return region_.options_.opening; }
  /// The families of the table that came after `descriptor`, a version of it.
  [[nodiscard]] std::vector<std::string> families_since(std::uint64_t descriptor) const {
    std::vector<std::string> found;
    for (std::size_t at = 0; at < region_.options_.since.size(); ++at) {
      if (region_.options_.since[at] > descriptor) found.push_back(region_.options_.families[at]);
    }
    return found;
  }

  Status claim() {
    if (opening() == 0) return {StatusCode::kInvalidArgument, "an opening has a number"};
    const Result<bool> there = region_.files_.is_there(region_.layout_.region_info(table(), id()));
    if (!there.ok()) return there.status();
    if (!*there) return {StatusCode::kNotFound, fmt::format("region {} has no directory", id())};
    const Result<RegionFiles> present =
        read_region_files(region_.files_, region_.layout_, table(), id());
    if (!present.ok()) return present.status();
    if (present->opening == opening()) return {};  // an earlier attempt of the same order
    return write_region_files(region_.files_, region_.layout_, table(), id(),
                              {.opening = opening(), .is_claim = true});
  }

  Status read() {
    Result<std::vector<RecoveredFile>> recovered =
        read_recovered(region_.files_, region_.layout_, table(), id());
    if (!recovered.ok()) return recovered.status();
    recovered_ = *std::move(recovered);
    Result<RegionFiles> list = read_region_files(region_.files_, region_.layout_, table(), id());
    if (!list.ok()) return list.status();
    if (list->opening > opening())
      return {StatusCode::kFenced, fmt::format("region {} was opened again", id())};
    list_ = *std::move(list);
    if (list_.opening == opening()) region_.next_number_ = list_.next_number;
    return {};
  }

  /// What counts of a file. Nothing reads a row that the region does not have.
  [[nodiscard]] StoreFile::Part part_of(const StoreFileEntry& entry) const {
    StoreFile::Part part{.hidden = families_since(entry.descriptor)};
    const RegionInfo& info = region_.info_;
    if (entry.start_key > info.start_key) part.start_row = entry.start_key;
    if (!entry.end_key.empty() && (info.end_key.empty() || entry.end_key < info.end_key))
      part.end_row = entry.end_key;
    return part;
  }

  Status open_files() {
    for (StoreFileEntry& entry : list_.files) {
      const ClusterLayout& layout = region_.layout_;
      Result<std::shared_ptr<StoreFile>> file =
          StoreFile::open(region_.files_, layout.store_file(table(), entry.region_id, entry.name));
      if (file.status().code() == StatusCode::kNotFound) {
        file = StoreFile::open(region_.files_,
                               layout.archived_file(table(), entry.region_id, entry.name));
      }
      if (!file.ok()) return file.status();
      open_files_.push_back({entry, *std::move(file), part_of(entry)});
    }
    return {};
  }

  Status replay() {
    highest_ = list_.max_sequence;
    // Whoever wrote the edits had opened the region with the list's descriptor.
    const std::vector<std::string> newer = families_since(list_.descriptor);
    const auto is_gone = [&](const StoredCell& cell) {
      return cell.space != CellSpace::kNonces &&
             (!region_.check_families({cell.family}).ok() ||
              std::ranges::find(newer, cell.family) != newer.end());
    };
    const auto memory = std::make_shared<MemStore>();
    for (RecoveredFile& file : recovered_) {
      for (WalEntry& entry : file.entries) {
        if (entry.sequence <= list_.max_sequence) continue;
        highest_ = std::max(highest_, entry.sequence);
        std::erase_if(entry.cells, is_gone);
        memory->add(entry.cells, entry.sequence);
      }
    }
    if (memory->empty()) return {};
    std::uint64_t written = 0;
    Result<OpenFile> file = region_.write_file(*MemStore::cursor(memory), written,
                                               [](const DecodedCell&) { return true; });
    if (!file.ok()) return file.status();
    open_files_.push_back(*std::move(file));
    return {};
  }

  Status publish() {
    region_.open_sequence_ = highest_ + 1;
    {
      MutexLock lock(region_.state_mutex_);
      region_.assigned_ = region_.visible_ = region_.open_sequence_;
    }
    return region_.replace_files(std::move(open_files_), region_.open_sequence_);
  }

  Status clean_up() {
    for (const RecoveredFile& file : recovered_) {
      if (Status bad = region_.files_.remove_file(file.path); !bad.ok()) return bad;
    }
    const std::string directory = region_.layout_.region(table(), id());
    const Result<std::vector<std::string>> names = region_.files_.list_with_drafts(directory);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      if (!is_left_over(name)) continue;
      if (Status bad = region_.files_.remove_file(directory + "/" + name); !bad.ok()) return bad;
    }
    return {};
  }

  // Files of earlier openings, and of earlier attempts of this one. What a later opening has
  // written is not ours.
  [[nodiscard]] bool is_left_over(const std::string& name) const {
    const std::string finished = name.substr(0, name.find('~'));
    const bool is_draft = finished.size() != name.size();
    if (const auto list = ClusterLayout::parse_region_files(finished))
      return *list < opening() || (is_draft && *list == opening());
    const std::optional<std::uint64_t> store_file = ClusterLayout::parse_store_file(finished);
    if (!store_file || *store_file > opening()) return false;
    if (is_draft) return true;
    MutexLock lock(region_.state_mutex_);
    return std::ranges::none_of(*region_.open_files_, [&](const OpenFile& file) {
      return file.entry.region_id == id() && file.entry.name == name;
    });
  }

  Region& region_;
  RegionFiles list_;
  std::vector<RecoveredFile> recovered_;
  OpenFiles open_files_;
  std::uint64_t highest_ = 0;
};

Result<std::shared_ptr<Region>> Region::open(const FileTree& files, const ClusterLayout& layout,
                                             WorkQueue& work, RegionInfo info,
                                             RegionOptions options) {
  const std::shared_ptr<Region> region(
      new Region(files, layout, work, std::move(info), std::move(options)));
  if (Status bad = Opening(*region).run(); !bad.ok())
    return bad.with_context("opening region " + region->info().id);
  return region;
}

}  // namespace pv2::cluster

// SPDX-License-Identifier: Apache-2.0
//
// Follows the chain of frames from segment to segment, and then looks through all that it has not
// followed for a frame that should not be there.

#include "log/log_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "log/unit_frame.h"

namespace pv2 {
namespace {

struct LogFile {
  std::string name;
  std::string bytes;
  std::size_t followed = 0;  // where its part of the chain ends, in bytes
};

class Reader {
 public:
  Reader(SegmentNumber first, CommitSequence after) : first_(first), number_(first) {
    log_.last = after;
    log_.next = first;
  }

  Status read(const LevelDbFiles& files, const std::string& directory) {
    const auto names = files.list_store(directory);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      if (!SegmentPool::is_name(name)) continue;
      auto bytes = files.read(directory + "/" + name);
      if (!bytes.ok()) return bytes.status();
      log_.files.push_back({name, bytes->size()});
      files_.push_back({name, *std::move(bytes)});
    }
    for (LogFile& file : files_) {
      const auto frame = read_frame(file.bytes, 0);
      if (frame && frame->segment.value + 1 == first_.value) before_ = &file;
      if (!frame || frame->segment < first_) continue;
      note(*frame);
      if (frame->segment.value - first_.value >= kSegmentsApart) {
        damage(file, fmt::format("it has segment {}, and the database goes on with {}: the end of "
                                 "the database's log is missing",
                                 frame->segment.value, first_.value));
        continue;
      }
      if (const auto [at, is_new] = by_number_.emplace(frame->segment, &file); !is_new) {
        damage(file, fmt::format("it has the same segment as {}", at->second->name));
      }
    }
    return Status();
  }

  void follow_checkpointed() {
    if (before_ == nullptr) return;
    const CommitSequence after = log_.last;
    const auto damage = log_.damage;
    log_.last.value = read_frame(before_->bytes, 0)->first.value - 1;
    number_.value = first_.value - 1;
    log_.with_checkpointed = follow_segment(*before_) && log_.last == after;
    number_ = first_;
    if (log_.with_checkpointed) return log_.segments.back()->forget_births();
    before_->followed = 0;
    log_.segments.clear();
    log_.newest.clear();
    log_.last = after;
    log_.damage = damage;
  }

  RecoveredLog follow() && {
    for (auto at = by_number_.find(number_); at != by_number_.end();
         at = by_number_.find(number_)) {
      if (!follow_segment(*at->second)) break;
      ++number_.value;
    }
    for (const LogFile& file : files_) look_behind_the_end(file);
    return std::move(log_);
  }

 private:
  void note(const UnitFrame& frame) {
    log_.next = std::max(log_.next, SegmentNumber{frame.segment.value + 1});
  }
  void damage(const LogFile& file, std::string what) {
    if (!log_.damage) log_.damage = RecoveredLog::Damage{file.name, std::move(what)};
  }

  // False: the chain does not go on here.
  bool follow_segment(LogFile& file) {
    const CommitSequence before = log_.last;
    for (;;) {
      const auto frame = read_frame(file.bytes, file.followed);
      if (!frame || frame->segment != number_ || frame->batches == 0 ||
          frame->first.value != log_.last.value + 1) {
        break;
      }
      file.followed += frame->bytes();
      log_.last = frame->last();
    }
    if (log_.last == before) return false;
    log_.newest = file.name;
    log_.segments.push_back(std::make_shared<Segment>(
        number_, std::string_view(file.bytes).substr(0, file.followed), log_.last));
    if (!log_.segments.back()->index_checked()) {
      log_.segments.pop_back();
      log_.last = before;
      damage(file, "a frame with a correct checksum is not what a store writes");
      return false;
    }
    return true;
  }

  void look_behind_the_end(const LogFile& file) {
    const CommitSequence end{log_.last.value + 1};
    const auto later = find_later_frame(file.bytes, file.followed, first_, end);
    if (!later) return;
    note(*later);
    const auto suspect = std::find_if(files_.begin(), files_.end(), [this](const LogFile& each) {
      return each.name == log_.newest;
    });
    const std::string what = fmt::format("commit {} is missing, though {} goes on with commit {}",
                                         end.value, file.name, later->first.value);
    if (suspect == files_.end()) return damage(file, what);
    damage(*suspect, fmt::format("from byte {} on, {}", suspect->followed, what));
  }

  const SegmentNumber first_;
  SegmentNumber number_;
  std::vector<LogFile> files_;
  std::map<SegmentNumber, LogFile*> by_number_;
  LogFile* before_ = nullptr;  // the file of the segment before the first one
  RecoveredLog log_;
};

}  // namespace

Result<RecoveredLog> recover_log(const LevelDbFiles& files, const std::string& directory,
                                 SegmentNumber first, CommitSequence after,
                                 Checkpointed checkpointed) {
  Reader reader(first, after);
  if (Status status = reader.read(files, directory); !status.ok()) return status;
  if (checkpointed == Checkpointed::kReadIfWhole) reader.follow_checkpointed();
  return std::move(reader).follow();
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// A value in the database begins with the sequence of the commit that wrote it. A checkpoint is one
// write with one sync: it is there as a whole or not at all, and until then the log has its rows.

#include "leveldb_rows.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "little_endian.h"
#include "pv2/base/assert.h"
#include "row_table.h"

namespace pv2 {
namespace {

// The store's own rows. Their space is not a letter and sorts before all letters, so future spaces
// cannot collide with it, and no scan of a space meets them. Both are written by a checkpoint.
// Their values begin with the sequence of its last commit; that of the second goes on with a
// segment's number, and the commit up to which the log has to reach, of eight bytes each.
constexpr std::string_view kSequenceKey = "!sequence";
constexpr std::string_view kSegmentKey = "!segment";
constexpr std::size_t kSequenceBytes = 8;
constexpr std::size_t kSegmentBytes = 16;

// LevelDB stops writes while level 0 has 12 tables or more (its kL0_StopWritesTrigger). A
// compaction lets them go on.
constexpr std::size_t kTablesMax = 12;
// A batch of up to 32 MiB keeps its memory for the next checkpoint. With segments of the default
// size only a take-over makes a larger one.
constexpr std::size_t kBatchKept = std::size_t{32} << 20;

// A bloom filter of 10 bits per key answers 99 % of the look-ups of unused nonces without reading a
// table.
constexpr int kFilterBitsPerKey = 10;

leveldb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

// LevelDB gives the answer "there is no such key" no text. With a text, kNotFound is the system's
// answer for a file, which says nothing about the key.
bool is_absent(const leveldb::Status& found) {
  return found.IsNotFound() && found.ToString() == "NotFound: ";
}

leveldb::ReadOptions checked() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

}  // namespace

LevelDbRows::LevelDbRows(const LevelDbDirectory& directory, Options options)
    : directory_(directory),
      options_(options),
      background_(directory.files().env()),
      steady_writes_(background_, options.write_out),
      durable_names_(steady_writes_, directory.files().directory_sync()),
      env_(durable_names_) {}

LevelDbRows::~LevelDbRows() { close(); }

void LevelDbRows::close() noexcept {
  env_.discard();
  db_.reset();
  background_.stop();
}

// NOLINTNEXTLINE(bugprone-exception-escape): as the header says
Status LevelDbRows::open(bool create, std::vector<ShownFile> shown) noexcept {
  if (Status started = background_.start(); !started.ok()) return started;
  if (!create) env_.defer();
  for (ShownFile& file : shown) env_.show(directory_.file(file.file), std::move(file.bytes));
  filter_.reset(leveldb::NewBloomFilterPolicy(kFilterBitsPerKey));
  cache_.reset(leveldb::NewLRUCache(options_.block_cache_bytes));
  leveldb::Options options;
  options.env = &env_;
  options.create_if_missing = create;
  options.error_if_exists = create;
  options.paranoid_checks = true;
  options.write_buffer_size = options_.write_buffer_bytes;
  options.block_cache = cache_.get();
  options.filter_policy = filter_.get();
  options.compression = leveldb::kNoCompression;

  leveldb::DB* opened = nullptr;
  const Status status = translate(leveldb::DB::Open(options, directory_.path(), &opened));
  db_.reset(opened);
  if (is_held_by_another(status)) {
    return Status(StatusCode::kBusy, fmt::format("store {} is in use by another program: {}",
                                                 directory_.path(), status.message()));
  }
  return status.ok() ? read_own_rows() : status.with_context("opening store " + directory_.path());
}

// LevelDB has a lock of its own, which a program may hold that knows nothing of ours. Where LevelDB
// cannot open that file, nobody holds it.
bool LevelDbRows::is_held_by_another(const Status& opened) const {
  const std::string_view message = opened.message();
  if (message.find("lock " + directory_.file("LOCK") + ": ") == std::string_view::npos)
    return false;
  // By this process, by another one: in words of LevelDB, and of the system for EAGAIN or EACCES.
  return message.ends_with("already held by process") ||
         message.ends_with(std::generic_category().message(EAGAIN)) ||
         message.ends_with(std::generic_category().message(EACCES));
}

Status LevelDbRows::read_own_rows() {
  std::string value;
  leveldb::Status found = db_->Get(checked(), slice(kSequenceKey), &value);
  if (is_absent(found)) return Status();  // no checkpoint was ever made
  if (!found.ok()) return explain(found, "opening");
  if (value.size() < kSequenceBytes) return too_short(kSequenceKey);
  last_.value = read_fixed64(value.data());

  found = db_->Get(checked(), slice(kSegmentKey), &value);
  if (is_absent(found)) return Status();  // a store from before there was a log
  if (!found.ok()) return explain(found, "opening");
  if (value.size() < kSequenceBytes + kSegmentBytes) return too_short(kSegmentKey);
  next_segment_.value = read_fixed64(value.data() + kSequenceBytes);
  needs_.value = read_fixed64(value.data() + kSequenceBytes + 8);
  return Status();
}

Status LevelDbRows::take_over() {
  const Status applied = translate(env_.apply());
  PV2_ASSERT(!applied.ok() || !env_.defers(), "what is taken over is changed at once from now on");
  return applied;
}

Result<std::optional<std::string>> LevelDbRows::get(std::string_view full_key) const noexcept {
  std::string value;
  const leveldb::Status found = db_->Get(checked(), slice(full_key), &value);
  if (is_absent(found)) return std::optional<std::string>();
  if (!found.ok()) {
    return explain(found, fmt::format("reading {} of", describe_key(full_key)));
  }
  if (value.size() < kSequenceBytes) return too_short(full_key);
  value.erase(0, kSequenceBytes);
  return std::optional<std::string>(std::move(value));
}

std::unique_ptr<leveldb::Iterator> LevelDbRows::rows() const noexcept {
  leveldb::ReadOptions options = checked();
  options.fill_cache = false;  // a scan reads each block once; the cache is for get()
  return std::unique_ptr<leveldb::Iterator>(db_->NewIterator(options));
}

Status LevelDbRows::visit(const leveldb::Iterator& rows, const RowVisitor& visit) const {
  const std::string_view key = view(rows.key());
  const std::string_view value = view(rows.value());
  if (value.size() < kSequenceBytes) return too_short(key);
  return visit(StoredRow{static_cast<Space>(key.front()), key.substr(1),
                         value.substr(kSequenceBytes), CommitSequence{read_fixed64(value.data())}});
}

// Each write may make one table.
bool LevelDbRows::may_stop_within(std::size_t writes) const noexcept {
  std::string tables;
  const bool known = db_->GetProperty("leveldb.num-files-at-level0", &tables);
  return !known || std::strtoull(tables.c_str(), nullptr, 10) + writes >= kTablesMax;
}

Status LevelDbRows::write_checkpoint(const Overlay::Checkpoint& checkpoint,
                                     SegmentNumber next) noexcept {
  batch_->Clear();
  for (const Overlay::Row& row : checkpoint.rows) {
    if (row.row.deleted) {
      batch_->Delete(slice(row.full_key));
      continue;
    }
    value_.clear();
    append_fixed64(value_, row.row.sequence.value);
    value_.append(row.row.value);
    batch_->Put(slice(row.full_key), value_);
  }
  value_.clear();
  append_fixed64(value_, checkpoint.last.value);
  batch_->Put(slice(kSequenceKey), value_);
  append_fixed64(value_, next.value);
  append_fixed64(value_, checkpoint.needs.value);
  batch_->Put(slice(kSegmentKey), value_);

  leveldb::WriteOptions options;
  options.sync = true;
  Status written =
      translate(db_->Write(options, &*batch_))
          .with_context(fmt::format("checkpoint of segment {}", checkpoint.segment.value));
  if (batch_->ApproximateSize() > kBatchKept) batch_.emplace();
  return written;
}

// LevelDB says that a block is damaged, but not in which file; so the tables are read until the
// damaged one is found, provided that none has been changed yet.
Status LevelDbRows::explain(const leveldb::Status& failure, std::string_view act) const {
  const Status status = not_absent(translate(failure));
  const bool is_damaged = status.code() == StatusCode::kCorruption;
  Status where = is_damaged && env_.defers() ? directory_.verify_tables() : Status();
  return where.ok() ? status.with_context(fmt::format("{} store {}", act, directory_.path()))
                    : where;
}

Status LevelDbRows::too_short(std::string_view key) const {
  return Status(StatusCode::kCorruption,
                fmt::format("store {}: the value of {} is shorter than its commit sequence; it was "
                            "not written by a store",
                            directory_.path(), describe_key(key)));
}

}  // namespace pv2

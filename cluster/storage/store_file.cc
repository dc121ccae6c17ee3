// SPDX-License-Identifier: Apache-2.0
//
// Store files as LevelDB tables. The key of the metadata is after the keys of all cells.

#include "storage/store_file.h"

#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <pv2/base/assert.h>
#include <pv2/base/fields.h>

#include <algorithm>
#include <utility>

#include "storage/stored_cell.h"

namespace pv2::cluster {
namespace {

constexpr std::string_view kMetaKey = "~meta";
constexpr char kTombstoneValue[] = {static_cast<char>(CellKind::kTombstone)};

leveldb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view(const leveldb::Slice& bytes) { return {bytes.data(), bytes.size()}; }

leveldb::Options table_options(leveldb::Env& env) {
  leveldb::Options options;
  options.env = &env;
  options.paranoid_checks = true;
  // The same bytes whether or not LevelDB was built with a compressor.
  options.compression = leveldb::kNoCompression;
  return options;
}

leveldb::ReadOptions checked_reads() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

}  // namespace

StoreFileWriter::StoreFileWriter(const FileTree& files, std::string path,
                                 std::unique_ptr<leveldb::WritableFile> file)
    : files_(files),
      path_(std::move(path)),
      file_(std::move(file)),
      builder_(std::make_unique<leveldb::TableBuilder>(table_options(files.env()), file_.get())) {}

StoreFileWriter::~StoreFileWriter() {
  if (!finished_) builder_->Abandon();
  if (is_named_) return;
  builder_.reset();
  file_.reset();
  // A full disk would be fuller with each attempt. The name is new, so no list of files has it,
  // also if the draft was renamed already.
  static_cast<void>(files_.remove_file(draft()));
  if (finished_) static_cast<void>(files_.remove_file(path_));
}

Result<std::unique_ptr<StoreFileWriter>> StoreFileWriter::create(const FileTree& files,
                                                                 std::string path) {
  leveldb::WritableFile* opened = nullptr;
  Status bad = translate_leveldb(files.env().NewWritableFile(path + "~", &opened),
                                 "making a draft of " + path);
  std::unique_ptr<leveldb::WritableFile> file(opened);
  if (!bad.ok()) return bad;
  return std::unique_ptr<StoreFileWriter>(
      new StoreFileWriter(files, std::move(path), std::move(file)));
}

Status StoreFileWriter::add(std::string_view key, std::string_view value) {
  ++meta_.cells;
  meta_.max_sequence = std::max(meta_.max_sequence, sequence_of_key(key));
  builder_->Add(slice(key), slice(value));
  return translate_leveldb(builder_->status(), "writing " + path_);
}

Status StoreFileWriter::finish() {
  PV2_ASSERT(!finished_, "a store file is finished once");
  std::string meta;
  encode_fields(meta_, FieldSelection::kAll, meta);
  builder_->Add(slice(kMetaKey), slice(meta));
  finished_ = true;
  leveldb::Status status = builder_->Finish();
  if (status.ok()) status = file_->Sync();
  if (status.ok()) status = file_->Close();
  if (!status.ok()) return translate_leveldb(status, "writing " + path_);
  Status renamed = files_.rename(draft(), path_);
  is_named_ = renamed.ok();
  return renamed;
}

Result<std::shared_ptr<StoreFile>> StoreFile::open(const FileTree& files, const std::string& path) {
  const Result<std::uint64_t> bytes = files.size(path);
  if (!bytes.ok()) return bytes.status();
  std::shared_ptr<StoreFile> store(new StoreFile);
  store->bytes_ = *bytes;

  leveldb::RandomAccessFile* file = nullptr;
  leveldb::Status status = files.env().NewRandomAccessFile(path, &file);
  store->file_.reset(file);
  leveldb::Table* table = nullptr;
  if (status.ok()) status = leveldb::Table::Open(table_options(files.env()), file, *bytes, &table);
  store->table_.reset(table);
  if (!status.ok()) return translate_leveldb(status, "opening " + path);

  const std::unique_ptr<leveldb::Iterator> last(store->table_->NewIterator(checked_reads()));
  last->SeekToLast();
  if (!last->status().ok()) return translate_leveldb(last->status(), "opening " + path);
  if (!last->Valid() || view(last->key()) != kMetaKey)
    return Status(StatusCode::kCorruption, path + " has no metadata");
  Status bad = decode_fields(store->meta_, FieldSelection::kAll, view(last->value()));
  if (!bad.ok()) return bad.with_context(path);
  return store;
}

class StoreFile::Cursor final : public CellCursor {
 public:
  Cursor(std::shared_ptr<const StoreFile> file, Part part)
      : file_(std::move(file)),
        part_(std::move(part)),
        at_(file_->table_->NewIterator(checked_reads())) {}

  void seek(std::string_view key) override {
    at_->Seek(slice(key));
    pass_rest();
  }
  void next() override {
    at_->Next();
    pass_rest();
  }
  [[nodiscard]] bool valid() const override {
    return at_->Valid() && damage_.ok() && view(at_->key()) != kMetaKey;
  }
  [[nodiscard]] std::string_view key() const override { return view(at_->key()); }
  // To step over hidden cells here would be work without a limit that no walk counts. Whatever is
  // older than a hidden cell is hidden too, so a tombstone hides no more.
  [[nodiscard]] std::string_view value() const override {
    return is_hidden_ ? std::string_view(kTombstoneValue, 1) : view(at_->value());
  }
  [[nodiscard]] std::size_t bytes_read() const override { return at_->value().size(); }
  [[nodiscard]] Status status() const override {
    return damage_.ok() ? translate_leveldb(at_->status(), "reading a store file") : damage_;
  }

 private:
  void pass_rest() {
    is_hidden_ = false;
    while (valid()) {
      // A value begins with its kind, and readers rely on it.
      if (value().empty() || key().size() <= kKeySequenceBytes) {
        damage_ = {StatusCode::kCorruption, "a store file has a key or value that is no cell"};
        return;
      }
      if (part_.is_all()) return;
      const auto decoded = decode_cell(key(), value());
      if (!decoded) {
        damage_ = {StatusCode::kCorruption, "a store file has a key that is no cell"};
        return;
      }
      const StoredCell& cell = decoded->cell;
      if (cell.row < part_.start_row) {
        at_->Seek(slice(row_key(cell.space, part_.start_row)));
      } else if (!part_.end_row.empty() && cell.row >= part_.end_row) {
        at_->Seek(slice(space_end(cell.space)));
      } else {
        is_hidden_ = is_hidden(cell);
        return;
      }
    }
  }

  [[nodiscard]] bool is_hidden(const StoredCell& cell) const {
    return cell.space == CellSpace::kCells &&
           std::ranges::find(part_.hidden, cell.family) != part_.hidden.end();
  }

  const std::shared_ptr<const StoreFile> file_;
  const Part part_;
  const std::unique_ptr<leveldb::Iterator> at_;
  bool is_hidden_ = false;
  Status damage_;
};

std::unique_ptr<CellCursor> StoreFile::cursor(std::shared_ptr<const StoreFile> file, Part part) {
  return std::make_unique<Cursor>(std::move(file), std::move(part));
}

}  // namespace pv2::cluster

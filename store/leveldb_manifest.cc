// SPDX-License-Identifier: Apache-2.0
//
// The MANIFEST reader. A record is a sequence of (tag, fields); the tags below are all that
// LevelDB 1.23 writes.

#include "leveldb_manifest.h"

#include <cstddef>

namespace pv2 {
namespace {

enum Tag : std::uint64_t {
  kComparator = 1,
  kLogNumber = 2,
  kNextFileNumber = 3,
  kLastSequence = 4,
  kCompactPointer = 5,
  kDeletedFile = 6,
  kNewFile = 7,
  kPreviousLogNumber = 9,
};

// Takes varints and strings off a record; after the first that does not fit, everything is 0 or
// empty and ok() is false.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return bytes_.empty() || !ok_; }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }

  void skip_string() {
    const std::uint64_t size = number();
    ok_ = ok_ && size <= bytes_.size();
    if (ok_) bytes_.remove_prefix(static_cast<std::size_t>(size));
  }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

bool add_record(Manifest& manifest, std::string_view record) {
  Cursor cursor(record);
  while (!cursor.at_end()) {
    switch (cursor.number()) {
      case kComparator:
        cursor.skip_string();
        break;
      case kLogNumber:
        manifest.log_number = cursor.number();
        break;
      case kPreviousLogNumber:
        manifest.previous_log_number = cursor.number();
        break;
      case kNextFileNumber:
        manifest.next_file = cursor.number();
        break;
      case kLastSequence:
        manifest.last_sequence = cursor.number();
        break;
      case kCompactPointer:
        cursor.number();
        cursor.skip_string();
        break;
      case kDeletedFile:
        cursor.number();
        manifest.tables.erase(cursor.number());
        break;
      case kNewFile: {
        cursor.number();
        const std::uint64_t table = cursor.number();
        manifest.tables[table] = cursor.number();
        cursor.skip_string();
        cursor.skip_string();
        break;
      }
      default:
        return false;
    }
  }
  return cursor.ok();
}

}  // namespace

Result<Manifest> read_manifest(const std::vector<std::string>& records) {
  Manifest manifest;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!add_record(manifest, records[i])) {
      return Status(StatusCode::kCorruption,
                    "record " + std::to_string(i + 1) + " cannot be understood");
    }
  }
  return manifest;
}

}  // namespace pv2

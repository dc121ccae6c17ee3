// SPDX-License-Identifier: Apache-2.0
//
// The log reader. One loop over fragments; everything that is not a good fragment ends it.

#include "leveldb_log_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "little_endian.h"
#include "pv2/base/crc32c.h"

namespace pv2 {
namespace {

constexpr std::size_t kBlockBytes = 32'768;
constexpr std::size_t kHeaderBytes = 7;
constexpr std::size_t kSectorBytes = 512;  // a disk writes no smaller piece

enum FragmentType : unsigned char { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

// LevelDB stores checksums rotated and shifted, so that a checksum of data with checksums in it
// stays meaningful.
std::uint32_t unmask(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xa282ead8U;
  return (rotated >> 17) | (rotated << 15);
}

std::size_t length_in(const char* header) {
  return static_cast<unsigned char>(header[4]) | (static_cast<unsigned char>(header[5]) << 8);
}

// A crash cuts a fragment short; a damaged length only seems to. In the second case the whole
// fragment is there, so some shorter length fits its checksum.
bool some_shorter_length_fits(std::uint32_t checksum, std::string_view type_and_data) {
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < type_and_data.size(); ++i) {
    crc = crc32c(type_and_data.substr(i, 1), crc);
    if (crc == checksum) return true;
  }
  return false;
}

class LogFileReader {
 public:
  explicit LogFileReader(std::string_view bytes) : bytes_(bytes) {}

  LogFileContents read() {
    while (at_ < bytes_.size() && step()) {
    }
    if (contents_.end == LogFileContents::End::kClean && in_record_) {
      end(LogFileContents::End::kTorn, "a record without its last fragment");
    }
    return std::move(contents_);
  }

 private:
  bool step() {
    const std::size_t block_left = kBlockBytes - at_ % kBlockBytes;
    const std::size_t file_left = bytes_.size() - at_;
    if (block_left < kHeaderBytes) return skip_trailer(std::min(block_left, file_left));
    if (file_left < kHeaderBytes) return end(LogFileContents::End::kTorn, "part of a header");

    const char* const header = bytes_.data() + at_;
    const std::uint32_t checksum = unmask(read_fixed32(header));
    const std::size_t length = length_in(header);
    const auto type = static_cast<unsigned char>(header[6]);

    if (kHeaderBytes + length > block_left) {
      return end(broken(checksum, block_left), "a length that reaches over the end of a block");
    }
    if (kHeaderBytes + length > file_left) {
      const bool complete = some_shorter_length_fits(checksum, bytes_.substr(at_ + 6));
      return complete ? end(LogFileContents::End::kDamaged, "a damaged length")
                      : end(LogFileContents::End::kTorn, "part of a record");
    }
    if (crc32c(bytes_.substr(at_ + 6, 1 + length)) != checksum) {
      return end(broken(checksum, kHeaderBytes + length), "a wrong checksum");
    }
    const std::string_view data = bytes_.substr(at_ + kHeaderBytes, length);
    at_ += kHeaderBytes + length;
    return take(type, data);
  }

  bool skip_trailer(std::size_t size) {
    const std::string_view trailer = bytes_.substr(at_, size);
    if (trailer.find_first_not_of('\0') != std::string_view::npos) {
      return end(LogFileContents::End::kDamaged, "bytes behind the end of a block");
    }
    at_ += size;
    if (!in_record_) contents_.good_bytes = at_;
    return true;
  }

  bool take(unsigned char type, std::string_view data) {
    const bool begins = type == kFull || type == kFirst;
    if (begins == in_record_ || type < kFull || type > kLast) {
      return end(LogFileContents::End::kDamaged, "a fragment out of order");
    }
    record_.append(data);
    in_record_ = type == kFirst || type == kMiddle;
    if (!in_record_) {
      contents_.records.push_back(std::move(record_));
      record_.clear();
      contents_.good_bytes = at_;
    }
    return true;
  }

  bool end(LogFileContents::End how, std::string_view what) {
    contents_.end = how;
    contents_.problem = fmt::format("{} at byte {} of {}", what, at_, bytes_.size());
    return false;
  }

  // What the end of the file is, if no good fragment begins here. `size`: what the fragment seems
  // to have, if its header is right.
  [[nodiscard]] LogFileContents::End broken(std::uint32_t checksum, std::size_t size) const {
    using End = LogFileContents::End;
    const std::string_view rest = bytes_.substr(at_);
    if (rest.find_first_not_of('\0') == std::string_view::npos) return End::kUnwritten;
    const bool is_one_write = rest.size() <= kBlockBytes && lacks_a_sector() &&
                              !some_shorter_length_fits(checksum, rest.substr(6, size - 6)) &&
                              !record_begins_behind();
    return is_one_write ? End::kUnwritten : End::kDamaged;
  }

  // Whether all that a sector has of the file from here on is zeros.
  [[nodiscard]] bool lacks_a_sector() const {
    for (std::size_t from = at_; from < bytes_.size();) {
      const std::size_t to = (from / kSectorBytes + 1) * kSectorBytes;
      const std::string_view piece = bytes_.substr(from, to - from);
      if (piece.find_first_not_of('\0') == std::string_view::npos) return true;
      from = to;
    }
    return false;
  }

  // Whether a good fragment, with which a record begins, is anywhere behind this place.
  [[nodiscard]] bool record_begins_behind() const {
    for (std::size_t at = at_ + 1; at + kHeaderBytes <= bytes_.size(); ++at) {
      const char* const header = bytes_.data() + at;
      const std::size_t size = kHeaderBytes + length_in(header);
      const bool fits = size <= kBlockBytes - at % kBlockBytes && size <= bytes_.size() - at;
      if (!fits || (header[6] != kFull && header[6] != kFirst)) continue;
      if (crc32c(bytes_.substr(at + 6, size - 6)) == unmask(read_fixed32(header))) return true;
    }
    return false;
  }

  const std::string_view bytes_;
  std::size_t at_ = 0;
  bool in_record_ = false;
  std::string record_;
  LogFileContents contents_;
};

}  // namespace

LogFileContents read_log_file(std::string_view bytes) { return LogFileReader(bytes).read(); }

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// At the end of the file it starts again at the front; overwriting earlier records is as good as
// overwriting zeros.

#include "harness/raw_sync.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "harness/machine.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

constexpr std::size_t kRecordBytes = 256;
constexpr off_t kFileBytes = off_t{16} << 20;  // 65 536 records: more than any window writes

void write_at(int file, const void* bytes, std::size_t size, off_t offset) {
  if (pwrite(file, bytes, size, offset) != static_cast<ssize_t>(size)) {
    die(fmt::format("writing the file of the raw sync: {}", std::strerror(errno)));
  }
}

void sync(int file) {
  if (fdatasync(file) != 0) die(fmt::format("fdatasync: {}", std::strerror(errno)));
}

}  // namespace

RawSync::RawSync(const std::string& path)
    : file_(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (file_ < 0) die(fmt::format("cannot make {}: {}", path, std::strerror(errno)));
  const std::vector<char> zeros(std::size_t{1} << 20);
  for (off_t at = 0; at < kFileBytes; at += static_cast<off_t>(zeros.size())) {
    write_at(file_, zeros.data(), zeros.size(), at);
  }
  if (fsync(file_) != 0) die(fmt::format("fsync of {}: {}", path, std::strerror(errno)));
}

RawSync::~RawSync() { close(file_); }

RawSyncs RawSync::measure(std::chrono::milliseconds window) {
  std::array<char, kRecordBytes> record{};
  record.fill('r');
  Samples samples;
  const auto begin = BenchClock::now();
  auto before = begin;
  while (before - begin < window) {
    write_at(file_, record.data(), record.size(), next_);
    sync(file_);
    next_ = (next_ + static_cast<off_t>(kRecordBytes)) % kFileBytes;
    const auto after = BenchClock::now();
    samples.add(std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  }
  return {.per_second = static_cast<double>(samples.size()) /
                        std::chrono::duration<double>(before - begin).count(),
          .p50_us = samples.percentile(50),
          .p99_us = samples.percentile(99)};
}

}  // namespace pv2::bench

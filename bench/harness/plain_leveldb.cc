// SPDX-License-Identifier: Apache-2.0
//
// The options and the shape of the rows repeat those in store/leveldb_procedure_store.cc: the byte
// of the space before the key, eight bytes of sequence before the value.

#include "harness/plain_leveldb.h"

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <memory>

#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

constexpr std::size_t kSequenceBytes = 8;

struct Database {
  explicit Database(const std::string& folder)
      : filter(leveldb::NewBloomFilterPolicy(10)),
        cache(leveldb::NewLRUCache(std::size_t{8} << 20)) {
    leveldb::Options options;
    options.create_if_missing = true;
    options.paranoid_checks = true;
    options.write_buffer_size = std::size_t{4} << 20;
    options.block_cache = cache.get();
    options.filter_policy = filter.get();
    options.compression = leveldb::kNoCompression;
    leveldb::DB* opened = nullptr;
    check(leveldb::DB::Open(options, folder, &opened));
    db.reset(opened);
  }
  void write(leveldb::WriteBatch& batch) {
    leveldb::WriteOptions options;
    options.sync = true;
    check(db->Write(options, &batch));
  }
  static void check(const leveldb::Status& status) {
    if (!status.ok()) die("plain LevelDB: " + status.ToString());
  }

  std::unique_ptr<const leveldb::FilterPolicy> filter;
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<leveldb::DB> db;
};

// Returns how many of the operations were steps.
std::uint64_t add_rows(const RowBatch& request, leveldb::WriteBatch& batch) {
  std::uint64_t steps = 0;
  std::string row_key;
  std::string row_value;
  request.for_each(
      [&](RowOperation operation, Space space, std::string_view key, std::string_view value) {
        row_key.assign(1, static_cast<char>(space)).append(key);
        if (operation == RowOperation::kDelete) return batch.Delete(row_key);
        if (is_step(operation, space)) ++steps;
        row_value.assign(kSequenceBytes, '\0').append(value);
        batch.Put(row_key, row_value);
      });
  return steps;
}

}  // namespace

PlainWrites write_plain(const RecordedStream& stream, const std::string& folder,
                        std::size_t requests_per_sync, std::chrono::milliseconds limit) {
  Database database(folder);
  const UsageMeter meter;
  const auto end = BenchClock::now() + limit;
  leveldb::WriteBatch batch;
  std::uint64_t steps = 0;
  std::size_t syncs = 0;
  for (std::size_t next = 0; next < stream.requests.size() && BenchClock::now() < end; ++syncs) {
    std::size_t together = requests_per_sync;
    if (together == 0 && syncs < stream.requests_per_sync.size()) {
      together = stream.requests_per_sync[syncs];
    }
    const std::size_t stop =
        std::min(stream.requests.size(), next + std::max<std::size_t>(1, together));
    batch.Clear();
    for (; next < stop; ++next) steps += add_rows(stream.requests[next], batch);
    database.write(batch);
  }
  const Usage usage = meter.stop();
  const double done = std::max(1.0, static_cast<double>(steps));
  return {.steps_per_second = static_cast<double>(steps) / usage.seconds,
          .syncs_per_second = static_cast<double>(syncs) / usage.seconds,
          .cpu_us_per_step = usage.cpu_seconds / done * 1e6,
          .other_cores = usage.other_cores};
}

}  // namespace pv2::bench

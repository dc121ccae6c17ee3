// SPDX-License-Identifier: Apache-2.0
//
// Salvage. Logs behind the damage are emptied, not removed: LevelDB would replay them over the gap,
// and the MANIFEST may name one of them.

#include "leveldb_salvage.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "leveldb_log_file.h"
#include "little_endian.h"
#include "store_lock.h"

namespace pv2 {
namespace {

struct Cut {
  std::string file;
  std::string bytes;           // as they are
  std::size_t good_bytes = 0;  // as they will be
};

struct Plan {
  std::vector<Cut> cuts;
  std::string what;
};

Result<Plan> plan_cuts(const LevelDbDirectory& directory, const Manifest& manifest,
                       const std::vector<LiveLog>& logs) {
  Plan plan;
  std::uint64_t next = 0;
  for (const LiveLog& log : logs) {
    auto bytes = directory.files().read(directory.file(log.file));
    if (!bytes.ok()) return bytes.status();
    const LogFileContents contents = read_log_file(*bytes);
    if (!plan.cuts.empty()) {  // everything behind the damage goes
      plan.cuts.push_back({log.file, std::move(*bytes), 0});
      continue;
    }
    if (!contents.records.empty() && contents.records.front().size() >= 12) {
      const std::uint64_t first = read_fixed64(contents.records.front().data());
      if (next == 0 ? first > manifest.last_sequence + 1 : first != next) {
        plan.what = fmt::format("{} was emptied, because what comes before it is lost", log.file);
        plan.cuts.push_back({log.file, std::move(*bytes), 0});
        continue;
      }
    }
    for (const std::string& record : contents.records) {
      if (record.size() >= 12) next = read_fixed64(record.data()) + read_fixed32(record.data() + 8);
    }
    if (contents.end == LogFileContents::End::kDamaged) {
      plan.what = fmt::format("{} was cut at byte {} ({})", log.file, contents.good_bytes,
                              contents.problem);
      plan.cuts.push_back({log.file, std::move(*bytes), contents.good_bytes});
    }
  }
  return plan;
}

}  // namespace

Result<LogCut> cut_damaged_logs(const LevelDbDirectory& directory) {
  const auto contents = directory.examine();
  if (!contents.ok()) return contents.status();
  if (*contents != LevelDbDirectory::Contents::kStore) {
    return Status(StatusCode::kNotFound, "there is no store at " + directory.path());
  }
  StoreLock lock;
  Status status = lock.acquire(directory.lock_file(), directory.path());
  if (!status.ok()) return status;

  const auto unsupported = [](const Status& cause) {
    return Status(
        StatusCode::kNotSupported,
        fmt::format("salvage only cuts the end of a write-ahead log: {}", cause.message()));
  };
  const auto manifest = directory.manifest();
  if (!manifest.ok()) return unsupported(manifest.status());
  const auto logs = directory.live_logs(*manifest);
  if (!logs.ok()) return unsupported(logs.status());
  const auto plan = plan_cuts(directory, *manifest, *logs);
  if (!plan.ok()) return plan.status();
  if (plan->cuts.empty()) {
    status = directory.verify();
    if (status.ok()) status = directory.verify_tables();
    if (!status.ok()) return unsupported(status);
    return LogCut{};
  }

  const LevelDbFiles& files = directory.files();
  LogCut done{.changed = true, .copies = {}, .what = plan->what};
  for (int number = 1; done.copies.empty() || files.env().FileExists(done.copies); ++number) {
    done.copies = fmt::format("{}.salvaged-{}", directory.path(), number);
  }
  status = translate(files.env().CreateDir(done.copies));
  if (status.ok()) status = files.sync_directory(parent_of(done.copies));
  for (const Cut& cut : plan->cuts) {
    if (status.ok()) status = files.replace(done.copies + "/" + cut.file, cut.bytes);
  }
  for (const Cut& cut : plan->cuts) {
    const std::string_view good = std::string_view(cut.bytes).substr(0, cut.good_bytes);
    if (status.ok()) status = files.replace(directory.file(cut.file), good);
  }
  if (!status.ok()) return status.with_context("salvage of store " + directory.path());
  return done;
}

}  // namespace pv2

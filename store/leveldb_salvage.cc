// SPDX-License-Identifier: Apache-2.0
//
// Salvage. Logs behind the damage are emptied, as LevelDB would replay them over the gap; they are
// not removed, as the MANIFEST may name one of them.

#include "leveldb_salvage.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "durable_mark.h"
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
    if (!plan.cuts.empty()) {  // all logs behind the damage are emptied
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

Status make_place_for_copies(const LevelDbDirectory& directory, LogCut& cut) {
  const LevelDbFiles& files = directory.files();
  for (int number = 1; cut.copies.empty() || files.env().FileExists(cut.copies); ++number) {
    cut.copies = fmt::format("{}.salvaged-{}", directory.path(), number);
  }
  const Status made = translate(files.env().CreateDir(cut.copies));
  return made.ok() ? files.sync_directory(parent_of(cut.copies)) : made;
}

}  // namespace

Result<LogCut> cut_damaged_logs(const LevelDbDirectory& directory) {
  const auto contents = directory.examine();
  if (!contents.ok()) return contents.status();
  if (*contents != LevelDbDirectory::Contents::kStore &&
      *contents != LevelDbDirectory::Contents::kOlderStore) {
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
  status = make_place_for_copies(directory, done);
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

Status give_up_damaged_log(const LevelDbDirectory& directory, const RecoveredLog& log,
                           LogCut& cut) {
  if (!log.damage) return Status();
  const LevelDbFiles& files = directory.files();
  Status status = cut.copies.empty() ? make_place_for_copies(directory, cut) : Status();
  for (const SegmentPool::File& file : log.files) {
    const auto bytes = status.ok() ? files.read(directory.file(file.name)) : status;
    status = bytes.ok() ? files.replace(cut.copies + "/" + file.name, *bytes) : bytes.status();
  }
  if (!status.ok()) return status.with_context("salvage of store " + directory.path());
  cut.what += fmt::format("{}{} was damaged ({})", cut.changed ? "; " : "", log.damage->file,
                          log.damage->what);
  cut.changed = true;
  return status;
}

Status give_up_later_commits(const LevelDbDirectory& directory, CommitSequence last, LogCut& cut) {
  const LevelDbFiles& files = directory.files();
  DurableMark mark(files, directory.mark_file());
  const auto durable = mark.read();
  const bool damaged = durable.status().code() == StatusCode::kCorruption;
  if (!durable.ok() && !damaged) return durable.status();
  if (durable.ok() && *durable <= last) return Status();

  const auto bytes = files.read(directory.mark_file());
  Status status = bytes.status();
  if (status.ok() && cut.copies.empty()) status = make_place_for_copies(directory, cut);
  const std::string name(LevelDbDirectory::kMark);
  if (status.ok()) status = files.replace(cut.copies + "/" + name, *bytes);
  if (status.ok()) status = mark.reset(last);
  if (!status.ok()) return status.with_context("salvage of store " + directory.path());
  cut.what += cut.changed ? "; " : "";
  cut.what += damaged ? fmt::format("{} was damaged and is written anew", name)
                      : fmt::format("{} said that commit {} was durable", name, durable->value);
  cut.changed = true;
  return status;
}

}  // namespace pv2

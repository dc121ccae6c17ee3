// SPDX-License-Identifier: Apache-2.0
//
// The steps of a salvage, in the order in which LevelDbProcedureStore::salvage() takes them.

#include "leveldb_salvage.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "durable_mark.h"
#include "leveldb_log_file.h"
#include "little_endian.h"

namespace pv2 {
namespace {

void cut(SalvagePlan& plan, ShownFile shown) {
  plan.what += fmt::format("{}{} was cut at byte {} ({})", plan.what.empty() ? "" : "; ",
                           shown.file, shown.bytes.size(), shown.why);
  plan.shown.push_back(std::move(shown));
}

// LevelDB would replay logs behind a gap over it; so it is to see them empty.
Result<SalvagePlan> plan_cuts(const LevelDbDirectory& directory, const Manifest& manifest,
                              const std::vector<LiveLog>& logs) {
  SalvagePlan plan;
  std::uint64_t next = 0;
  bool has_gap = false;
  for (const LiveLog& log : logs) {
    const auto bytes = directory.files().read(directory.file(log.file));
    if (!bytes.ok()) return bytes.status();
    const LogFileContents contents = read_log_file(*bytes);
    if (!contents.records.empty() && contents.records.front().size() >= 12) {
      const std::uint64_t first = read_fixed64(contents.records.front().data());
      has_gap = has_gap || (next == 0 ? first > manifest.last_sequence + 1 : first != next);
    }
    if (has_gap) {
      cut(plan, {log.file, "", "what comes before it is lost"});
      continue;
    }
    for (const std::string& record : contents.records) {
      if (record.size() >= 12) next = read_fixed64(record.data()) + read_fixed32(record.data() + 8);
    }
    using End = LogFileContents::End;
    if (contents.end == End::kDamaged || contents.end == End::kUnwritten) {
      cut(plan, {log.file, bytes->substr(0, contents.good_bytes), contents.problem});
    }
  }
  return plan;
}

Status make_place_for_copies(const LevelDbDirectory& directory, SalvageReport& done) {
  const LevelDbFiles& files = directory.files();
  for (int number = 1; done.copies.empty() || files.env().FileExists(done.copies); ++number) {
    done.copies = fmt::format("{}.salvaged-{}", directory.path(), number);
  }
  const Status made = translate(files.env().CreateDir(done.copies));
  return made.ok() ? files.sync_directory(parent_of(done.copies)) : made;
}

Status copy_aside(const LevelDbDirectory& directory, const std::string& file,
                  const SalvageReport& done) {
  const LevelDbFiles& files = directory.files();
  const auto bytes = files.read(directory.file(file));
  return bytes.ok() ? files.replace(done.copies + "/" + file, *bytes) : bytes.status();
}

}  // namespace

Result<SalvagePlan> plan_salvage(const LevelDbDirectory& directory) {
  const auto unsupported = [](const Status& cause) {
    return Status(
        StatusCode::kNotSupported,
        fmt::format("salvage only cuts the end of a write-ahead log: {}", cause.message()));
  };
  const auto manifest = directory.manifest();
  if (!manifest.ok()) return unsupported(manifest.status());
  const auto logs = directory.live_logs(*manifest);
  if (!logs.ok()) return unsupported(logs.status());
  auto plan = plan_cuts(directory, *manifest, *logs);
  if (!plan.ok()) return plan;
  if (plan->shown.empty()) {
    Status status = directory.verify(/*has_step_log=*/false).status();
    if (status.ok()) status = directory.verify_tables();
    if (!status.ok()) return unsupported(status);
  }
  if (manifest->shown) cut(*plan, *manifest->shown);
  return plan;
}

Status copy_cut_files(const LevelDbDirectory& directory, const SalvagePlan& plan,
                      SalvageReport& done) {
  if (plan.shown.empty()) return Status();
  Status status = make_place_for_copies(directory, done);
  for (const ShownFile& log : plan.shown) {
    if (status.ok()) status = copy_aside(directory, log.file, done);
  }
  done.what = plan.what;
  done.changed = true;
  return status;
}

Status give_up_damaged_log(const LevelDbDirectory& directory, const RecoveredLog& log,
                           SalvageReport& done) {
  if (!log.damage) return Status();
  Status status = done.copies.empty() ? make_place_for_copies(directory, done) : Status();
  for (const SegmentPool::File& file : log.files) {
    if (status.ok()) status = copy_aside(directory, file.name, done);
  }
  if (!status.ok()) return status;
  done.what += fmt::format("{}{} was damaged ({})", done.changed ? "; " : "", log.damage->file,
                           log.damage->what);
  done.changed = true;
  return status;
}

Status give_up_later_commits(const LevelDbDirectory& directory, CommitSequence last,
                             SalvageReport& done) {
  const LevelDbFiles& files = directory.files();
  const auto durable = read_marks(files, directory.mark_file());
  const bool damaged = durable.status().code() == StatusCode::kCorruption;
  if (!durable.ok() && !damaged) return durable.status();
  if (durable.ok() && *durable <= last) return Status();

  Status status = done.copies.empty() ? make_place_for_copies(directory, done) : Status();
  const std::string name(LevelDbDirectory::kMark);
  if (status.ok()) status = copy_aside(directory, name, done);
  if (status.ok()) status = replace_marks(files, directory.mark_file(), last);
  if (!status.ok()) return status;
  done.what += done.changed ? "; " : "";
  done.what += damaged ? fmt::format("{} was damaged and is written anew", name)
                       : fmt::format("{} said that commit {} was durable", name, durable->value);
  done.changed = true;
  return status;
}

}  // namespace pv2

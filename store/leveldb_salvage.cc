// SPDX-License-Identifier: Apache-2.0
//
// The steps of a salvage, in the order in which LevelDbProcedureStore::salvage() takes them.

#include "leveldb_salvage.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "durable_mark.h"
#include "leveldb_log_file.h"
#include "little_endian.h"

namespace pv2 {
namespace {

// The report names the first log that loses something. All of them are copied.
void give_up(SalvagePlan& plan, ShownFile log) {
  if (plan.given_up.empty()) {
    plan.what = log.bytes.empty() ? fmt::format("{} was emptied ({})", log.file, log.why)
                                  : fmt::format("{} was cut at byte {} ({})", log.file,
                                                log.bytes.size(), log.why);
  }
  plan.given_up.push_back(log.file);
  plan.shown.push_back(std::move(log));
}

// LevelDB would replay logs behind the damage over the gap; so it is to see them empty.
Result<SalvagePlan> plan_cuts(const LevelDbDirectory& directory, const Manifest& manifest,
                              const std::vector<LiveLog>& logs, bool has_step_log) {
  using End = LogFileContents::End;
  SalvagePlan plan;
  if (manifest.shown) plan.shown.push_back(*manifest.shown);
  std::uint64_t next = 0;
  bool is_over = false;  // what follows does not go on where the rows end
  for (const LiveLog& log : logs) {
    plan.logs.push_back(log.file);
    const auto bytes = directory.files().read(directory.file(log.file));
    if (!bytes.ok()) return bytes.status();
    const LogFileContents contents = read_log_file(*bytes);
    if (!contents.records.empty() && contents.records.front().size() >= 12) {
      const std::uint64_t first = read_fixed64(contents.records.front().data());
      const bool is_first = log.number == logs.front().number;
      is_over =
          is_over || (next == 0 ? !is_first || first > manifest.last_sequence + 1 : first != next);
    }
    if (is_over) {
      if (!bytes->empty()) give_up(plan, {log.file, "", "what comes before it is lost"});
      continue;
    }
    for (const std::string& record : contents.records) {
      if (record.size() >= 12) next = read_fixed64(record.data()) + read_fixed32(record.data() + 8);
    }
    if (contents.end != End::kDamaged && contents.end != End::kUnwritten) continue;
    ShownFile cut{log.file, bytes->substr(0, contents.good_bytes), contents.problem};
    const bool is_last = log.number == logs.back().number;
    if (contents.end == End::kDamaged || !has_step_log || !is_last) {
      give_up(plan, std::move(cut));
    } else {
      plan.shown.push_back(std::move(cut));
    }
  }
  return plan;
}

// The path without slashes at its end. "." and ".." are no names to which something can be added.
std::string own_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const auto last = std::filesystem::path(path).filename();
  if (last != "." && last != "..") return path;
  std::error_code unknown;
  const auto named = std::filesystem::canonical(path, unknown);
  return unknown ? path : named.string();
}

std::string place_for_copies(const LevelDbDirectory& directory) {
  const std::string store = own_name(directory.path());
  std::string place;
  for (int number = 1; place.empty() || directory.files().env().FileExists(place); ++number) {
    place = fmt::format("{}.salvaged-{}", store, number);
  }
  return place;
}

Status copy_aside(const LevelDbDirectory& directory, const std::string& file,
                  const std::string& place) {
  const LevelDbFiles& files = directory.files();
  const auto bytes = files.read(directory.file(file));
  return bytes.ok() ? files.replace(place + "/" + file, *bytes) : bytes.status();
}

// Copies that are not complete are of no use, and take space that the next attempt needs.
void remove_copies(const LevelDbFiles& files, const std::string& place) {
  const auto names = files.list(place);
  if (!names.ok()) return;
  for (const std::string& name : *names) files.env().RemoveFile(place + "/" + name);
  files.env().RemoveDir(place);
}

// The logs, and the marks that belong to them. Once in a salvage: a second call finds the copies.
Status copy_logs(const LevelDbDirectory& directory, const SalvagePlan& plan,
                 const RecoveredLog& log, SalvageReport& done) {
  if (!done.copies.empty()) return Status();
  const LevelDbFiles& files = directory.files();
  const std::string place = place_for_copies(directory);
  if (Status made = translate(files.env().CreateDir(place)); !made.ok()) return made;
  Status status = files.sync_directory(parent_of(place));
  for (const std::string& file : plan.logs) {
    if (status.ok()) status = copy_aside(directory, file, place);
  }
  for (const SegmentPool::File& file : log.files) {
    if (status.ok()) status = copy_aside(directory, file.name, place);
  }
  if (status.ok() && files.env().FileExists(directory.mark_file())) {
    status = copy_aside(directory, std::string(LevelDbDirectory::kMark), place);
  }
  if (status.ok()) {
    done.copies = place;
  } else {
    remove_copies(files, place);
  }
  return status;
}

void note(SalvageReport& done, std::string_view what) {
  if (done.changed) done.what += "; ";
  done.what += what;
  done.changed = true;
}

}  // namespace

Result<SalvagePlan> plan_salvage(const LevelDbDirectory& directory, bool has_step_log) {
  const auto unsupported = [](const Status& cause) {
    // What could not be read may be sound.
    if (cause.code() != StatusCode::kCorruption) return cause;
    return Status(
        StatusCode::kNotSupported,
        fmt::format("salvage only cuts the end of a write-ahead log: {}", cause.message()));
  };
  const auto manifest = directory.manifest();
  if (!manifest.ok()) return unsupported(manifest.status());
  const auto logs = directory.live_logs(*manifest);
  if (!logs.ok()) return unsupported(logs.status());
  auto plan = plan_cuts(directory, *manifest, *logs, has_step_log);
  if (!plan.ok()) return plan;
  Status status;
  if (plan->given_up.empty()) status = directory.verify(has_step_log).status();
  if (status.ok()) status = directory.verify_tables();
  if (!status.ok()) return unsupported(status);
  return plan;
}

Status give_up_damaged_ends(const LevelDbDirectory& directory, const SalvagePlan& plan,
                            const RecoveredLog& log, SalvageReport& done) {
  if (plan.given_up.empty() && !log.damage) return Status();
  if (Status copied = copy_logs(directory, plan, log, done); !copied.ok()) return copied;
  if (!plan.given_up.empty()) note(done, plan.what);
  if (log.damage)
    note(done, fmt::format("{} was damaged ({})", log.damage->file, log.damage->what));
  return Status();
}

Status give_up_later_commits(const LevelDbDirectory& directory, const SalvagePlan& plan,
                             const RecoveredLog& log, SalvageReport& done) {
  const LevelDbFiles& files = directory.files();
  const auto durable = read_marks(files, directory.mark_file());
  const bool damaged = durable.status().code() == StatusCode::kCorruption;
  if (!durable.ok() && !damaged) return durable.status();
  if (durable.ok() && *durable <= log.last) return Status();

  const auto before = files.read(directory.mark_file());
  if (!before.ok()) return before.status();
  Status status = copy_logs(directory, plan, log, done);
  if (!status.ok()) return status;
  status = replace_marks(files, directory.mark_file(), log.last);
  if (!status.ok()) {
    // If the old marks are still there, nothing has changed and the copies are not needed. A failed
    // replacement may have renamed the new marks into place without making that durable.
    const auto now = files.read(directory.mark_file());
    if (now.ok() && *now == *before) remove_copies(files, std::exchange(done.copies, {}));
    return status;
  }
  const std::string_view name = LevelDbDirectory::kMark;
  note(done, damaged ? fmt::format("{} was damaged and is written anew", name)
                     : fmt::format("{} said that commit {} was durable", name, durable->value));
  return status;
}

}  // namespace pv2

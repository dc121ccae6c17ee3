// SPDX-License-Identifier: Apache-2.0
//
// One sweep at a time: the next one is planned when the last one has come back.

#include "master/cleaner.h"

#include <fmt/core.h>

#include <memory>

namespace pv2::cluster {

Cleaner::Cleaner(std::shared_ptr<Transport> transport, const FileTree& files,
                 const ClusterLayout& layout, Queues queues, const MasterOptions& options,
                 Events events)
    : queues_(queues),
      every_(options.clean_up_every),
      events_(std::move(events)),
      old_files_(files, layout,
                 {.logs_kept = options.old_logs_kept, .archive_kept = options.archive_kept}),
      tasks_(std::move(transport)) {}

void Cleaner::start() {
  tasks_.after(every_, [this] { sweep_logs(); });
}

void Cleaner::sweep_logs() {
  queues_.recovery.run([this, now = tasks_.now(), post = tasks_.poster()] {
    const OldFiles::Sweep sweep = old_files_.sweep_logs(now);
    const auto directories = old_files_.queue_directories();
    post([this, sweep, found = directories.ok() ? *directories : std::vector<Directory>()] {
      take(sweep, "old logs");
      claim(found);
      sweep_archive();
    });
  });
}

void Cleaner::sweep_archive() {
  queues_.tables.run([this, now = tasks_.now(), post = tasks_.poster()] {
    post([this, sweep = old_files_.sweep_archive(now)] {
      take(sweep, "archived regions");
      start();
    });
  });
}

void Cleaner::take(const OldFiles::Sweep& sweep, std::string_view what) {
  if (!sweep.status.ok()) {
    events_.say(fmt::format("{} are left for now: {}", what, sweep.status.to_string()));
  }
  if (sweep.removed > 0) events_.say(fmt::format("removed {} {}", sweep.removed, what));
}

void Cleaner::claim(const std::vector<Directory>& directories) {
  for (const Directory& directory : directories) {
    if (!events_.is_retired(directory.second) || !claiming_.insert(directory).second) continue;
    events_.claim(directory, [this, directory, post = tasks_.poster()] {
      post([this, directory] { claiming_.erase(directory); });
    });
  }
}

}  // namespace pv2::cluster

// SPDX-License-Identifier: Apache-2.0
//
// One look at a time: the next one is planned when the last one has come back.

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
  tasks_.after(every_, [this] { look(); });
}

void Cleaner::look() {
  queues_.recovery.run([this, now = tasks_.now(), post = tasks_.poster()] {
    const OldFiles::Look look = old_files_.look_at_logs(now);
    const auto directories = old_files_.queue_directories();
    post([this, look, found = directories.ok() ? *directories : std::vector<Directory>()] {
      take(look, "old logs");
      claim(found);
      look_at_archive();
    });
  });
}

void Cleaner::look_at_archive() {
  queues_.tables.run([this, now = tasks_.now(), post = tasks_.poster()] {
    post([this, look = old_files_.look_at_archive(now)] {
      take(look, "archived regions");
      start();
    });
  });
}

void Cleaner::take(const OldFiles::Look& look, std::string_view what) {
  if (!look.status.ok()) {
    events_.say(fmt::format("{} are left for now: {}", what, look.status.to_string()));
  }
  if (look.removed > 0) events_.say(fmt::format("removed {} {}", look.removed, what));
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

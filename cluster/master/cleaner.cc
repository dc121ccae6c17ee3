// SPDX-License-Identifier: Apache-2.0
//
// One look at a time: the next one is planned when the last one has come back.

#include "master/cleaner.h"

#include <fmt/core.h>

#include <memory>

namespace pv2::cluster {

Cleaner::Cleaner(std::shared_ptr<Transport> transport, const FileTree& files,
                 const ClusterLayout& layout, WorkQueue& queue, const MasterOptions& options,
                 Events events)
    : queue_(queue),
      every_(options.clean_up_every),
      events_(std::move(events)),
      old_files_(files, layout,
                 {.logs_kept = options.old_logs_kept, .archive_kept = options.archive_kept}),
      tasks_(std::move(transport)) {}

void Cleaner::start() {
  tasks_.after(every_, [this] { look(); });
}

void Cleaner::look() {
  queue_.run([this, now = tasks_.now(), post = tasks_.poster()] {
    const OldFiles::Look look = old_files_.look(now);
    const auto directories = old_files_.queue_directories();
    post([this, look, found = directories.ok() ? *directories : std::vector<Directory>()] {
      take(look, found);
      start();
    });
  });
}

void Cleaner::take(const OldFiles::Look& look, const std::vector<Directory>& directories) {
  if (!look.status.ok()) {
    events_.say("old files are left for now: " + look.status.to_string());
  }
  if (look.logs + look.regions > 0) {
    events_.say(fmt::format("removed {} old logs, and the archived files of {} regions", look.logs,
                            look.regions));
  }
  for (const Directory& directory : directories) {
    if (!events_.is_retired(directory.second) || !claiming_.insert(directory).second) continue;
    events_.claim(directory, [this, directory, post = tasks_.poster()] {
      post([this, directory] { claiming_.erase(directory); });
    });
  }
}

}  // namespace pv2::cluster

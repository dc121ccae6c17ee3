// SPDX-License-Identifier: Apache-2.0
//
// The file: one frame (length and checksum) around the encoded fields.

#include "master/local_state.h"

#include <charconv>
#include <string_view>

#include "storage/framed_fields.h"

namespace pv2::cluster {

Result<LocalState> LocalState::open(const FileTree& files, std::string path) {
  LocalState state(files, std::move(path));
  const Result<std::set<std::uint64_t>> epochs = state.epochs();
  if (!epochs.ok()) return epochs.status();
  const std::string file = epochs->empty() ? state.path_ : state.file_of(*epochs->rbegin());
  Result<std::string> bytes = files.read(file);
  if (bytes.status().code() == StatusCode::kNotFound && epochs->empty()) return state;
  if (!bytes.ok()) return bytes.status();
  const auto damaged = [&](const std::string& why) {
    return Status(StatusCode::kCorruption,
                  "the master's file " + file + " cannot be read: " + why +
                      "; restore it from a backup: it says which servers are dead");
  };
  if (Status bad = decode_framed(*bytes, state.contents_); !bad.ok()) {
    return damaged(std::string(bad.message()));
  }
  if (!epochs->empty() && state.contents_.epoch != *epochs->rbegin()) {
    return damaged("it is of epoch " + std::to_string(state.contents_.epoch));
  }
  return state;
}

Result<std::set<std::uint64_t>> LocalState::epochs() const {
  const std::size_t slash = path_.rfind('/');
  const std::string prefix = path_.substr(slash + 1) + ".";
  const Result<std::vector<std::string>> names = files_->list(path_.substr(0, slash));
  if (!names.ok()) return names.status();
  std::set<std::uint64_t> epochs;
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix)) continue;
    std::uint64_t epoch = 0;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, epoch);
    if (error == std::errc() && stop == end) epochs.insert(epoch);
  }
  return epochs;
}

Status LocalState::replace(LocalContents contents) {
  const std::string file = file_of(contents.epoch);
  if (Status bad = files_->write(file, encode_framed(contents)); !bad.ok()) return bad;
  // After the write: either it was before a successor's, or this finds the successor's.
  const Result<std::set<std::uint64_t>> there = epochs();
  if (!there.ok()) return there.status();
  const std::uint64_t latest = there->empty() ? 0 : *there->rbegin();
  if (latest > contents.epoch) {
    return {StatusCode::kFenced, "a master with epoch " + std::to_string(latest) +
                                     " has begun, and this one has " +
                                     std::to_string(contents.epoch)};
  }
  contents_ = std::move(contents);
  return {};
}

void LocalState::remove_earlier() const {
  const Result<std::set<std::uint64_t>> there = epochs();
  if (!there.ok()) return;
  for (const std::uint64_t epoch : *there) {
    if (epoch < contents_.epoch) (void)files_->remove_file(file_of(epoch));
  }
  (void)files_->remove_file(path_);
}

}  // namespace pv2::cluster

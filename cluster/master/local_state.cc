// SPDX-License-Identifier: Apache-2.0
//
// The file: one frame (length and checksum) around the encoded fields.

#include "master/local_state.h"

#include "storage/framed_fields.h"

namespace pv2::cluster {

Result<LocalState> LocalState::open(const FileTree& files, std::string path) {
  LocalState state(files, std::move(path));
  Result<std::string> bytes = files.read(state.path_);
  if (bytes.status().code() == StatusCode::kNotFound) return state;
  if (!bytes.ok()) return bytes.status();
  const auto damaged = [&](const std::string& why) {
    return Status(StatusCode::kCorruption,
                  "the master's file " + state.path_ + " cannot be read: " + why +
                      "; restore it from a backup: it says which servers are dead");
  };
  if (Status bad = decode_framed(*bytes, state.contents_); !bad.ok()) {
    return damaged(std::string(bad.message()));
  }
  return state;
}

Status LocalState::replace(LocalContents contents) {
  if (Status bad = files_->write(path_, encode_framed(contents)); !bad.ok()) return bad;
  contents_ = std::move(contents);
  return {};
}

}  // namespace pv2::cluster

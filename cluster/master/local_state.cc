// SPDX-License-Identifier: Apache-2.0
//
// The file: one frame (length and checksum) around the encoded fields.

#include "master/local_state.h"

#include <pv2/base/fields.h>
#include <pv2/base/frame.h>

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
  std::string_view input = *bytes;
  const std::optional<std::string_view> frame = read_frame(input);
  if (!frame || !input.empty()) return damaged("its checksum does not match");
  if (Status bad = decode_fields(state.contents_, FieldSelection::kAll, *frame); !bad.ok()) {
    return damaged(bad.to_string());
  }
  return state;
}

Status LocalState::replace(LocalContents contents) {
  std::string fields;
  encode_fields(contents, FieldSelection::kAll, fields);
  std::string bytes;
  append_frame(bytes, fields);
  if (Status bad = files_->write(path_, bytes); !bad.ok()) return bad;
  contents_ = std::move(contents);
  return {};
}

}  // namespace pv2::cluster

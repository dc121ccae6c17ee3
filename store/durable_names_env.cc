// SPDX-License-Identifier: Apache-2.0
//
// A sync of the directory for each log, each table and each rename: about four per 4 MiB written.

#include "durable_names_env.h"

#include <memory>
#include <utility>

namespace pv2 {

leveldb::Status DurableNamesEnv::NewWritableFile(const std::string& file,
                                                 leveldb::WritableFile** result) {
  leveldb::Status status = target()->NewWritableFile(file, result);
  if (!status.ok() || !is_log_or_table(file)) return status;
  status = sync_directory_of(file);
  if (!status.ok()) delete std::exchange(*result, nullptr);
  return status;
}

leveldb::Status DurableNamesEnv::RenameFile(const std::string& from, const std::string& to) {
  const leveldb::Status status = target()->RenameFile(from, to);
  return status.ok() ? sync_directory_of(to) : status;
}

leveldb::Status DurableNamesEnv::sync_directory_of(const std::string& file) const {
  const Status status = sync_(parent_of(file));
  if (status.ok()) return leveldb::Status::OK();
  return leveldb::Status::IOError(file, std::string(status.message()));
}

}  // namespace pv2

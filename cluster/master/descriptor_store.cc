// SPDX-License-Identifier: Apache-2.0
//
// Each change of a descriptor is followed by a refresh(), which reads the file again; so the cache
// is never older than the last refresh().

#include "master/descriptor_store.h"

#include <utility>

#include "wire/message_bytes.h"

namespace pv2::cluster {

Status DescriptorStore::load_all(const std::function<void(const Status&)>& unreadable) {
  const Result<std::vector<TableName>> tables = directories_.tables();
  if (!tables.ok()) return tables.status();
  for (const TableName& table : *tables) {
    if (Status bad = read(table); !bad.ok()) unreadable(bad);
  }
  return {};
}

DescriptorList DescriptorStore::list(const std::optional<TableName>& after) const {
  DescriptorList list;
  MessageBytes bytes;
  const MutexLock lock(descriptors_mutex_);
  auto at = after ? descriptors_.upper_bound(*after) : descriptors_.begin();
  for (; at != descriptors_.end() && bytes.add(at->second); ++at) list.tables.push_back(at->second);
  list.has_more = at != descriptors_.end();
  return list;
}

void DescriptorStore::refresh(TableName table, Completion<Status> done) {
  queue_.run([this, table = std::move(table), done] { done(read(table)); });
}

Status DescriptorStore::read(const TableName& table) {
  Result<TableDescriptor> descriptor = directories_.read_descriptor(table);
  const MutexLock lock(descriptors_mutex_);
  if (descriptor.ok()) {
    descriptors_[table] = *std::move(descriptor);
    return {};
  }
  if (descriptor.status().code() != StatusCode::kNotFound) {
    return descriptor.status().with_context("the descriptor of table " + to_string(table));
  }
  descriptors_.erase(table);  // the table is gone, or is just being made
  return {};
}

}  // namespace pv2::cluster

// SPDX-License-Identifier: Apache-2.0
//
// LevelDbProcedureStore: the public class, and the salvage of a damaged store. What a store does is
// in leveldb_store.h.

#include "pv2/store/leveldb_procedure_store.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "leveldb_salvage.h"
#include "leveldb_store.h"

namespace pv2 {

LevelDbProcedureStore::LevelDbProcedureStore(std::string path, LevelDbOptions options)
    : impl_(std::make_unique<Impl>(std::move(path), std::move(options))) {}
LevelDbProcedureStore::~LevelDbProcedureStore() = default;

std::string LevelDbProcedureStore::name() const { return impl_->name(); }
Status LevelDbProcedureStore::recover_lease(CommitSink& sink) { return impl_->recover_lease(sink); }

CommitAnswer LevelDbProcedureStore::commit(CommitRequest& request) {
  return impl_->committer().commit(request);
}
CommitAnswer LevelDbProcedureStore::commit_all(CommitList& requests) {
  return impl_->committer().commit_all(requests);
}

CommitAnswer LevelDbProcedureStore::queue_all(CommitList& requests) {
  return impl_->committer().queue_all(requests);
}

Written LevelDbProcedureStore::write_queued() { return impl_->committer().write_queued(); }
void LevelDbProcedureStore::wake_writer() { impl_->committer().wake_writer(); }

Result<std::optional<std::string>> LevelDbProcedureStore::get(Space space, std::string_view key) {
  return impl_->get(space, key);
}
Status LevelDbProcedureStore::scan(Space space, std::string_view prefix, const RowVisitor& visit) {
  return impl_->scan(space, prefix, visit);
}

StoreLimits LevelDbProcedureStore::limits() const noexcept { return impl_->options().limits; }
bool LevelDbProcedureStore::pump() { return impl_->committer().pump(); }
void LevelDbProcedureStore::close() noexcept { impl_->close(); }

Result<LevelDbProcedureStore::Salvaged> LevelDbProcedureStore::salvage(const std::string& path) {
  class NoSink final : public CommitSink {
    void on_committed(CommitList) noexcept override {}
  } sink;
  LevelDbProcedureStore store(path, {.create_if_missing = false});
  Impl& impl = *store.impl_;
  const auto contents = impl.directory().examine();
  if (!contents.ok()) return contents.status();
  if (*contents != LevelDbDirectory::Contents::kStore &&
      *contents != LevelDbDirectory::Contents::kOlderStore) {
    return impl.directory().no_store(*contents);
  }
  // Until here, and in this call, nothing is changed.
  impl.accept_lost_commits();
  if (Status opened = store.recover_lease(sink); !opened.ok()) return opened;
  const CommitSequence last = impl.recovered().last;
  SalvageReport done;
  const SalvagePlan& plan = impl.salvage_plan();
  Status status = give_up_damaged_ends(impl.directory(), plan, impl.recovered(), done);
  if (status.ok()) status = give_up_later_commits(impl.directory(), plan, impl.recovered(), done);
  if (status.ok() && done.changed) status = impl.take_over();
  store.close();
  if (!status.ok()) {
    status = status.with_context("salvage of store " + path);
    return done.copies.empty() ? status : status.with_context("copies are in " + done.copies);
  }
  Salvaged salvaged{
      .changed = done.changed, .last_kept = last, .copies = done.copies, .report = {}};
  if (!done.changed) {
    salvaged.report = fmt::format("store {} needs no salvage: its logs are undamaged", path);
    return salvaged;
  }
  salvaged.report = fmt::format(
      "store {}: {}. Every commit up to {} is kept; every later one is gone. The logs as they "
      "were are in {}",
      path, done.what, salvaged.last_kept.value, done.copies);
  return salvaged;
}

std::unique_ptr<ProcedureStore> leveldb(std::string path, LevelDbOptions options) {
  return std::make_unique<LevelDbProcedureStore>(std::move(path), std::move(options));
}

}  // namespace pv2

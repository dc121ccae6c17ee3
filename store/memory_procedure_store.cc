// SPDX-License-Identifier: Apache-2.0
//
// MemoryProcedureStore: a Committer in front of a RowTable that several stores may share one after
// the other. The lease is an epoch on the disk, checked in the same critical section that applies a
// unit.

#include "pv2/store/memory_procedure_store.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "committer.h"
#include "pv2/base/mutex.h"
#include "row_table.h"

namespace pv2 {

struct MemoryDisk::Image {
  mutable Mutex rows_mutex;
  RowTable rows PV2_GUARDED_BY(rows_mutex);
  CommitSequence last_sequence PV2_GUARDED_BY(rows_mutex);
  std::uint64_t epoch PV2_GUARDED_BY(rows_mutex) = 0;
};

MemoryDisk::MemoryDisk() : image_(std::make_unique<Image>()) {}
MemoryDisk::~MemoryDisk() = default;

std::shared_ptr<MemoryDisk> MemoryDisk::clone() const {
  auto copy = std::make_shared<MemoryDisk>();
  Image& to = *copy->image_;
  MutexLock lock(image_->rows_mutex);
  MutexLock lock_copy(to.rows_mutex);
  to.rows = image_->rows;
  to.last_sequence = image_->last_sequence;
  to.epoch = image_->epoch;
  return copy;
}

std::size_t MemoryDisk::rows() const {
  MutexLock lock(image_->rows_mutex);
  return image_->rows.size();
}

std::size_t MemoryDisk::rows(Space space, std::string_view prefix) const {
  MutexLock lock(image_->rows_mutex);
  return image_->rows.copy_prefix(space, prefix).size();
}

std::optional<std::string> MemoryDisk::get(Space space, std::string_view key) const {
  MutexLock lock(image_->rows_mutex);
  const RowTable::Row* const row = image_->rows.find(space, key);
  return row == nullptr ? std::nullopt : std::optional<std::string>(row->value);
}

void MemoryDisk::put(Space space, std::string_view key, std::string_view value) {
  MutexLock lock(image_->rows_mutex);
  image_->rows.put(space, key, value, image_->last_sequence);
}

bool MemoryDisk::erase(Space space, std::string_view key) {
  MutexLock lock(image_->rows_mutex);
  return image_->rows.erase(space, key);
}

class MemoryProcedureStore::Impl final : public UnitWriter {
 public:
  Impl(std::shared_ptr<MemoryDisk> disk, MemoryStoreOptions options)
      : disk_(std::move(disk)), image_(*disk_->image_), options_(options) {}

  Status recover_lease(CommitSink& sink) {
    PV2_ASSERT(committer_ == nullptr, "recover_lease is called once");
    CommitSequence last;
    {
      MutexLock lock(image_.rows_mutex);
      epoch_ = ++image_.epoch;
      last = image_.last_sequence;
    }
    const bool own_thread = options_.mode == MemoryStoreOptions::Mode::kThread;
    committer_ = std::make_unique<Committer>(
        "memory store", *this, sink, last,
        Committer::Options{
            .thread = own_thread ? Committer::Thread::kOwn : Committer::Thread::kCaller,
            .limits = options_.limits,
            .unit_size = {.batch_operations = SIZE_MAX, .batch_bytes = SIZE_MAX}});
    return committer_->started();
  }

  Status write(const CommitList& unit) override {
    MutexLock lock(image_.rows_mutex);
    if (image_.epoch != epoch_) {
      return Status(StatusCode::kFenced,
                    fmt::format("memory store: another owner has taken the lease (epoch {}, this "
                                "store has {}); nothing was written",
                                image_.epoch, epoch_));
    }
    Status status = image_.rows.apply(unit);
    if (!status.ok()) return status.with_context("memory store");
    CommitSequence last = image_.last_sequence;
    unit.for_each([&last](const CommitRequest& request) { last = request.sequence; });
    image_.last_sequence = last;
    return status;
  }

  std::vector<RowTable::Copy> copy_prefix(Space space, std::string_view prefix) const {
    MutexLock lock(image_.rows_mutex);
    return image_.rows.copy_prefix(space, prefix);
  }

  [[nodiscard]] Committer& committer() const {
    PV2_ASSERT(committer_ != nullptr, "a store takes its lease before anything else");
    return *committer_;
  }
  [[nodiscard]] bool opened() const noexcept { return committer_ != nullptr; }
  [[nodiscard]] const std::shared_ptr<MemoryDisk>& disk() const noexcept { return disk_; }
  [[nodiscard]] StoreLimits limits() const noexcept { return options_.limits; }

 private:
  const std::shared_ptr<MemoryDisk> disk_;  // shared with the test that crashes this store
  MemoryDisk::Image& image_;
  const MemoryStoreOptions options_;
  std::uint64_t epoch_ = 0;
  std::unique_ptr<Committer> committer_;  // last: its thread uses what stands above
};

MemoryProcedureStore::MemoryProcedureStore(std::shared_ptr<MemoryDisk> disk,
                                           MemoryStoreOptions options)
    : impl_(std::make_unique<Impl>(std::move(disk), options)) {}
MemoryProcedureStore::~MemoryProcedureStore() = default;

Status MemoryProcedureStore::recover_lease(CommitSink& sink) { return impl_->recover_lease(sink); }

CommitAnswer MemoryProcedureStore::commit(CommitRequest& request) {
  return impl_->committer().commit(request);
}

CommitAnswer MemoryProcedureStore::commit_all(CommitList& requests) {
  return impl_->committer().commit_all(requests);
}

CommitAnswer MemoryProcedureStore::queue_all(CommitList& requests) {
  return impl_->committer().queue_all(requests);
}

Written MemoryProcedureStore::write_queued() { return impl_->committer().write_queued(); }
void MemoryProcedureStore::wake_writer() { impl_->committer().wake_writer(); }

Result<std::optional<std::string>> MemoryProcedureStore::get(Space space, std::string_view key) {
  return impl_->disk()->get(space, key);
}

Status MemoryProcedureStore::scan(Space space, std::string_view prefix, const RowVisitor& visit) {
  return visit_copies(impl_->copy_prefix(space, prefix), visit);
}

StoreLimits MemoryProcedureStore::limits() const noexcept { return impl_->limits(); }

bool MemoryProcedureStore::pump() { return impl_->committer().pump(); }

bool MemoryProcedureStore::pump_some(std::size_t requests_max) {
  return impl_->committer().pump(requests_max);
}

void MemoryProcedureStore::close() noexcept {
  if (impl_->opened()) impl_->committer().close();
}

std::size_t MemoryProcedureStore::queued() const { return impl_->committer().queued(); }

std::unique_ptr<ProcedureStore> memory(std::shared_ptr<MemoryDisk> disk,
                                       MemoryStoreOptions options) {
  return std::make_unique<MemoryProcedureStore>(std::move(disk), options);
}

}  // namespace pv2

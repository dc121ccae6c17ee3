// SPDX-License-Identifier: Apache-2.0
//
// NoopProcedureStore: one atomic number, and a map for the rows of the host.

#include "pv2/store/noop_procedure_store.h"

#include <vector>

#include "pv2/base/mutex.h"
#include "row_table.h"

namespace pv2 {

struct NoopProcedureStore::HostRows {
  Mutex rows_mutex;
  RowTable rows PV2_GUARDED_BY(rows_mutex);
};

NoopProcedureStore::NoopProcedureStore() : host_rows_(std::make_unique<HostRows>()) {}
NoopProcedureStore::~NoopProcedureStore() = default;

Status NoopProcedureStore::recover_lease(CommitSink&) {
  open_.store(true, std::memory_order_relaxed);
  return Status();
}

CommitAnswer NoopProcedureStore::commit(CommitRequest& request) {
  apply(request);
  return CommitAnswer::kDurable;
}

CommitAnswer NoopProcedureStore::commit_all(CommitList& requests) {
  bool are_plain = open_.load(std::memory_order_relaxed);
  requests.for_each([&](const CommitRequest& request) {
    are_plain = are_plain && request.batch.host_operations() == 0 && request.status.ok();
  });
  if (!are_plain) {
    requests.for_each([this](CommitRequest& request) { apply(request); });
    return CommitAnswer::kDurable;
  }
  // One stamp for all: the number is in the cache of whichever worker stamped last.
  std::uint64_t sequence = last_sequence_.fetch_add(requests.size(), std::memory_order_relaxed);
  requests.for_each([&](CommitRequest& request) { request.sequence.value = ++sequence; });
  return CommitAnswer::kDurable;
}

void NoopProcedureStore::apply(CommitRequest& request) {
  if (!open_.load(std::memory_order_relaxed)) {
    request.status = Status(StatusCode::kStopping, "noop store is closed: nothing is committed");
    return;
  }
  if (!request.status.ok()) request.status = Status();
  if (request.batch.host_operations() == 0) {
    request.sequence.value = last_sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
    return;
  }

  // Stamped under the lock, so that of two writes to one row the one with the larger sequence
  // stays.
  MutexLock lock(host_rows_->rows_mutex);
  request.sequence.value = last_sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  host_rows_->rows.apply_unchecked(request.batch, Space::kHost, request.sequence);
}

Result<std::optional<std::string>> NoopProcedureStore::get(Space space, std::string_view key) {
  MutexLock lock(host_rows_->rows_mutex);
  const RowTable::Row* const row = host_rows_->rows.find(space, key);
  return row == nullptr ? std::nullopt : std::optional<std::string>(row->value);
}

Status NoopProcedureStore::scan(Space space, std::string_view prefix, const RowVisitor& visit) {
  std::vector<RowTable::Copy> copies;
  {
    MutexLock lock(host_rows_->rows_mutex);
    copies = host_rows_->rows.copy_prefix(space, prefix);
  }
  return visit_copies(copies, visit);
}

StoreLimits NoopProcedureStore::limits() const noexcept {
  // The default limits of a store on disk, so that what runs here also runs there.
  return {.batch_operations = 65'536, .batch_bytes = std::size_t{16} << 20};
}

void NoopProcedureStore::close() noexcept { open_.store(false, std::memory_order_relaxed); }

std::unique_ptr<ProcedureStore> noop() { return std::make_unique<NoopProcedureStore>(); }

}  // namespace pv2

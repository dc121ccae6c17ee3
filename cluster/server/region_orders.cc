// SPDX-License-Identifier: Apache-2.0
//
// The disk is read and written on the queue of operations; the table is changed on the loop.

#include "server/region_orders.h"

#include <pv2/base/assert.h>
#include <pv2/procedures/init_meta.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "server/replication_host.h"
#include "storage/table_directories.h"
#include "wire/catalogue_rows.h"

namespace pv2::cluster {
namespace {

// A write that was under way when its region left this server ends within a turn of the loop.
constexpr Duration kNoncePause = std::chrono::milliseconds(10);

// About a millisecond of the loop; a region may know a million.
constexpr std::size_t kNoncesPerTurn = 4096;

Result<StoredDescriptor> descriptor_of(const TableDirectories& tables, const TableName& table) {
  Result<StoredDescriptor> stored = tables.read_stored_descriptor(table);
  if (is_meta(table) && stored.status().code() == StatusCode::kNotFound) {
    return next_descriptor({}, meta_descriptor(), 0, true);
  }
  return stored;
}

// The order is a late copy of one that was done long ago.
RemoteReport late_report(const Order& order) {
  return report_of(order.operation, {StatusCode::kFenced, "a later order has opened region " +
                                                              order.operation.region.id});
}

}  // namespace

RemoteReport report_of(const RemoteOperation& operation, const Status& failure) {
  return {.kind = operation.kind,
          .server = operation.server,
          .effect_key = operation.effect_key,
          .done = failure.ok(),
          .reason = failure.ok() ? "" : failure.to_string()};
}

void RegionOrders::open(const Order& order, Report report) {
  const RegionTable::Entry present = table_.find(order.operation.region.id);
  if (present == nullptr) return begin_open(order, std::move(report));
  if (order.number <= present->opening) return report(late_report(order));
  close_entry(present, [this, order, report = std::move(report)](std::uint64_t) {
    begin_open(order, report);
  });
}

void RegionOrders::begin_open(const Order& order, Report report) {
  const auto entry = std::make_shared<HostedRegion>(order.operation.region, order.number);
  table_.add(entry);
  if (replication_ == nullptr) return read(entry, order, std::move(report));
  replication_->prepare([this, entry, order, report = std::move(report),
                         post = context_.tasks.poster()](const Status& status) {
    post([this, entry, order, report, status] {
      if (context_.is_ended()) return;
      if (status.ok()) return read(entry, order, report);
      table_.remove(entry);
      report(report_of(order.operation, status.with_context("replication")));
    });
  });
}

void RegionOrders::read(const RegionTable::Entry& entry, const Order& order, Report report) {
  const RegionInfo& info = order.operation.region;
  const bool needs_meta_log = is_meta(info.table) && logs_.meta == nullptr;
  context_.queues.operations.run([this, entry, order, needs_meta_log, &context = context_,
                                  user_log = logs_.user.get(), post = context_.tasks.poster(),
                                  report = std::move(report)] {
    const auto opening = std::make_shared<Opening>();
    if (needs_meta_log) {
      auto log = ServerLog::open(
          context.files, context.layout, context.queues.meta_log, context.name,
          {.kind = LogKind::kMeta, .file_bytes_max = context.options.log_bytes_max});
      opening->status = log.status();
      if (log.ok()) opening->meta_log = *std::move(log);
    }
    if (opening->status.ok()) opening->status = read_region(context, order, *opening);
    // A server that is dead ends, also if the opening has failed for another reason.
    opening->fence = user_log->check_fence();
    post([this, entry, operation = order.operation, opening, report] {
      take_opening(entry, operation, opening, report);
    });
  });
}

Status RegionOrders::read_region(const ServerContext& context, const Order& order,
                                 Opening& opening) {
  const RegionInfo& info = order.operation.region;
  const auto stored = descriptor_of(TableDirectories(context.files, context.layout), info.table);
  if (!stored.ok()) return stored.status();
  auto region =
      Region::open(context.files, context.layout, context.queues.regions_of(info.table), info,
                   {.families = stored->descriptor.families,
                    .since = stored->since,
                    .descriptor = stored->version,
                    .opening = order.number});
  if (!region.ok()) return region.status();
  opening.region = *std::move(region);
  auto nonces = opening.region->nonces();
  if (!nonces.ok()) return nonces.status();
  opening.nonces = *std::move(nonces);
  return {};
}

void RegionOrders::take_opening(const RegionTable::Entry& entry, const RemoteOperation& operation,
                                const OpeningPointer& opening, const Report& report) {
  if (context_.is_ended()) return;
  if (!opening->fence.ok()) return context_.end(opening->fence);
  if (opening->meta_log != nullptr) logs_.meta = std::move(opening->meta_log);
  if (opening->status.ok()) return learn_nonces(entry, operation, opening, report);
  table_.remove(entry);
  report(report_of(operation, opening->status));
}

void RegionOrders::learn_nonces(const RegionTable::Entry& entry, const RemoteOperation& operation,
                                const OpeningPointer& opening, const Report& report) {
  if (context_.is_ended()) return;
  ServerNonceManager& manager = *nonces_.of(entry->info.table);
  std::vector<NonceCell>& nonces = opening->nonces;
  const auto first = nonces.end() - static_cast<std::ptrdiff_t>(
                                        std::min<std::size_t>(nonces.size(), kNoncesPerTurn));
  const auto kept = std::remove_if(first, nonces.end(),
                                   [&](const NonceCell& nonce) { return learn(manager, nonce); });
  const bool has_to_wait = kept != first;
  nonces.erase(kept, nonces.end());
  if (!nonces.empty()) {
    auto go_on = [this, entry, operation, opening, report] {
      learn_nonces(entry, operation, opening, report);
    };
    if (has_to_wait) {
      context_.tasks.after(kNoncePause, std::move(go_on));
    } else {
      context_.tasks.post(std::move(go_on));
    }
    return;
  }
  if (context_.is_stopping) {
    table_.remove(entry);
    return report(report_of(operation, {StatusCode::kUnavailable, "this server stops"}));
  }
  entry->region = opening->region;
  entry->log = is_meta(entry->info.table) ? logs_.meta.get() : logs_.user.get();
  entry->sequence = std::max(entry->region->open_sequence(), operation.sequence + 1);
  entry->state = HostedState::kReported;
  RemoteReport done = report_of(operation);
  done.sequence = entry->sequence;
  report(std::move(done));
}

// False: a write with this nonce, of an earlier stay of the region, has not ended yet. It will be
// refused; until then, its end would free the nonce.
bool RegionOrders::learn(ServerNonceManager& nonces, const NonceCell& cell) {
  const NonceRequest request{cell.nonce, cell.fingerprint, cell.expires_at};
  if (nonces.replay(request, cell.done_at, cell.result) != ServerNonceManager::Replay::kKnown) {
    return true;
  }
  const auto known = nonces.lookup(cell.nonce);
  if (!known.ok()) {  // its owner has said nothing; the region says that it was done
    nonces.resolve_done(cell.nonce, cell.result);
    return true;
  }
  return *known != nullptr;
}

void RegionOrders::opened(const Order& order, ReportSender::Verdict verdict) {
  const RegionTable::Entry entry = table_.find(order.operation.region.id);
  if (entry == nullptr || entry->opening != order.number) return;  // it was not opened
  if (verdict == ReportSender::Verdict::kTaken) {
    entry->state = HostedState::kServing;
    return;
  }
  // It took no writes, so there is nothing to flush.
  table_.remove(entry);
}

void RegionOrders::close(const Order& order, Report report) {
  const RegionTable::Entry entry = table_.find(order.operation.region.id);
  if (entry == nullptr) return report_absent(order.operation, report);
  if (order.number < entry->opening) return report(late_report(order));
  close_entry(entry,
              [operation = order.operation, report = std::move(report)](std::uint64_t sequence) {
                RemoteReport done = report_of(operation);
                done.sequence = sequence;
                report(std::move(done));
              });
}

void RegionOrders::close_all() {
  for (const RegionTable::Entry& entry : table_.open_regions()) {
    if (entry->state == HostedState::kReported) table_.remove(entry);  // it took no writes
    if (entry->state == HostedState::kServing) close_entry(entry, [](std::uint64_t) {});
  }
}

void RegionOrders::close_entry(const RegionTable::Entry& entry,
                               std::function<void(std::uint64_t)> closed) {
  entry->state = HostedState::kClosing;
  // The entry keeps this callback, which must not keep the entry.
  entry->when_idle([this, weak = std::weak_ptr(entry), closed = std::move(closed)] {
    const RegionTable::Entry entry = weak.lock();
    PV2_ASSERT(entry != nullptr, "a region that closes is in the table");
    entry->region->close([this, entry, closed,
                          post = context_.tasks.poster()](const Result<std::uint64_t>& flushed) {
      post([this, entry, closed, flushed] {
        if (context_.is_ended()) return;
        if (!flushed.ok()) {
          return context_.end(flushed.status().with_context("closing region " + entry->info.id));
        }
        entry->log->flushed(entry->info.id, *flushed);
        table_.remove(entry);
        closed(std::max(*flushed, entry->sequence));
      });
    });
  });
}

void RegionOrders::report_absent(const RemoteOperation& operation, const Report& report) {
  context_.queues.operations.run(
      [operation, report, &context = context_, post = context_.tasks.poster()] {
        const TableDirectories tables(context.files, context.layout);
        const Result<std::uint64_t> highest = tables.max_sequence(operation.region);
        RemoteReport done = report_of(operation);
        done.sequence = std::max(operation.sequence, highest.ok() ? *highest : 0);
        post([report, done] { report(done); });
      });
}

}  // namespace pv2::cluster

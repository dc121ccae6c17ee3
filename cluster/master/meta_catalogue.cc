// SPDX-License-Identifier: Apache-2.0
//
// The queue of writes. Writes that touch different rows go together; one that touches a row of the
// batch before it waits for that batch, because it is checked against what that batch leaves.

#include "master/meta_catalogue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "wire/catalogue_rows.h"

namespace pv2::cluster {
namespace {

// What one batch may have, besides its first write: 512 rows are about 100 KiB, and one sync.
constexpr std::size_t kRowsPerBatch = 512;
constexpr std::size_t kBytesPerBatch = std::size_t{1} << 20;

std::size_t bytes_of(const std::vector<Mutation>& mutations) {
  std::size_t bytes = 0;
  for (const Mutation& mutation : mutations) bytes += mutation.row.size() + mutation.value.size();
  return bytes;
}

bool is_local(const CatalogueWrite& write) {
  return !write.servers.empty() ||
         (!write.regions.empty() && is_meta(write.regions.front().region.table));
}

std::size_t rows_of(const CatalogueWrite& write) {
  return write.namespaces.size() + write.tables.size() + write.regions.size() +
         write.removed_namespaces.size() + write.removed_tables.size() +
         write.removed_regions.size();
}

/// The keys of all rows that a write touches.
std::vector<std::string> keys_of(const CatalogueWrite& write, const CatalogueState& state) {
  std::vector<std::string> keys;
  for (const NamespaceRow& row : write.namespaces) keys.push_back(namespace_row_key(row.name));
  for (const TableRow& row : write.tables) keys.push_back(table_row_key(row.descriptor.name));
  for (const RegionRow& row : write.regions) {
    keys.push_back(region_row_key(row.region.table, row.region.id));
  }
  for (const std::string& name : write.removed_namespaces) keys.push_back(namespace_row_key(name));
  for (const TableName& name : write.removed_tables) keys.push_back(table_row_key(name));
  for (const std::string& id : write.removed_regions) {
    if (const auto row = state.region(id)) keys.push_back(region_row_key(row->region.table, id));
  }
  return keys;
}

/// What the table has to become. Sequences are the greater ones, as CatalogueState keeps them.
void add_mutations(const CatalogueWrite& write, const CatalogueState& state,
                   std::vector<Mutation>& out) {
  const std::string& key = write.effect_key;
  for (const NamespaceRow& row : write.namespaces) {
    out.push_back(put_row(CatalogueState::Kept<NamespaceRow>{row, key}));
  }
  for (const TableRow& row : write.tables) {
    out.push_back(put_row(CatalogueState::Kept<TableRow>{row, key}));
  }
  for (RegionRow row : write.regions) {
    if (const auto old = state.region(row.region.id)) {
      row.open_sequence = std::max(row.open_sequence, old->open_sequence);
    }
    out.push_back(put_row(CatalogueState::Kept<RegionRow>{std::move(row), key}));
  }
  for (const std::string& name : write.removed_namespaces) {
    out.push_back(delete_row(namespace_row_key(name)));
  }
  for (const TableName& name : write.removed_tables) {
    out.push_back(delete_row(table_row_key(name)));
  }
  for (const std::string& id : write.removed_regions) {
    if (const auto row = state.region(id)) {
      out.push_back(delete_row(region_row_key(row->region.table, id)));
    }
  }
}

}  // namespace

MetaCatalogue::MetaCatalogue(std::shared_ptr<Transport> transport, LocalState& local,
                             WorkQueue& files, const Probe& probe, Events events)
    : local_(local),
      files_(files),
      probe_(probe),
      events_(std::move(events)),
      tasks_(std::move(transport)) {
  for (const auto& kept : local_.contents().servers) state_.load(kept);
  if (local_.contents().meta) state_.load(*local_.contents().meta);
}

void MetaCatalogue::begin(MetaTable& table) {
  table_ = &table;
  table.read_all([this](const Result<std::vector<Cell>>& cells) { load(cells); });
}

void MetaCatalogue::load(const Result<std::vector<Cell>>& cells) {
  if (!cells.ok()) return die(cells.status());
  for (const Cell& cell : *cells) {
    if (Status bad = load_cell(cell, state_); !bad.ok()) return die(bad);
  }
  is_online_ = true;
  for (const auto& then : std::exchange(when_online_, {})) then();
  send_batch();
}

void MetaCatalogue::when_online(std::function<void()> then) {
  if (is_online_) return then();
  when_online_.push_back(std::move(then));
}

template <class T, class Read>
void MetaCatalogue::read_rows(ClusterCall call, Completion<Result<T>> done, Read read) {
  probe_.asked(call);
  tasks_.post([this, call, done = std::move(done), read = std::move(read)] {
    when_online([this, call, done, read]() mutable {
      probe_.done(call);
      done(Result<T>(read(state_)));
    });
  });
}

template <class T, class Read>
void MetaCatalogue::read_local(ClusterCall call, Completion<Result<T>> done, Read read) {
  probe_.asked(call);
  tasks_.post([this, call, done = std::move(done), read = std::move(read)]() mutable {
    probe_.done(call);
    done(Result<T>(read(state_)));
  });
}

void MetaCatalogue::read_namespace(std::string name,
                                   Completion<Result<std::optional<NamespaceRow>>> done) {
  read_rows(ClusterCall::kReadNamespace, std::move(done),
            [name = std::move(name)](const CatalogueState& rows) { return rows.name_space(name); });
}
void MetaCatalogue::tables_of(std::string name_space,
                              Completion<Result<std::vector<TableName>>> done) {
  read_rows(
      ClusterCall::kTablesOf, std::move(done),
      [name = std::move(name_space)](const CatalogueState& rows) { return rows.tables_of(name); });
}
void MetaCatalogue::read_table(TableName name, Completion<Result<std::optional<TableRow>>> done) {
  read_rows(ClusterCall::kReadTable, std::move(done),
            [name = std::move(name)](const CatalogueState& rows) { return rows.table(name); });
}
void MetaCatalogue::regions_of(TableName table, Completion<Result<std::vector<RegionRow>>> done) {
  read_rows(
      ClusterCall::kRegionsOf, std::move(done),
      [table = std::move(table)](const CatalogueState& rows) { return rows.regions_of(table); });
}
void MetaCatalogue::read_region(std::string id, Completion<Result<std::optional<RegionRow>>> done) {
  const bool local = id == meta_region().id;
  auto read = [id = std::move(id)](const CatalogueState& rows) { return rows.region(id); };
  if (local) return read_local(ClusterCall::kReadRegion, std::move(done), std::move(read));
  read_rows(ClusterCall::kReadRegion, std::move(done), std::move(read));
}
void MetaCatalogue::regions_on(ServerName server, RegionIds ids,
                               Completion<Result<std::vector<RegionRow>>> done) {
  read_rows(ClusterCall::kRegionsOn, std::move(done),
            [server = std::move(server), ids = std::move(ids)](const CatalogueState& rows) {
              return rows.regions_on(server, ids);
            });
}
void MetaCatalogue::read_server(ServerName name, Completion<Result<ServerRow>> done) {
  read_local(ClusterCall::kReadServer, std::move(done),
             [name = std::move(name)](const CatalogueState& rows) { return rows.server(name); });
}

void MetaCatalogue::write(CatalogueWrite write, Completion<Result<Applied>> done) {
  probe_.asked(ClusterCall::kWrite, write.effect_key);
  if (rows_of(write) > kMutationsMax) {
    return done(Result<Applied>(
        Status(StatusCode::kInvalidArgument, "one write of the catalogue has at most " +
                                                 std::to_string(kMutationsMax) + " rows, not " +
                                                 std::to_string(rows_of(write)))));
  }
  tasks_.post([this, pending = Pending{std::move(write), std::move(done)}] {
    if (is_local(pending.write)) {
      local_waiting_.push_back(pending);
      write_local();
    } else {
      waiting_.push_back(pending);
      // Not at once: what the same round of the loop brings goes along.
      if (waiting_.size() == 1) tasks_.post([this] { send_batch(); });
    }
  });
}

void MetaCatalogue::send_batch() {
  if (!is_online_ || is_sending_ || is_dead_) return;
  std::set<std::string> touched;
  std::vector<Mutation> mutations;
  std::size_t bytes = 0;
  std::vector<Pending> batch;
  std::deque<Pending> later;
  while (!waiting_.empty()) {
    Pending next = std::move(waiting_.front());
    waiting_.pop_front();
    const std::vector<std::string> keys = keys_of(next.write, state_);
    const bool fits = batch.empty() || mutations.size() + keys.size() <= kRowsPerBatch;
    const bool is_free =
        std::ranges::none_of(keys, [&](const std::string& key) { return touched.contains(key); });
    // A write that waits keeps later ones on its rows behind it.
    touched.insert(keys.begin(), keys.end());
    if (!fits || !is_free) {
      later.push_back(std::move(next));
      continue;
    }
    const Result<Applied> verdict = state_.check(next.write);
    const bool is_decided = !verdict.ok() || *verdict == Applied::kBefore || keys.empty();
    if (is_decided) {
      next.done(verdict);
      continue;
    }
    std::vector<Mutation> rows;
    add_mutations(next.write, state_, rows);
    // What the table would refuse must not be sent: it would be sent for ever.
    if (Status bad = check_mutations(rows); !bad.ok()) {
      next.done(bad.with_context("a write of the catalogue"));
      continue;
    }
    const std::size_t more = bytes_of(rows);
    if (!batch.empty() && bytes + more > kBytesPerBatch) {
      later.push_back(std::move(next));
      continue;
    }
    bytes += more;
    std::ranges::move(rows, std::back_inserter(mutations));
    batch.push_back(std::move(next));
  }
  waiting_ = std::move(later);
  if (batch.empty()) {
    // What was decided without a write kept others on its rows waiting.
    if (!waiting_.empty()) tasks_.post([this] { send_batch(); });
    return;
  }
  is_sending_ = true;
  table_->write(std::move(mutations), [this, batch = std::move(batch)](const Status& status) {
    if (!status.ok()) return die(status);
    batch_is_durable(batch);
  });
}

void MetaCatalogue::batch_is_durable(const std::vector<Pending>& batch) {
  is_sending_ = false;
  for (const Pending& pending : batch) {
    state_.record(pending.write);
    probe_.done(ClusterCall::kWrite, pending.write.effect_key);
    pending.done(Result<Applied>(Applied::kNow));
  }
  send_batch();
}

void MetaCatalogue::write_local() {
  if (is_writing_local_ || is_dead_ || local_waiting_.empty()) return;
  Pending next = std::move(local_waiting_.front());
  local_waiting_.pop_front();
  const Result<Applied> verdict = state_.check(next.write);
  if (!verdict.ok() || *verdict == Applied::kBefore) {
    next.done(verdict);
    return write_local();
  }
  is_writing_local_ = true;
  CatalogueState after;
  LocalContents contents = local_.contents();
  for (const auto& kept : contents.servers) after.load(kept);
  if (contents.meta) after.load(*contents.meta);
  after.record(next.write);
  contents.servers.clear();
  for (const auto& [name, kept] : after.servers()) contents.servers.push_back(kept);
  for (const auto& [id, kept] : after.regions()) contents.meta = kept;
  files_.run([this, contents = std::move(contents), next = std::move(next)] {
    const Status written = local_.replace(contents);
    tasks_.post([this, written, next] {
      if (!written.ok()) return die(written);
      local_is_durable(next);
    });
  });
}

void MetaCatalogue::local_is_durable(const Pending& pending) {
  is_writing_local_ = false;
  state_.record(pending.write);
  for (const ServerRow& row : pending.write.servers) events_.server_changed(row);
  for (const RegionRow& row : pending.write.regions) events_.meta_changed(row);
  Completion<Result<Applied>> done = pending.done;
  probe_.done(ClusterCall::kWrite, pending.write.effect_key);
  done(Result<Applied>(Applied::kNow));
  write_local();
}

void MetaCatalogue::die(const Status& why) {
  if (std::exchange(is_dead_, true)) return;
  events_.on_fatal(why);
}

}  // namespace pv2::cluster

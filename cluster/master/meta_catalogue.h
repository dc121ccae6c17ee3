// SPDX-License-Identifier: Apache-2.0
//
// MetaCatalogue: the port Catalogue in a real cluster. All rows are in memory, because this master
// is the only one that writes them. A write becomes durable first, in the catalogue's table on the
// server that hosts it, or in the master's own file; then the rows in memory change, and then the
// writer is told.
//
//     begin -> [the catalogue's region has a host] -> read all rows -> online
//
// Invariants:
// - A reader sees durable rows only.
// - One batch is under way to the table at a time. It has each row once, so each of its writes was
//   checked against the durable row that it replaces.
// - Before it is online, calls about rows of the table wait; those about rows of the master's file
//   (dead servers, the catalogue's own region) never do: they are what brings it online.
//
// How it fails: a write that exceeds what a write of a table may have is answered with
// kInvalidArgument, and the others go on. When the table will not take a write that was checked, or
// the file cannot be written, `on_fatal` is called once, and no call is answered any more.

#pragma once

#include <pv2/procedures/catalogue.h>
#include <pv2/procedures/catalogue_state.h>

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "master/local_state.h"
#include "master/meta_table.h"
#include "master/probe.h"
#include "storage/work_queue.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// The port may be called from any thread; the rest is used on the loop.
class MetaCatalogue final : public Catalogue {
 public:
  struct Events {
    /// A row of a server, or of the catalogue's region, has changed.
    std::function<void(const ServerRow&)> server_changed;
    std::function<void(const RegionRow&)> meta_changed;
    std::function<void(const Status&)> on_fatal;
  };

  /// `files` runs what writes the master's file. All references outlive this.
  MetaCatalogue(std::shared_ptr<Transport> transport, LocalState& local, WorkQueue& files,
                const Probe& probe, Events events);

  /// Reads the table as soon as it has a host, and is online then. `table` outlives this.
  void begin(MetaTable& table);
  [[nodiscard]] bool is_online() const noexcept { return is_online_; }
  /// What is durable now. Without the rows of the table while it is not online.
  [[nodiscard]] const CatalogueState& rows() const noexcept { return state_; }
  /// Calls `then` when it is online, at once if it is.
  void when_online(std::function<void()> then);
  /// From now on nothing is called any more.
  void end() { tasks_.end(); }

  // Catalogue
  void read_namespace(std::string name,
                      Completion<Result<std::optional<NamespaceRow>>> done) override;
  void tables_of(std::string name_space, Completion<Result<std::vector<TableName>>> done) override;
  void read_table(TableName name, Completion<Result<std::optional<TableRow>>> done) override;
  void regions_of(TableName table, Completion<Result<std::vector<RegionRow>>> done) override;
  void read_region(std::string id, Completion<Result<std::optional<RegionRow>>> done) override;
  void regions_on(ServerName server, RegionIds ids,
                  Completion<Result<std::vector<RegionRow>>> done) override;
  void read_server(ServerName name, Completion<Result<ServerRow>> done) override;
  void write(CatalogueWrite write, Completion<Result<Applied>> done) override;

 private:
  struct Pending {
    CatalogueWrite write;
    Completion<Result<Applied>> done;
  };

  /// Of the table: waits until the catalogue is online.
  template <class T, class Read>
  void read_rows(ClusterCall call, Completion<Result<T>> done, Read read);
  /// Of the master's file.
  template <class T, class Read>
  void read_local(ClusterCall call, Completion<Result<T>> done, Read read);

  void load(const Result<std::vector<Cell>>& cells);
  void send_batch();
  void batch_is_durable(const std::vector<Pending>& batch);
  void write_local();
  void local_is_durable(const Pending& pending);
  void die(const Status& why);

  LocalState& local_;
  WorkQueue& files_;
  const Probe& probe_;
  const Events events_;
  MetaTable* table_ = nullptr;

  CatalogueState state_;
  bool is_online_ = false;
  bool is_dead_ = false;
  std::vector<std::function<void()>> when_online_;
  std::deque<Pending> waiting_;        // for the table
  std::deque<Pending> local_waiting_;  // for the file
  bool is_sending_ = false;
  bool is_writing_local_ = false;
  LoopTasks tasks_;
};

}  // namespace pv2::cluster

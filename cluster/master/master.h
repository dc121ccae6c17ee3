// SPDX-License-Identifier: Apache-2.0
//
// Master: the master as an object, over the transport, clock, files and store that it is given: so
// it runs in a process of its own (master_process.cc) and in a simulation on one thread. It puts
// the parts together and starts them in the right order:
//
//     load the procedures -> write down the next epoch -> listen -> tell the address
//         -> InitMeta, if there is no catalogue -> run the procedures -> read the catalogue
//
// Procedures that need the catalogue's rows wait until they are read; those that bring its region
// online do not need them.
//
// How it fails: when a later master was heard of, or a file or the store fails, it calls `on_end`
// once. From then on nothing that it does counts.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/status.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/procedures/catalogue_state.h>
#include <pv2/rpc/transport.h>
#include <pv2/store/procedure_store.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pv2/cluster/master.h"
#include "pv2/cluster/server_list.h"
#include "storage/file_tree.h"
#include "storage/work_queue.h"

namespace pv2::cluster {

/// What a master runs on. The files and queues outlive it. Queues with threads are ended, and
/// manual ones cleared, before the master is destroyed; but for `peer_looks`, whose work may hang.
struct MasterGround {
  std::shared_ptr<Transport> transport;
  std::shared_ptr<Clock> clock;
  const FileTree& files;
  /// For the directories of tables, which have many files: work may take minutes.
  WorkQueue& table_work;
  /// For what the recovery of a server waits for: the directories of logs, the master's own file,
  /// peers and their queues. Short work.
  WorkQueue& recovery_work;
  WorkQueue& link_work;  ///< Ends connections. Short work.
  /// For what reads directories of other clusters, whose file systems may hang. With several
  /// threads: each directory that hangs keeps one.
  WorkQueue& peer_looks;
  std::unique_ptr<ProcedureStore> store;
  /// Called once, on the loop, when the master ends itself. It may not destroy the master.
  std::function<void(const Status&)> on_end;
  std::uint64_t seed = 0x5eed;  ///< Of the executor.
};

/// Thread-safe, except construction and destruction.
class Master {
 public:
  /// Blocks on disk, but not until the catalogue is online.
  [[nodiscard]] static Result<std::unique_ptr<Master>> start(MasterOptions options,
                                                             MasterGround ground);
  /// A thread of the transport's own must not destroy it. Stops the executor.
  ~Master();
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

  [[nodiscard]] const std::string& address() const noexcept;
  [[nodiscard]] std::uint64_t epoch() const noexcept;
  [[nodiscard]] ProcedureExecutor& executor() noexcept;
  /// Whether the rows of the catalogue are read.
  [[nodiscard]] bool is_online() const;
  /// What master.servers answers.
  [[nodiscard]] ServerList servers() const;
  /// The rows that are durable; those of the table only while it is online. For a simulation: used
  /// on the loop, and valid until the loop goes on.
  [[nodiscard]] const CatalogueState& rows() const;

 private:
  struct Parts;
  explicit Master(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace pv2::cluster

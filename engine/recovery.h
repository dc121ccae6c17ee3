// SPDX-License-Identifier: Apache-2.0
//
// Recovery: from the rows of a store to executions that can go on.
//
//     store --rows--> chunks --RecordReader, side by side--> executions --in order of id--> link,
//     take the locks of those that held them --when all are there--> queue, holders first
//
// Ids grow from parent to child, so "in order of id" is "ancestors first". A tree that cannot be
// understood is quarantined with its locks. Nothing runs, and nothing on disk changes, before all
// of it was read. Results that are kept are not read, however many there are; only a limit on them
// (RetentionPolicy) has their dates counted.

#pragma once

#include <deque>
#include <future>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine_core.h"
#include "record_reader.h"
#include "row_chunk.h"
#include "schema_rows.h"

namespace pv2 {

/// Used once, by open(). Owned by one thread.
class Recovery {
 public:
  explicit Recovery(EngineCore& core);

  /// Fills the engine's state. A failure leaves the store as it was; what is in the table of live
  /// executions by then is the caller's.
  Status load(Effects& effects);

 private:
  Status read_engine_rows();
  Status read(const StoredRow& row);
  void read_chunk(std::launch where);
  Status link_oldest();
  /// Asks the store about the roots of which `read` has descendants and nobody has seen rows.
  Status find_ended_roots(const ReadRecords& read);
  [[nodiscard]] bool has_ended(ProcedureId root) const;
  void forget(const LoadedProcedure& loaded);
  void set_aside(std::vector<UnreadableRecord> records) PV2_REQUIRES(core_.state_mutex);
  void freeze_relatives() PV2_REQUIRES(core_.state_mutex);
  void tell_of_unreadable(Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void go_on_with(LoadedProcedure& loaded) PV2_REQUIRES(core_.state_mutex);
  [[nodiscard]] bool is_over_by_record(const LoadedProcedure& loaded)
      PV2_REQUIRES(core_.state_mutex);
  void link(Execution& execution, LoadedProcedure& loaded) PV2_REQUIRES(core_.state_mutex);
  Execution* root_of(const Execution& execution, const LoadedProcedure& loaded)
      PV2_REQUIRES(core_.state_mutex);
  /// Refuses a type of which live records have fields that mean something else now.
  Status check_schemas(Effects& effects) PV2_REQUIRES(core_.state_mutex);
  [[nodiscard]] bool is_live(const ProcedureType& type) PV2_REQUIRES(core_.state_mutex);
  Status find_lost_nonces();
  /// Reads the dates of results, where somebody needs them.
  Status read_dates();
  void restore_locks(Execution& execution, LoadedProcedure& loaded) PV2_REQUIRES(core_.state_mutex);
  void collect_garbage(Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void quarantine(Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void queue_all(Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void queue_tree(Execution& root, Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void drop_late_signals(Execution& root, Effects& effects) PV2_REQUIRES(core_.state_mutex);
  bool joins_make_sense(Execution& root, Effects& effects) PV2_REQUIRES(core_.state_mutex);

  EngineCore& core_;
  const std::size_t side_by_side_;  // how many chunks are read at once
  RowChunk chunk_;
  // Both clocks at one moment, as reading may take long: timed waits go on from here.
  const SteadyTime began_;
  const WallTime began_at_;
  ProcedureId last_in_chunk_;
  std::deque<std::future<Result<ReadRecords>>> reading_;  // oldest first
  FlatMap<ProcedureId, bool> ended_roots_;  // whether; of those about which the store was asked
  std::vector<EndedRoot> undated_;          // of older programs: no row says when they ended
  std::vector<std::string> stale_dates_;    // keys of such rows, whose results are gone
  FlatMap<ProcedureId, std::vector<ProcedureId>> garbage_;
  FlatMap<ProcedureId, bool> pruned_;  // ended with a domain in a tree that goes on
  FlatMap<ProcedureId, std::vector<ProcedureId>> pruned_rows_;   // by root, parents first
  std::set<std::pair<ProcedureId, std::uint64_t>> late_orders_;  // whose root had ended
  std::vector<std::string> orphans_;                     // keys of messages to whom nobody is left
  std::vector<std::pair<Execution*, Status>> problems_;  // why trees have to be quarantined
  std::vector<Execution*> roots_;
  FlatMap<ProcedureId, CommitSequence> recorded_;  // of members that may be in the middle of a step
  ProcedureId highest_;
  std::map<std::string, SchemaRows, std::less<>> schemas_;  // by type, as they are stored
};

}  // namespace pv2

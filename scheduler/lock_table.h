// SPDX-License-Identifier: Apache-2.0
//
// LockTable: the holders and waiters of every key. A lock set is taken all or nothing; one
// predicate, may_take(), decides whether it may be taken. When a lock is released, the waiters it
// may concern are asked again in order of arrival, and those that may take their sets get them at
// once: a waiter is granted its locks, never merely told to try again. The table knows nothing of
// queues, and it never blocks. The rules in words: docs/scheduling.md.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/extendible_set.h>
#include <pv2/base/resource.h>
#include <pv2/base/status.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lock_listing.h"
#include "lock_node.h"
#include "pv2/scheduler/procedure_scheduler.h"
#include "pv2/scheduler/scheduler_entry.h"
#include "pv2/scheduler/wait_cycle.h"
#include "wait_search.h"

namespace pv2 {

/// Guarded by its scheduler's mutex. meet() comes before every other call for an entry.
class LockTable {
 public:
  LockTable() = default;
  ~LockTable();
  LockTable(const LockTable&) = delete;
  LockTable& operator=(const LockTable&) = delete;

  /// Resolves the keys of `entry` to nodes, which live until forget(), and gives it a rank.
  void meet(SchedulerEntry& entry, std::uint16_t own_rank);
  /// Drops the nodes of `entry`, which must neither hold nor wait.
  void forget(SchedulerEntry& entry);

  /// Takes the set of `entry` if a newcomer may take it.
  bool take(SchedulerEntry& entry, SteadyTime now);
  /// Takes the set unless another entry holds a part of it; waiters do not matter. A failure names
  /// the obstacle.
  Status restore(SchedulerEntry& entry, SteadyTime now);
  /// Makes `entry` the last waiter on each of its keys.
  void wait(SchedulerEntry& entry, SteadyTime now);
  /// Takes `entry` out of the lines for all its keys.
  void cancel(SchedulerEntry& entry, SteadyTime now);
  void release(SchedulerEntry& entry, SteadyTime now);
  /// Whether `entry`, if it gave its set back now, would have to wait for it behind another entry.
  [[nodiscard]] bool contended(const SchedulerEntry& entry) const noexcept;

  /// Begins a critical section: in each, at most kServedMax waiters are asked whether they may take
  /// their sets. owes() says whether more are to be asked; serve_rest() asks them, in sections of
  /// its own.
  void begin_section() noexcept { room_ = kServedMax; }
  [[nodiscard]] bool owes() const noexcept { return owes_; }
  void serve_rest() { serve_concerned(owed_since_); }
  /// 256: a grant is a few cache misses, together about 0.1 ms.
  static constexpr std::size_t kServedMax = 256;

  /// Waiters that the calls above granted their sets; the caller empties the list.
  [[nodiscard]] EntryList& granted() noexcept { return granted_; }
  /// Entries in the ready queue whose rank has changed, some perhaps listed twice; the caller
  /// empties it.
  [[nodiscard]] std::vector<SchedulerEntry*>& reranked() noexcept { return reranked_; }
  /// How often a polled entry was lent a higher class than it was polled in: an urgent entry waits
  /// for its locks, and so for what stands before it in its worker's run.
  [[nodiscard]] std::uint64_t lifts_of_polled() const noexcept { return lifts_of_polled_; }

  /// The node of the entry's primary key; null for an empty set.
  [[nodiscard]] static LockNode* entity(const SchedulerEntry& entry) noexcept;

  /// Allows at most `limit` holders of `key` at once; LockNode::kNoLimit allows any number.
  void set_limit(const ResourceKey& key, std::uint32_t limit, SteadyTime now);

  /// Records that `waiter` waits for something that `producer` has to do, until
  /// end_reported_wait().
  void report_wait(SchedulerEntry& waiter, SchedulerEntry& producer, WaitLink::Why why,
                   SteadyTime now);
  void end_reported_wait(SchedulerEntry& waiter);

  /// Whether the calls above may have closed a cycle since the last search began.
  [[nodiscard]] bool suspects_cycles() const noexcept { return suspects_cycles_; }
  /// A search for cycles, in sections between which any other call may be made. begin() starts it;
  /// copy_waits() copies the waits; confirm() checks that the members that keep a cycle through a
  /// limit closed still wait; adopt() keeps the cycles that stand; end() ends it. copy_waits(),
  /// confirm() and end() return whether there is more to do. Each call looks at kSectionMax at
  /// most, adopt() and verify() at the cycles that were found.
  void begin(WaitSearch& search);
  bool copy_waits(WaitSearch& search);
  bool confirm(WaitSearch& search) const;
  void adopt(WaitSearch& search);
  bool end(WaitSearch& search);
  /// Removes from `search.found` the cycles that do not stand now.
  void verify(WaitSearch& search);
  /// Whether cycles were found since the last take_closed_cycles().
  [[nodiscard]] bool has_closed_cycles() const noexcept { return untold_cycles_ != 0; }
  [[nodiscard]] std::vector<WaitCycle> take_closed_cycles();

  /// How many times a waiter, a holder or a key was looked at: what the calls above cost.
  [[nodiscard]] std::uint64_t looks() const noexcept { return looks_; }

  /// Recomputes all counts, follows all links, and ends the process if one differs from what is
  /// kept. Looks at all entries: lock_table_audit.cc.
  void check_invariants() const;

  /// Adds to `place` at most `most` of the entries that `entry` waits for: lock_table_blockers.cc.
  void blockers_of(const SchedulerEntry& entry, std::size_t most, QueuePlace& place) const;

  /// The calls above move an open cursor on. A cursor is closed before it is destroyed.
  void open(TableCursor& cursor);
  void close(TableCursor& cursor);
  /// Copies the next keys and parties, together at most kSectionMax. Returns whether there is more.
  bool copy_section(TableCursor& cursor, LockListing& listing) const;

 private:
  struct Probe {
    const ResourceKey& key;
    std::uint32_t hash;
  };
  struct NodeHash {
    using is_transparent = void;
    using is_avalanching = void;
    std::size_t operator()(const LockNode* node) const noexcept { return spread(node->hash); }
    std::size_t operator()(const Probe& probe) const noexcept { return spread(probe.hash); }
    /// The set looks at the first bits and at the last ones.
    static std::size_t spread(std::uint32_t hash) noexcept {
      return std::size_t{hash} << 32 | hash;
    }
  };
  struct NodeEqual {
    using is_transparent = void;
    bool operator()(const LockNode* a, const LockNode* b) const noexcept { return a == b; }
    bool operator()(const Probe& a, const LockNode* b) const noexcept { return a.key == b->key; }
    bool operator()(const LockNode* a, const Probe& b) const noexcept { return a->key == b.key; }
  };
  /// A list of waiters that an event may concern, and how far they have been asked.
  struct Cursor {
    LockNode* node;
    Kin kin;
    LockMode mode;
    LockRecordList::iterator at;
  };

  [[nodiscard]] static std::span<const std::uintptr_t> links_of(
      const SchedulerEntry& entry) noexcept;
  [[nodiscard]] static bool waits(const SchedulerEntry& entry) noexcept {
    return entry.locks_ != nullptr && entry.locks_->has_blocks() && !entry.holds_locks_;
  }
  [[nodiscard]] static std::uint64_t ticket_of(const SchedulerEntry& waiter) noexcept {
    return waiter.locks_->known_.blocks->ticket;
  }
  /// The mode in which `entry` asks for the key of `node`, if that is one of its keys.
  [[nodiscard]] static std::optional<LockMode> mode_at(const SchedulerEntry& entry,
                                                       const LockNode& node) noexcept;
  [[nodiscard]] static bool holds(const SchedulerEntry& entry, const LockNode& node,
                                  LockMode mode) noexcept {
    if (!entry.holds_locks_) return false;
    const std::optional<LockMode> held = mode_at(entry, node);
    return held && *held >= mode;
  }
  [[nodiscard]] static bool covered(const SchedulerEntry& entry, const LockNode& node,
                                    LockMode mode) noexcept;
  [[nodiscard]] static bool has_holding_ancestor(const SchedulerEntry& entry) noexcept;
  [[nodiscard]] bool is_undone(const SchedulerEntry& head) const noexcept;
  [[nodiscard]] bool is_waited_for_to_be_undone(const SchedulerEntry& entry) const noexcept;
  /// Whether `head` or one of its descendants waits in line.
  [[nodiscard]] static bool stands_in_line_below(const SchedulerEntry& head) noexcept {
    return head.waiting_descendants_ != 0 || waits(head);
  }
  [[nodiscard]] bool passes_waiters(const SchedulerEntry& entry) const noexcept {
    return has_holding_ancestor(entry) || is_waited_for_to_be_undone(entry);
  }
  [[nodiscard]] const LockNode* obstacle(const SchedulerEntry& entry,
                                         std::uint64_t ticket) const noexcept;
  [[nodiscard]] bool may_take(const SchedulerEntry& entry, std::uint64_t ticket) const noexcept {
    return obstacle(entry, ticket) == nullptr;
  }

  [[nodiscard]] static bool place_is_wanted(const SchedulerEntry& entry, const LockNode& node,
                                            std::size_t i) noexcept;
  [[nodiscard]] bool slot_for(const SchedulerEntry& entry, const LockNode& node,
                              std::uint64_t ticket, bool passes_waiters) const noexcept;

  [[nodiscard]] static Kin kin_of(const SchedulerEntry& entry) noexcept;

  void find_nodes(EntryLocks& locks) noexcept;
  /// Takes the name if the key is new.
  LockNode& node_for(ResourceKey&& key);
  void drop(LockNode& node);
  void erase(LockRecordList& list, LockRecord& record) {
    if (!cursors_.empty()) move_cursors_from(record, list);
    if (owes_) move_concerned_from(record);
    list.erase(list.iterator_to(record));
  }
  enum class At : std::uint8_t { kHeldKeys, kAllKeys };
  static void make_contests(const SchedulerEntry& entry, At at);
  void hold(SchedulerEntry& entry, SteadyTime now);
  void unlink_hold(SchedulerEntry& entry);
  void hold_as_newcomer(SchedulerEntry& entry, SteadyTime now);
  [[nodiscard]] static bool at_a_limit(const SchedulerEntry& entry) noexcept;
  void grant(SchedulerEntry& entry, SteadyTime now);
  void unlink_waits(SchedulerEntry& entry);
  void let_pass(SchedulerEntry& head, SteadyTime now);
  void stand_with_nested(SchedulerEntry& entry);
  void concern(LockNode& node, LockMode mode);
  [[nodiscard]] static bool exhausted(const Cursor& cursor) noexcept;
  void serve_concerned(SteadyTime now);
  void move_concerned_from(const LockRecord& record);
  void forget_concerned(const LockNode& node);
  void ask_below(SchedulerEntry& head);
  [[nodiscard]] LockBlock* new_blocks(SchedulerEntry& entry, std::uint64_t ticket);
  void add_blocks();
  void recycle(LockBlock* blocks, std::size_t records);
  static constexpr std::size_t blocks_for(std::size_t records) noexcept {
    return (records + LockBlock::kRecords - 1) / LockBlock::kRecords;
  }
  /// The record of an entry that holds or waits at the i-th of its keys.
  [[nodiscard]] static LockRecord& record_of(const SchedulerEntry& entry, std::size_t i) noexcept {
    return entry.locks_->known_.blocks[i / LockBlock::kRecords].records[i % LockBlock::kRecords];
  }
  /// Whether `record` is for the first key of its entry: each entry has one such record.
  [[nodiscard]] static bool is_first(const LockRecord& record) noexcept {
    return &record == record.entry().locks_->known_.blocks->records;
  }

  // Ranks: lock_table_ranks.cc.
  /// The number of entries with each rank, in order of rank: a handful of pairs.
  using RankCounts = std::vector<std::pair<std::uint16_t, std::size_t>>;
  static void count_rank(RankCounts& ranks, std::uint16_t rank);
  static void uncount_rank(RankCounts& ranks, std::uint16_t rank);
  void lift(SchedulerEntry& entry, std::uint16_t rank);
  void lift_all();
  [[nodiscard]] std::uint16_t rank_lent_outside_lines(const SchedulerEntry& entry) const;
  [[nodiscard]] std::uint16_t rank_lent_in_lines(const SchedulerEntry& holder);
  void lend_in_line(LockNode& node);
  void lift_those_ahead(const SchedulerEntry& waiter);
  [[nodiscard]] bool may_lend(SchedulerEntry& waiter, const SchedulerEntry& producer);
  void add_borrowers(std::vector<SchedulerEntry*>& borrowers);
  void rank_anew(const std::vector<SchedulerEntry*>& entries);
  /// Whether all known entries have the same rank: then no rank is lent.
  [[nodiscard]] bool one_rank() const noexcept { return ranks_.size() <= 1; }
  void set_rank(SchedulerEntry& entry, std::uint16_t rank);

  struct PartyAt {
    const LockRecord& record;
    bool holds;
  };
  [[nodiscard]] static std::optional<PartyAt> next_party(TableCursor& cursor);
  static void next_key(TableCursor& cursor);
  bool copy_lines(TableCursor& cursor, LockListing& listing, std::size_t parties_max) const;
  void move_cursors_from(const LockNode& node);
  void move_cursors_from(const LockRecord& record, const LockRecordList& list);

  [[nodiscard]] std::span<SchedulerEntry* const> reporters_of(const SchedulerEntry& producer) const;

  void erase_report(const SchedulerEntry& waiter);

  // Cycles: lock_table_cycles.cc.
  void link_nested(SchedulerEntry& entry);
  void unlink_nested(SchedulerEntry& entry);
  std::pair<WaitGraph::Index, bool> add_member(WaitSearch& search,
                                               const SchedulerEntry& entry) const;
  void copy_party(WaitSearch& search) const;
  void follow(WaitSearch& search) const;
  void add_want(WaitSearch& search, const SchedulerEntry& entry, LockLink link) const;
  static void copy_line(WaitSearch& search, WaitGraph::Index line, std::size_t number);
  [[nodiscard]] bool is_still_in_line(const WaitSearch& search,
                                      const WaitGraph::Member& member) const;
  [[nodiscard]] bool goes_on(const WaitSearch& search, const WaitGraph::Member& member) const;
  [[nodiscard]] bool stands(const WaitSearch& search, const WaitGraph::FoundCycle& found) const;
  [[nodiscard]] bool is_still_so(const WaitSearch& search, const WaitLink& link,
                                 const WaitGraph::Member& waiter, const WaitGraph::Member& awaited,
                                 const LockNode* node) const;
  [[nodiscard]] bool waits_for_child(const SchedulerEntry& one, const SchedulerEntry& other) const;
  [[nodiscard]] bool waits_for(const SchedulerEntry& one, const SchedulerEntry& other,
                               WaitLink::Why why, const LockNode* node) const;
  void forget_standing_that_opened(const WaitSearch& search);
  [[nodiscard]] bool waits_for_its_turn(const SchedulerEntry& entry) const;
  /// An entry that waits for one of its descendants, or as was reported, may be in a cycle now.
  void suspect_if_it_waits(const SchedulerEntry& entry) {
    const bool reported =
        !reported_.empty() && (entry.first_known_child() != nullptr || reported_.contains(&entry));
    if (entry.waiting_descendants_ != 0 || reported) suspects_cycles_ = true;
  }
  void open_cycles_with(const SchedulerEntry& entry) {
    if (!standing_.empty()) forget_cycles_with(entry);
  }
  void forget_cycles_with(const SchedulerEntry& entry);

  ExtendibleSet<boost::unordered_flat_set<LockNode*, NodeHash, NodeEqual>> nodes_;
  // The same nodes in the order in which they became known, for walks made in sections.
  using Keys = boost::intrusive::list<LockNode, boost::intrusive::constant_time_size<false>>;
  Keys known_;
  std::vector<TableCursor*> cursors_;
  // The Kin::kNested waiters, in the order in which they joined: each cycle has one, or a reported
  // wait.
  SchedulerEntry* first_nested_ = nullptr;
  SchedulerEntry* last_nested_ = nullptr;
  std::vector<WaitSearch*> searches_;  // begun and not ended
  std::uint64_t last_ticket_ = 0;
  EntryList granted_;
  std::vector<Cursor> concerned_;
  // Waiters that are asked themselves, whatever cursors stand on them, by their tickets.
  std::map<std::uint64_t, SchedulerEntry*> asked_;
  std::size_t room_ = kServedMax;  // how many more waiters may be asked in this section
  SteadyTime owed_since_;
  bool owes_ = false;  // waiters in `concerned_` or `asked_` are left for the next section
  // Single blocks are cut from the chunks; an entry that needs several has them allocated for it.
  std::vector<LockBlock*> free_blocks_;
  std::vector<std::unique_ptr<LockBlock[]>> block_chunks_;
  boost::unordered_flat_set<LockBlock*> many_blocks_;
  RankCounts ranks_;                     // own ranks
  std::vector<SchedulerEntry*> lifted_;  // not handled yet by lift_all()
  // For lift_all(): each holder, and each waiter before the ticket `before`, has at least `rank`.
  struct LiftedLine {
    std::uint16_t rank = 0;
    std::uint64_t before = 0;
  };
  boost::unordered_flat_map<const LockNode*, LiftedLine> lifted_lines_;
  std::vector<SchedulerEntry*> reranked_;
  std::uint64_t lifts_of_polled_ = 0;
  struct ReportedWait {
    SchedulerEntry* producer;
    WaitLink::Why why;
    SteadyTime since;
    std::size_t place;    // among the producer's reporters
    std::size_t number;   // in reported_order_
    std::uint64_t stamp;  // order among reported waits and tickets
  };
  boost::unordered_flat_map<const SchedulerEntry*, ReportedWait> reported_;
  // The same waiters in an order, for walks made in sections, from the last to the first.
  std::vector<SchedulerEntry*> reported_order_;
  struct Reporters {
    std::vector<SchedulerEntry*> waiters;
    std::size_t turns = 0;  // how many of them wait for a turn
    RankCounts ranks;       // theirs, with what was lent to them
  };
  // The inverse: the waiters of each producer.
  boost::unordered_flat_map<const SchedulerEntry*, Reporters> reporters_;
  std::size_t turns_ = 0;   // how many in reported_ wait for a turn in a rollback
  std::size_t limits_ = 0;  // keys that have a limit
  std::uint64_t limit_changes_ = 0;
  /// A cycle that was found and has not been opened since: it stands, or a search is due.
  struct StandingCycle {
    /// The waiter of a link, and the key in whose line it waits. The key is known as long as the
    /// waiter is, and forgetting the waiter opens its cycles.
    struct Party {
      const SchedulerEntry* entry;
      const LockNode* node;
    };
    WaitCycle cycle;
    std::vector<Party> parties;
    bool through_a_limit = false;
    bool told = false;
  };
  [[nodiscard]] bool stands(const StandingCycle& standing) const;
  /// Returns whether any were dropped.
  template <class Keep>
  bool drop_standing_unless(Keep&& keep);
  void check_holders(const LockNode& node,
                     boost::unordered_flat_set<const SchedulerEntry*>& entries) const;
  std::size_t check_waiters(
      const LockNode& node, boost::unordered_flat_set<const SchedulerEntry*>& entries,
      boost::unordered_flat_map<const SchedulerEntry*, std::uint32_t>& descendants) const;
  void check_reports() const;
  void check_standing() const;
  std::vector<StandingCycle> standing_;
  std::size_t standing_at_limits_ = 0;  // those of them through a limit
  std::size_t untold_cycles_ = 0;
  bool suspects_cycles_ = false;
  mutable std::uint64_t looks_ = 0;
};

}  // namespace pv2

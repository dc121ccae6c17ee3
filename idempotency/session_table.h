// SPDX-License-Identifier: Apache-2.0
//
// SessionTable: what is known of all sessions, and the rules by which a request is answered.
//
// A session's mark (first_unacked) moves in memory as soon as the client says so, and in the store
// with the next batch of the session: that batch deletes, in the same unit, the rows of the
// responses below it. One such batch is on its way at a time, so marks become durable in order, and
// the durable mark is never above a response that the store still lacks. A request below the mark
// is stale whether or not the mark is durable. After a crash the durable mark and the rows above it
// say the same again of each request that was done. One that was refused has no row: if it lies
// between the durable mark and the mark in memory, a late copy of it runs after the crash.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/mutex.h>
#include <pv2/base/status.h>
#include <pv2/base/waiting_threads.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/idempotency/client_sessions.h"
#include "session_rows.h"

namespace pv2 {

/// Thread-safe.
class SessionTable : public std::enable_shared_from_this<SessionTable> {
 public:
  /// A copy of a running request.
  struct Waiter {
    std::uint64_t ticket = 0;
    std::optional<WallTime> deadline;
    ClientSessions::Answer answer;
  };
  using Waiters = std::deque<Waiter>;
  /// What a client asks to open: its token, which is unique among those of one owner.
  struct Asker {
    std::string token;
    std::string owner;
    friend auto operator<=>(const Asker&, const Asker&) = default;
  };

  SessionTable(RowLog& log, SessionOptions options);
  Status load();

  using Opened = std::function<void(Result<Session>)>;
  void open(Asker asker, std::uint32_t window, Opened answer);
  void close(SessionId id, std::string_view owner, std::function<void(Status)> answer);
  /// Answers at once, or has `waiter` wait for the running copy, or returns nothing because there
  /// is no waiter.
  std::optional<SessionAnswer> decide(const SessionRequest& request, Waiter* waiter);
  bool cancel(SessionId id, std::uint64_t number, std::uint64_t ticket);
  Status heartbeat(SessionId id, std::string_view owner, std::uint64_t first_unacked);
  void maintain(std::function<void(Status)> done);
  void stop();

  // Of the owner of a request. save() returns the mark that `effect` makes durable, or 0.
  [[nodiscard]] std::uint64_t save(SessionId id, std::uint64_t number,
                                   const SavedResponse& response, RowBatch& effect);
  void done(SessionId id, std::uint64_t number, SavedResponse response, std::uint64_t mark);
  /// `mark` becomes 0 when it is taken back. If this or done() throws, for want of memory, the
  /// request runs on.
  void refuse(SessionId id, std::uint64_t number, std::uint64_t& mark);
  void said_nothing(SessionId id, std::uint64_t number, std::uint64_t mark);
  /// Recovery knows what became of an unknown request. False: the request is not unknown.
  bool resolve_done(SessionId id, std::uint64_t number, Response response);
  bool resolve_not_done(SessionId id, std::uint64_t number);

  [[nodiscard]] Clock& clock() const noexcept { return *options_.clock; }
  [[nodiscard]] std::uint64_t new_ticket() noexcept { return next_ticket_.fetch_add(1); }
  [[nodiscard]] std::size_t live() const PV2_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t responses() const PV2_EXCLUDES(mutex_);
  /// The answer to a copy that waits no longer.
  [[nodiscard]] static SessionAnswer in_progress(const SessionRequest& request);

 private:
  struct Request {
    enum class State : std::uint8_t { kRunning, kDone, kUnknown };
    Hash128 fingerprint;
    State state = State::kRunning;
    SavedResponse response;
    std::unique_ptr<Waiters> waiters;  ///< Most have none.
    std::uint64_t moves_mark_to = 0;   ///< Of an unknown one: with its batch.
  };
  struct Live {
    enum class State : std::uint8_t { kOpening, kLive, kEnding };
    SessionRow row;  ///< With the mark as the client has said it.
    State state = State::kLive;
    std::uint64_t durable_mark = 1;
    bool mark_is_moving = false;  ///< A batch on its way makes a mark durable.
    std::uint32_t running = 0;    ///< Requests without an outcome: running or unknown.
    std::size_t bytes = 0;        ///< Of the responses in `requests`.
    SteadyTime heard{};
    std::map<std::uint64_t, Request> requests;  ///< Running, or with a response above the mark.
    std::vector<std::uint64_t> superfluous;     ///< Responses below the mark that have rows.
    std::vector<std::uint64_t> being_erased;    ///< By the batch that moves the mark.
    std::vector<Opened> openers;                ///< While it is being opened.
  };
  /// What maintain() does to a session.
  struct Change {
    SessionId id;
    std::uint64_t mark = 0;  ///< That becomes durable; 0: the session ends.
    RowBatch batch;
  };
  /// What one section of maintain() has begun.
  struct Section {
    std::vector<Change> changes;
    std::optional<std::uint64_t> next;  ///< Where it goes on; nullopt: that was the last session.
  };
  struct Opening {
    Asker asker;
    std::uint32_t window;
    Opened answer;
  };

  /// Holds the mutex for a scope, and counts among those that wait for it until it has it.
  class PV2_SCOPED_CAPABILITY TableLock {
   public:
    explicit TableLock(const SessionTable& table) PV2_ACQUIRE(table.mutex_) : table_(table) {
      table.waiting_.lock(table.mutex_);
    }
    ~TableLock() PV2_RELEASE() { table_.mutex_.unlock(); }
    TableLock(const TableLock&) = delete;
    TableLock& operator=(const TableLock&) = delete;

   private:
    const SessionTable& table_;
  };

  RequestOwner take_unknown(SessionId id, std::uint64_t number) PV2_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<SessionAnswer> why_not_after_all(const Live& session,
                                                               std::uint64_t number,
                                                               const Waiter& waiter) const
      PV2_REQUIRES(mutex_);
  Live* find(SessionId id, std::string_view owner) PV2_REQUIRES(mutex_);
  Live* find(SessionId id) PV2_REQUIRES(mutex_);
  void hear(Live& session, std::uint64_t first_unacked) PV2_REQUIRES(mutex_);
  void keep(Live& session, Request& request, SavedResponse response) PV2_REQUIRES(mutex_);
  void drop(Live& session, std::size_t bytes) PV2_REQUIRES(mutex_);
  /// OK, or why there is no room for the response to a new request.
  [[nodiscard]] Status why_no_room(const Live& session) const PV2_REQUIRES(mutex_);
  /// The mark that the session's next batch makes durable, or 0.
  [[nodiscard]] static std::uint64_t mark_to_move(const Live& session);
  /// Adds that mark to `batch`; returns it, or 0.
  std::uint64_t add_mark(Live& session, RowBatch& batch) PV2_REQUIRES(mutex_);
  static void mark_is_durable(Live& session, std::uint64_t mark);
  /// The batch that would have moved the mark was not written.
  static void mark_stays(Live& session);
  [[nodiscard]] std::optional<Result<Session>> answer_opening(const Opening& opening)
      PV2_REQUIRES(mutex_);
  [[nodiscard]] bool joins(Opening& opening) PV2_REQUIRES(mutex_);
  void open(Opening opening) PV2_EXCLUDES(mutex_);
  void reserve_ids() PV2_EXCLUDES(mutex_);
  void ids_are_reserved(std::uint64_t bound, const Status& status) PV2_EXCLUDES(mutex_);
  void opened(SessionId id, const Status& status) PV2_EXCLUDES(mutex_);
  RowBatch end(Live& session) PV2_REQUIRES(mutex_);
  void ended(SessionId id, const Status& status) PV2_EXCLUDES(mutex_);
  /// One section of maintain(): from session number `first` on it begins to end silent sessions,
  /// and to make the marks of the others durable. The caller commits the changes.
  Section begin_changes(std::uint64_t first) PV2_EXCLUDES(mutex_);
  void mark_moved(SessionId id, std::uint64_t mark, const Status& status) PV2_EXCLUDES(mutex_);
  Status load_session(const StoredRow& row) PV2_EXCLUDES(mutex_);
  Status load_response(const StoredRow& row) PV2_EXCLUDES(mutex_);

  RowLog& log_;
  SessionOptions options_;
  std::atomic<std::uint64_t> next_ticket_{1};
  mutable WaitingThreads waiting_;  ///< Those that wait for the mutex.
  mutable Mutex mutex_;
  bool stopping_ PV2_GUARDED_BY(mutex_) = false;
  std::size_t bytes_ PV2_GUARDED_BY(mutex_) = 0;  ///< Of the responses of all sessions.
  /// Ordered, so that maintain() can go on where it left off.
  std::map<std::uint64_t, Live> sessions_ PV2_GUARDED_BY(mutex_);
  std::map<Asker, SessionId> by_asker_ PV2_GUARDED_BY(mutex_);
  std::uint64_t next_id_ PV2_GUARDED_BY(mutex_) = 1;
  std::uint64_t id_bound_ PV2_GUARDED_BY(mutex_) = 1;  ///< Ids below it may be given. Durable.
  bool ids_are_on_their_way_ PV2_GUARDED_BY(mutex_) = false;
  std::vector<Opening> waiting_for_ids_ PV2_GUARDED_BY(mutex_);
};

}  // namespace pv2

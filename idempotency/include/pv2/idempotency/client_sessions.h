// SPDX-License-Identifier: Apache-2.0
//
// ClientSessions: the Idempotent Receiver. A client opens a session and numbers its requests. The
// server does each request once, keeps its response until the client says that it has it, and
// answers a request that comes again with that response, also after a crash: the response is
// committed in the batch of the request's effect.
//
// Unlike nonces, which are remembered for a time, a session is exact and needs no clock. The server
// refuses a number below the client's mark (the first request whose response it lacks) as stale. It
// refuses a number beyond the window, and a request of a session that it does not know. Time
// decides only when the server gives up a silent session; that is a commit like any other.
//
// The rows are rows of the host in a RowLog, whose keys begin with kSessionRows.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/hash128.h>
#include <pv2/base/status.h>
#include <pv2/store/commit_request.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/idempotency/row_log.h"

namespace pv2 {

class SessionTable;

/// Keys of the rows of sessions begin with this; the host keeps its own rows elsewhere.
inline constexpr std::string_view kSessionRows = "pv2.session/";

/// Chosen by the server, and never given twice, whatever a crash does.
struct SessionId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(SessionId, SessionId) noexcept = default;
};

/// What a client gets when it opens a session.
struct Session {
  SessionId id;
  std::uint32_t window = 0;  ///< How many numbers from its mark on it may use.
};

/// What a request ended with: the bytes of a response, or a definite failure.
using Response = Result<std::string>;
/// The saved response to a request; all copies of one share it.
using SavedResponse = std::shared_ptr<const Response>;

/// One request of a client. A value.
struct SessionRequest {
  SessionId session;
  std::uint64_t number = 0;         ///< From 1 on; the same for each copy of one request.
  std::uint64_t first_unacked = 0;  ///< The client has all responses below this number.
  Hash128 fingerprint;              ///< Of the operation and its arguments.
  std::string_view owner{};         ///< Who asks, as the server has authenticated it.
  /// A request that comes after this time does not begin. One that is known gets its answer.
  std::optional<WallTime> deadline{};
};

/// Why a request was not run, apart from what its status says in words.
enum class Refusal : std::uint8_t {
  kNone,            ///< It runs, or there is a saved outcome.
  kSessionExpired,  ///< The session is not known (any more). Outcomes without a response are
                    ///< unknown.
  kStale,           ///< The client has said that it has the answer.
  kWindowFull,      ///< The client has to take responses first, or others have to.
  kKeyReused,       ///< The number was used with another fingerprint.
  kDeadlinePassed,
  kInProgress,  ///< The wait for the running request was given up.
  kUnknown,     ///< The owner of the running request ended without a verdict.
  kOther,       ///< The status says it: stopping, or being expired just now.
};

/// The right to run one request, and the duty to say how it ended. Move-only; used by one thread at
/// a time. It may outlive its ClientSessions.
class [[nodiscard]] RequestOwner {
 public:
  RequestOwner() = default;
  RequestOwner(RequestOwner&& other) noexcept = default;
  RequestOwner& operator=(RequestOwner&& other) noexcept;
  /// An owner that ends without a verdict leaves the outcome unknown in this process. The next
  /// process knows: it finds the row of save(), or the request was not done.
  ~RequestOwner();

  /// Adds the row of the response, and the deletion of those that the client has, to the batch of
  /// the effect. A definite failure is a response too: a copy of the request gets the same one,
  /// however the world has changed. When the batch is durable: done(). Once for each request.
  /// If there is no memory it throws std::bad_alloc and has saved nothing; the host must not commit
  /// that batch.
  void save(RowBatch& effect, Response response);
  /// If there is no memory this or refuse() throws std::bad_alloc, and the outcome is unknown as if
  /// the owner had ended.
  void done();
  /// The host did nothing, and the server shall remember nothing (overload, a failed check): a copy
  /// may run. The host must not commit a batch that save() has written to.
  void refuse();

 private:
  friend class SessionTable;
  RequestOwner(std::shared_ptr<SessionTable> table, SessionId session,
               std::uint64_t number) noexcept
      : table_(std::move(table)), session_(session), number_(number) {}

  std::shared_ptr<SessionTable> table_;  // nullptr: it owns nothing
  SessionId session_;
  std::uint64_t number_ = 0;
  SavedResponse saved_;
  std::uint64_t moves_mark_to_ = 0;  // with the batch of save(); 0: that moves no mark
};

/// The answer to a request. Exactly one of three: `owner` runs it; `response` is set; or it was
/// refused, and neither ran nor will run for this copy.
struct SessionAnswer {
  RequestOwner owner;
  SavedResponse response;
  Refusal refusal = Refusal::kNone;
  Status status;  ///< Of a refusal.

  [[nodiscard]] bool runs() const noexcept {
    return refusal == Refusal::kNone && response == nullptr;
  }
};

struct SessionOptions {
  std::shared_ptr<Clock> clock{};  ///< The system's clock unless given. Only its monotonic time
                                   ///< decides about sessions.
  /// The next maintain() gives up a session whose client has been silent for this long.
  Duration timeout = std::chrono::minutes(5);
  std::uint32_t window = 64;       ///< Unless the client asks for another one. 1 to `window_max`.
  std::uint32_t window_max = 512;  ///< RIFL's figure.
  std::size_t sessions_max = 100'000;
  /// Saved responses in memory, in bytes: of one session, and of all. Beyond either of them a new
  /// request gets kWindowFull, except the one at the mark of a session that has responses: they
  /// cannot be dropped before the client has that one too. So at most one more response for each
  /// session comes on top, and so does what the requests that run end with and what load() finds;
  /// nothing is forgotten early.
  std::size_t session_bytes_max = std::size_t{64} << 20;
  std::size_t bytes_max = std::size_t{1} << 30;
  std::size_t waiters_max = 1024;  ///< Copies of one request that wait for it.
};

/// Thread-safe. Calls no code of the host under a lock. What an answer throws is swallowed.
class ClientSessions {
 public:
  /// Reads the sessions in `log`, which must outlive the last answer; that may come after the end
  /// of this object. Each session begins a new term of `timeout`. kCorruption: a row cannot be
  /// read. kInvalidArgument: the default window is not 1 to `window_max`.
  [[nodiscard]] static Result<std::unique_ptr<ClientSessions>> load(RowLog& log,
                                                                    SessionOptions options = {});
  ~ClientSessions();
  ClientSessions(const ClientSessions&) = delete;
  ClientSessions& operator=(const ClientSessions&) = delete;

  /// Opens a session for `owner`; `answer` is called when it is durable. A client that never hears
  /// back asks again with the same `token`, and gets the same session. `window` 0: the default.
  /// kResourceExhausted, kInvalidArgument (no token; more than 1024 bytes), kStopping, or the
  /// failure of the log.
  void open(std::string token, std::string owner, std::uint32_t window,
            std::function<void(Result<Session>)> answer);
  /// Gives the session and its responses up; `answer` is called when that is durable. kExpired:
  /// there is no such session of this owner. kFailedPrecondition: a request is running.
  /// kInvalidArgument: the log has refused the batch, and the session is open. After another
  /// failure of the log the session is refused until a restart tells whether it is open.
  void close(SessionId session, std::string_view owner, std::function<void(Status)> answer);

  /// Decides about one request. Returns 0 after a call of `answer`, or else a ticket for cancel():
  /// then `answer` is called when the running copy ends.
  using Answer = std::function<void(SessionAnswer)>;
  std::uint64_t begin_async(const SessionRequest& request, Answer answer);
  /// Ends the wait of a copy, whose answer is then never called. False: its answer was called, or
  /// is being called.
  bool cancel(SessionId session, std::uint64_t number, std::uint64_t ticket);
  /// As begin_async(), waiting at most `timeout` for a running copy.
  [[nodiscard]] SessionAnswer begin(const SessionRequest& request,
                                    Duration timeout = Duration::max(), std::stop_token stop = {});

  /// The host found out what became of a request whose owner said nothing: its batch became
  /// durable, with this response, or was never sent. False: the outcome of this request is not
  /// unknown. Until then its session is neither closed nor given up; a restart resolves it too.
  bool resolve_done(SessionId session, std::uint64_t number, Response response);
  bool resolve_not_done(SessionId session, std::uint64_t number);

  /// The client is alive, and has all responses below `first_unacked`. kExpired; kUnavailable: the
  /// session is just being given up.
  Status heartbeat(SessionId session, std::string_view owner, std::uint64_t first_unacked);

  /// Gives up silent sessions, and makes the marks of idle clients durable; calls `done` when all
  /// of that is durable. Meant for a timer, every 10 s or so. Looks at each session; requests wait
  /// for at most about 1000 sessions and rows at a time. kInvalidArgument: the log has refused a
  /// batch; the next call tries that again. kUnknownOutcome: the log has failed.
  void maintain(std::function<void(Status)> done);

  /// Refuses everything from now on; copies that wait get kStopping. Owners go on.
  void stop();

  /// The sessions that are open. Looks at each of them while requests wait: for a metric or a test.
  [[nodiscard]] std::size_t live() const;
  /// Saved responses, in all sessions. Like live(), and looks at each response.
  [[nodiscard]] std::size_t responses() const;

 private:
  explicit ClientSessions(std::shared_ptr<SessionTable> table) : table_(std::move(table)) {}
  std::shared_ptr<SessionTable> table_;
};

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// ServerNonceManager: keeps a server from doing a non-idempotent operation (append, increment)
// twice when a client that never got an answer sends it again. Each operation has a nonce, which
// the client chose before it first sent it; the first request with a nonce runs, and each other one
// waits for it and gets its result.
//
// The manager keeps this promise as long as it remembers a nonce: for `retention` after the
// operation ended, and at least until `expires_at`, after which the client has promised not to send
// the nonce. It forgets what is in memory with the process. The next process remembers an operation
// whose result was saved in the batch of its effect (NonceOwner::save): see nonce_rows.h.
//
// A nonce without an answer yet has one owner at any time. An owner says how the operation ended.
// One that says nothing leaves the outcome unknown: then nobody runs the operation before
// resolve_*() tells what happened.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/hash128.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/store/commit_request.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace pv2 {

class ServerNonceManager;
struct NonceEntry;

/// The saved result of an operation. All duplicates share it.
using SavedResult = std::shared_ptr<const std::string>;

/// One request for an operation. A value.
struct NonceRequest {
  Nonce nonce;  ///< Value 0: the operation has none; it runs, and nothing is remembered.
  /// Of the operation and its arguments: hash128() over everything that makes two requests
  /// different, but not over deadlines, priorities and names for tracing: copies may have others.
  Hash128 fingerprint;
  /// The client promises not to send the nonce after this time, by its own clock. All copies of one
  /// request promise the same.
  std::optional<WallTime> expires_at{};
};

/// The right to run the operation of one nonce, and the duty to say how it ended. Move-only; used
/// by one thread at a time, any thread. Must be destroyed before its manager.
class [[nodiscard]] NonceOwner {
 public:
  /// Owns nothing, as after a move; every verb below then does nothing.
  NonceOwner() = default;
  NonceOwner(NonceOwner&& other) noexcept;
  NonceOwner& operator=(NonceOwner&& other) noexcept;
  /// Without a verdict the outcome is unknown: waiting duplicates get kUnknownOutcome, and so does
  /// everybody who asks later, until resolve_*().
  ~NonceOwner();

  /// Adds the row that remembers `result` to the batch of the operation's effect, so both become
  /// durable or neither. Call succeed() when that batch is durable.
  void save(RowBatch& effect, std::string result);

  /// The operation was done. Duplicates get `result`, or what save() was given. If there is no
  /// memory for that it throws std::bad_alloc, and the outcome is unknown as soon as this owner
  /// ends, if not at once.
  void succeed(std::string result);
  void succeed();
  /// The operation was definitely not done. The duplicate that has waited longest becomes the
  /// owner; if none waits the nonce is free again.
  void fail();

 private:
  friend class ServerNonceManager;
  NonceOwner(ServerNonceManager& manager, const NonceRequest& request, NonceEntry& entry) noexcept
      : manager_(&manager), request_(request), entry_(&entry) {}

  ServerNonceManager* manager_ = nullptr;
  NonceRequest request_;
  NonceEntry* entry_ = nullptr;
  SavedResult saved_;
};

/// The answer to a request: either it is to run, or it was done before.
struct NonceAnswer {
  NonceOwner owner;    ///< Owns the operation only if there is no result.
  SavedResult result;  ///< nullptr: the caller runs the operation, as its owner.

  [[nodiscard]] bool runs() const noexcept { return result == nullptr; }
};

struct NonceManagerOptions {
  std::shared_ptr<Clock> clock{};  ///< The system's clock unless given.
  /// How long a nonce is remembered after its operation has ended. Default: HBase's
  /// hbase.server.hashNonce.gracePeriod.
  Duration retention = std::chrono::minutes(30);
  /// How far client clocks may be behind: a nonce with `expires_at` is remembered this much longer.
  Duration skew_max = std::chrono::seconds(60);
  /// `expires_at` may be at most this far away.
  Duration expires_after_max = std::chrono::hours(24);
  /// Keys and results in memory, in bytes. Beyond it new operations are refused with
  /// kResourceExhausted; nothing is forgotten early.
  std::size_t bytes_max = std::size_t{256} << 20;
  /// Duplicates that wait for one operation; more are refused with kResourceExhausted.
  std::size_t waiters_max = 1024;
  /// False: operations with a nonce are refused with kNotSupported rather than run unprotected.
  bool enabled = true;
};

/// What a manager remembers now.
struct NonceCounts {
  std::size_t running = 0;
  std::size_t succeeded = 0;
  std::size_t unknown = 0;
  std::size_t waiting = 0;  ///< Duplicates.
  std::size_t bytes = 0;
};

/// Thread-safe. Calls no code of the host under a lock. What an answer throws is swallowed.
class ServerNonceManager {
 public:
  explicit ServerNonceManager(NonceManagerOptions options = {});
  /// No owner is left.
  ~ServerNonceManager();
  ServerNonceManager(const ServerNonceManager&) = delete;
  ServerNonceManager& operator=(const ServerNonceManager&) = delete;

  /// How long begin() waits for the owner of the same nonce.
  struct Wait {
    Duration timeout = Duration::max();
    std::stop_token stop{};
  };
  /// Decides about one request. Never runs one operation twice.
  ///
  /// The answer says that the caller owns the operation and is to run it, or has the saved result.
  /// Otherwise nothing was run for this request: kKeyReused, the nonce was used with another
  /// fingerprint; kDeadlineExceeded, its owner is still running; kUnknownOutcome, its owner said
  /// nothing; kAborted, `wait.stop`; kExpired, the nonce is not known and `expires_at` has passed;
  /// kInvalidArgument, `expires_at` is too far away, or later than that of the first request;
  /// kResourceExhausted, too much is remembered or waits; kNotSupported, nonces are switched off;
  /// kStopping.
  [[nodiscard]] Result<NonceAnswer> begin(const NonceRequest& request, const Wait& wait);
  [[nodiscard]] Result<NonceAnswer> begin(const NonceRequest& request) {
    return begin(request, {});
  }

  /// As begin() without a time limit, and without blocking: `answer` is called once, by this call
  /// or by the thread that ends the operation. Returns a ticket for cancel(), 0 if it was called.
  using Answer = std::function<void(Result<NonceAnswer>)>;
  std::uint64_t begin_async(const NonceRequest& request, Answer answer);
  /// Ends the wait of a duplicate, and destroys its answer without a call. False: its answer was
  /// called, or is being called. The running operation goes on.
  bool cancel(const Nonce& nonce, std::uint64_t ticket);

  /// The saved result of a nonce; nullptr while it runs. kNotFound, kUnknownOutcome.
  [[nodiscard]] Result<SavedResult> lookup(const Nonce& nonce) const;

  /// Recovery found out what became of an operation whose owner said nothing. False: the outcome of
  /// this nonce is not unknown.
  bool resolve_done(const Nonce& nonce, std::string result);
  bool resolve_not_done(const Nonce& nonce);
  /// All nonces whose outcome is unknown. Looks at every nonce, one shard at a time.
  [[nodiscard]] std::vector<Nonce> unknown() const;

  enum class Replay : std::uint8_t {
    kRemembered,
    kKnown,   ///< The nonce was known already; nothing has changed.
    kTooOld,  ///< It was done longer ago than 1.5 times `retention`: its time is over at once.
  };
  /// From a log: the operation was done at `done_at`, by the wall clock. It is remembered for
  /// `retention` from now. `request` has a nonce.
  Replay replay(const NonceRequest& request, WallTime done_at, std::string result);

  /// At most `most` nonces whose time is over. The manager remembers them until forget(), so that
  /// the caller can delete their rows first: otherwise the deletion could overtake the row of a new
  /// operation with the same nonce. One thread at a time does all three. Meant for a timer, every
  /// retention / 5.
  [[nodiscard]] std::vector<Nonce> expired(std::size_t most);
  void forget(const std::vector<Nonce>& nonces);
  /// The latest `expires_at` of all that expired() has returned. A nonce that is not known and
  /// expires no later is refused with kExpired, even if the wall clock was set back meanwhile.
  [[nodiscard]] WallTime forgotten_through() const;
  /// An earlier process has forgotten nonces with promises up to this time.
  void forgot_through(WallTime promise);

  /// Refuses everything from now on, and answers all that wait, with kStopping. Owners go on.
  void stop();

  /// Looks at every nonce, one shard at a time: for a metric or a test, not for each request.
  [[nodiscard]] NonceCounts counts() const;

 private:
  friend class NonceOwner;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pv2

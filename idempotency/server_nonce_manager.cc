// SPDX-License-Identifier: Apache-2.0
//
// The table of nonces is cut into shards, each with its mutex. Ownership of a nonce changes only
// under that mutex: to the request that inserts its entry, or from an owner that failed to the
// duplicate that has waited longest. So there is no moment in which two requests may both believe
// that they own it, and a request never acts on an entry that is not in the table any more.

#include "pv2/idempotency/server_nonce_manager.h"

#include <pv2/base/assert.h>
#include <pv2/base/latch.h>
#include <pv2/base/mutex.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <unordered_map>

#include "give.h"
#include "nonce_name.h"
#include "pv2/idempotency/nonce_rows.h"

namespace pv2 {

/// One nonce that is known. Guarded by the mutex of its shard.
struct NonceEntry {
  enum class State : std::uint8_t {
    kRunning,    ///< It has an owner.
    kSucceeded,  ///< It has a result.
    kUnknown,    ///< Its owner said nothing.
  };
  struct Waiter {
    std::uint64_t ticket;
    ServerNonceManager::Answer answer;
  };

  using Waiters = std::deque<Waiter>;

  Hash128 fingerprint;
  std::optional<WallTime> expires_at;
  State state = State::kRunning;
  SavedResult result;
  SteadyTime keep_until{};           ///< Of one that has succeeded.
  std::unique_ptr<Waiters> waiters;  ///< Most have none.
};

namespace {

using State = NonceEntry::State;

constexpr std::size_t kShards = 32;  // many more than the threads that begin at once

// What one entry takes in memory beside its result: two tree or hash nodes and the entry.
constexpr std::size_t kEntryBytes = 256;

// `to` - `from`, or the longest duration if it is out of range.
Duration between(WallTime from, WallTime to) noexcept {
  const bool fits = from.time_since_epoch() >= Duration::zero() ||
                    to.time_since_epoch() <= Duration::max() + from.time_since_epoch();
  return fits ? to - from : Duration::max();
}

Status still_running(const Nonce& nonce) {
  return Status(StatusCode::kDeadlineExceeded,
                "the operation with " + name_of(nonce) +
                    " is still running for an earlier request; ask again with the same nonce");
}

Status not_known_how_it_ended(const Nonce& nonce) {
  return Status(StatusCode::kUnknownOutcome,
                "the operation with " + name_of(nonce) +
                    " ended without a verdict; the server does not run it again before its host "
                    "has found out what became of it");
}

Status manager_stops() {
  return Status(StatusCode::kStopping,
                "the nonce manager stops; ask again later, with the same nonce");
}

}  // namespace

class ServerNonceManager::Impl {
 public:
  explicit Impl(NonceManagerOptions options) : options_(std::move(options)) {
    if (!options_.clock) options_.clock = std::make_shared<SystemClock>();
  }
  ~Impl() {
    for (Shard& shard : shards_) {
      MutexLock lock(shard.mutex);
      for (const auto& [nonce, entry] : shard.entries) {
        PV2_ASSERT(entry.state != State::kRunning, "an owner ends before its manager");
      }
    }
  }

  // Answers at once, or has `waiter` wait, or returns nothing because there is no waiter.
  std::optional<Result<NonceAnswer>> decide(ServerNonceManager& manager,
                                            const NonceRequest& request,
                                            NonceEntry::Waiter* waiter);
  bool cancel(const Nonce& nonce, std::uint64_t ticket);
  [[nodiscard]] Result<SavedResult> lookup(const Nonce& nonce);

  void succeeded(const Nonce& nonce, NonceEntry& entry, SavedResult result);
  void not_done(ServerNonceManager& manager, const NonceRequest& request, NonceEntry& entry);
  void said_nothing(const Nonce& nonce, NonceEntry& entry);
  // The entry of a nonce whose outcome is unknown, and its request; it is running again, and the
  // caller owns it.
  NonceEntry* take_unknown(NonceRequest& request);
  std::vector<Nonce> unknown();

  Replay replay(const NonceRequest& request, WallTime done_at, std::string result);
  std::vector<Nonce> expired(std::size_t most);
  void forget(const std::vector<Nonce>& nonces);
  void forgot_through(WallTime promise);
  [[nodiscard]] WallTime forgotten_through() const {
    return forgotten_through_.load(std::memory_order_relaxed);
  }
  void stop();
  NonceCounts counts();

  [[nodiscard]] Clock& clock() const noexcept { return *options_.clock; }
  [[nodiscard]] std::uint64_t new_ticket() noexcept { return next_ticket_.fetch_add(1); }

 private:
  struct Shard {
    Mutex mutex;
    std::unordered_map<Nonce, NonceEntry> entries PV2_GUARDED_BY(mutex);
    // Those that have succeeded, in the order in which their time ends.
    std::multimap<SteadyTime, Nonce> by_end PV2_GUARDED_BY(mutex);
    std::size_t waiting PV2_GUARDED_BY(mutex) = 0;
  };

  // Without the secret of the hash: a run of a simulation forgets in the same order each time.
  // Nonces that share a shard share a mutex, and are found by their hashes.
  Shard& shard_of(const Nonce& nonce) noexcept {
    const std::uint64_t spread =
        (nonce.group * 0x9E3779B97F4A7C15ULL) ^ (nonce.value * 0xC2B2AE3D27D4EB4FULL);
    return shards_[(spread >> 32) % kShards];
  }
  [[nodiscard]] Status why_not_new(const NonceRequest& request) const;
  [[nodiscard]] Result<NonceAnswer> answer_known(const NonceRequest& request,
                                                 const NonceEntry& entry) const;
  [[nodiscard]] SteadyTime end_of(const std::optional<WallTime>& expires_at) const;
  void keep(Shard& shard, const Nonce& nonce, NonceEntry& entry, SavedResult result,
            SteadyTime until) PV2_REQUIRES(shard.mutex);
  // Null: there are none. Needs no memory, which a verdict may not find.
  static std::unique_ptr<NonceEntry::Waiters> take_waiters(Shard& shard, NonceEntry& entry)
      PV2_REQUIRES(shard.mutex);

  NonceManagerOptions options_;
  std::array<Shard, kShards> shards_;
  std::atomic<std::uint64_t> next_ticket_{1};
  std::atomic<std::size_t> bytes_{0};
  // Relaxed: it is raised before the nonces that it is about are forgotten, under a mutex.
  std::atomic<WallTime> forgotten_through_{WallTime::min()};
  std::atomic<bool> stopping_{false};
};

// OK, or why a nonce that is not known does not begin.
Status ServerNonceManager::Impl::why_not_new(const NonceRequest& request) const {
  if (request.expires_at) {
    const WallTime now = options_.clock->wall_now();
    // The wall clock may have been set back since others were forgotten.
    if (*request.expires_at <= std::max(now, forgotten_through())) {
      return Status(StatusCode::kExpired,
                    name_of(request.nonce) +
                        " is not known, and its operation was to be sent before now (expires_at): "
                        "it may have been done and forgotten. Nothing was run");
    }
    if (*request.expires_at > later(now, options_.expires_after_max)) {
      return Status(StatusCode::kInvalidArgument,
                    name_of(request.nonce) + " expires later than this server remembers nonces (" +
                        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(
                                           options_.expires_after_max)
                                           .count()) +
                        " s); send it with an earlier expires_at");
    }
  }
  if (bytes_.load(std::memory_order_relaxed) >= options_.bytes_max) {
    return Status(
        StatusCode::kResourceExhausted,
        "nonces and results take " + std::to_string(bytes_.load()) +
            " bytes, which is the limit (bytes_max); try again with the same nonce later");
  }
  return Status();
}

Result<NonceAnswer> ServerNonceManager::Impl::answer_known(const NonceRequest& request,
                                                           const NonceEntry& entry) const {
  if (entry.state == State::kUnknown) return not_known_how_it_ended(request.nonce);
  PV2_ASSERT(entry.state == State::kSucceeded, "a running operation has no answer yet");
  return NonceAnswer{{}, entry.result};
}

std::optional<Result<NonceAnswer>> ServerNonceManager::Impl::decide(ServerNonceManager& manager,
                                                                    const NonceRequest& request,
                                                                    NonceEntry::Waiter* waiter) {
  if (!request.nonce) {
    if (stopping_.load()) return manager_stops();
    return NonceAnswer{};
  }
  if (!options_.enabled) {
    return Status(StatusCode::kNotSupported,
                  "nonces are switched off in this server, so " + name_of(request.nonce) +
                      " would protect nothing; nothing was run. Send it without a nonce if that is "
                      "what you want");
  }
  Shard& shard = shard_of(request.nonce);
  MutexLock lock(shard.mutex);
  if (stopping_.load()) return manager_stops();
  const auto [at, is_new] = shard.entries.try_emplace(request.nonce);
  NonceEntry& entry = at->second;
  if (is_new) {
    Status refused;
    try {
      refused = why_not_new(request);
    } catch (...) {  // no memory for the words; an entry without an owner would run for ever
      shard.entries.erase(at);
      throw;
    }
    if (!refused.ok()) {
      shard.entries.erase(at);
      return refused;
    }
    entry.fingerprint = request.fingerprint;
    entry.expires_at = request.expires_at;
    bytes_.fetch_add(kEntryBytes, std::memory_order_relaxed);
    return NonceAnswer{NonceOwner(manager, request, entry), nullptr};
  }
  if (entry.fingerprint != request.fingerprint) {
    return Status(StatusCode::kKeyReused,
                  name_of(request.nonce) +
                      " was used before for something else; nothing was run. Use a new nonce");
  }
  if (request.expires_at && (!entry.expires_at || *request.expires_at > *entry.expires_at)) {
    return Status(StatusCode::kInvalidArgument,
                  name_of(request.nonce) +
                      " was first sent with an earlier expires_at, or with none, and is remembered "
                      "no longer than that asks for; send it with the first one");
  }
  if (entry.state != State::kRunning) return answer_known(request, entry);
  if (waiter == nullptr) return std::nullopt;
  if (!entry.waiters) entry.waiters = std::make_unique<NonceEntry::Waiters>();
  if (entry.waiters->size() >= options_.waiters_max) {
    return Status(StatusCode::kResourceExhausted,
                  std::to_string(entry.waiters->size()) +
                      " duplicates wait for the operation with " + name_of(request.nonce) +
                      ", which is the limit (waiters_max); ask again with the same nonce later");
  }
  entry.waiters->push_back(std::move(*waiter));
  ++shard.waiting;
  return std::nullopt;
}

bool ServerNonceManager::Impl::cancel(const Nonce& nonce, std::uint64_t ticket) {
  Shard& shard = shard_of(nonce);
  ServerNonceManager::Answer dropped;  // destroyed without the mutex: it is the host's
  MutexLock lock(shard.mutex);
  const auto at = shard.entries.find(nonce);
  if (at == shard.entries.end() || !at->second.waiters) return false;
  auto& waiters = *at->second.waiters;
  const auto waiter = std::ranges::find(waiters, ticket, &NonceEntry::Waiter::ticket);
  if (waiter == waiters.end()) return false;
  dropped = std::move(waiter->answer);
  waiters.erase(waiter);
  --shard.waiting;
  return true;
}

Result<SavedResult> ServerNonceManager::Impl::lookup(const Nonce& nonce) {
  Shard& shard = shard_of(nonce);
  MutexLock lock(shard.mutex);
  const auto at = shard.entries.find(nonce);
  if (at == shard.entries.end()) {
    return Status(StatusCode::kNotFound, name_of(nonce) + " is not known");
  }
  if (at->second.state == State::kUnknown) return not_known_how_it_ended(nonce);
  return at->second.result;
}

std::unique_ptr<NonceEntry::Waiters> ServerNonceManager::Impl::take_waiters(Shard& shard,
                                                                            NonceEntry& entry) {
  if (entry.waiters) shard.waiting -= entry.waiters->size();
  return std::move(entry.waiters);
}

SteadyTime ServerNonceManager::Impl::end_of(const std::optional<WallTime>& expires_at) const {
  const SteadyTime now = options_.clock->steady_now();
  Duration rest = options_.retention;
  if (expires_at) {
    const WallTime forgotten = later(*expires_at, options_.skew_max);
    const WallTime wall = options_.clock->wall_now();
    if (forgotten > wall) rest = std::max(rest, between(wall, forgotten));
  }
  return later(now, rest);
}

void ServerNonceManager::Impl::keep(Shard& shard, const Nonce& nonce, NonceEntry& entry,
                                    SavedResult result, SteadyTime until) {
  shard.by_end.emplace(until, nonce);  // before anything is changed: it may find no memory
  entry.state = State::kSucceeded;
  bytes_.fetch_add(result->size(), std::memory_order_relaxed);
  entry.result = std::move(result);
  entry.keep_until = until;
}

void ServerNonceManager::Impl::succeeded(const Nonce& nonce, NonceEntry& entry,
                                         SavedResult result) {
  Shard& shard = shard_of(nonce);
  std::unique_ptr<NonceEntry::Waiters> waiters;
  {
    MutexLock lock(shard.mutex);
    PV2_ASSERT(entry.state == State::kRunning, "an operation that ends was running");
    keep(shard, nonce, entry, result, end_of(entry.expires_at));
    waiters = take_waiters(shard, entry);
  }
  if (!waiters) return;
  for (const NonceEntry::Waiter& waiter : *waiters) give(waiter.answer, NonceAnswer{{}, result});
}

void ServerNonceManager::Impl::not_done(ServerNonceManager& manager, const NonceRequest& request,
                                        NonceEntry& entry) {
  Shard& shard = shard_of(request.nonce);
  ServerNonceManager::Answer next;
  {
    MutexLock lock(shard.mutex);
    PV2_ASSERT(entry.state == State::kRunning, "an operation that ends was running");
    if (!entry.waiters || entry.waiters->empty()) {
      bytes_.fetch_sub(kEntryBytes, std::memory_order_relaxed);
      shard.entries.erase(request.nonce);
      return;
    }
    next = std::move(entry.waiters->front().answer);
    entry.waiters->pop_front();
    --shard.waiting;
  }
  give(next, NonceAnswer{NonceOwner(manager, request, entry), nullptr});
}

void ServerNonceManager::Impl::said_nothing(const Nonce& nonce, NonceEntry& entry) {
  Shard& shard = shard_of(nonce);
  std::unique_ptr<NonceEntry::Waiters> waiters;
  {
    MutexLock lock(shard.mutex);
    PV2_ASSERT(entry.state == State::kRunning, "an operation that ends was running");
    entry.state = State::kUnknown;
    waiters = take_waiters(shard, entry);
  }
  if (!waiters) return;
  for (const NonceEntry::Waiter& waiter : *waiters)
    give(waiter.answer, not_known_how_it_ended(nonce));
}

NonceEntry* ServerNonceManager::Impl::take_unknown(NonceRequest& request) {
  Shard& shard = shard_of(request.nonce);
  MutexLock lock(shard.mutex);
  const auto at = shard.entries.find(request.nonce);
  if (at == shard.entries.end() || at->second.state != State::kUnknown) return nullptr;
  NonceEntry& entry = at->second;
  entry.state = State::kRunning;
  request.fingerprint = entry.fingerprint;
  request.expires_at = entry.expires_at;
  return &entry;
}

std::vector<Nonce> ServerNonceManager::Impl::unknown() {
  std::vector<Nonce> nonces;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    for (const auto& [nonce, entry] : shard.entries) {
      if (entry.state == State::kUnknown) nonces.push_back(nonce);
    }
  }
  std::ranges::sort(nonces);
  return nonces;
}

ServerNonceManager::Replay ServerNonceManager::Impl::replay(const NonceRequest& request,
                                                            WallTime done_at, std::string result) {
  PV2_ASSERT(request.nonce, "an operation in a log has a nonce");
  const WallTime now = options_.clock->wall_now();
  const bool is_old = later(later(done_at, options_.retention), options_.retention / 2) < now;
  const bool may_come = request.expires_at && later(*request.expires_at, options_.skew_max) >= now;
  Shard& shard = shard_of(request.nonce);
  MutexLock lock(shard.mutex);
  const auto [at, is_new] = shard.entries.try_emplace(request.nonce);
  if (!is_new) return Replay::kKnown;
  NonceEntry& entry = at->second;
  entry.fingerprint = request.fingerprint;
  entry.expires_at = request.expires_at;
  const bool is_over = is_old && !may_come;
  try {
    keep(shard, request.nonce, entry, std::make_shared<const std::string>(std::move(result)),
         is_over ? options_.clock->steady_now() : end_of(request.expires_at));
  } catch (...) {  // as in decide()
    shard.entries.erase(at);
    throw;
  }
  bytes_.fetch_add(kEntryBytes, std::memory_order_relaxed);
  return is_over ? Replay::kTooOld : Replay::kRemembered;
}

std::vector<Nonce> ServerNonceManager::Impl::expired(std::size_t most) {
  const SteadyTime now = options_.clock->steady_now();
  std::vector<Nonce> nonces;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    for (auto at = shard.by_end.begin();
         at != shard.by_end.end() && at->first <= now && nonces.size() < most; ++at) {
      nonces.push_back(at->second);
      const auto& promise = shard.entries.at(at->second).expires_at;
      if (promise) forgot_through(*promise);
    }
  }
  return nonces;
}

void ServerNonceManager::Impl::forgot_through(WallTime promise) {
  WallTime before = forgotten_through();
  while (before < promise &&
         !forgotten_through_.compare_exchange_weak(before, promise, std::memory_order_relaxed)) {
  }
}

void ServerNonceManager::Impl::forget(const std::vector<Nonce>& nonces) {
  const SteadyTime now = options_.clock->steady_now();
  for (const Nonce& nonce : nonces) {
    Shard& shard = shard_of(nonce);
    MutexLock lock(shard.mutex);
    const auto at = shard.entries.find(nonce);
    if (at == shard.entries.end()) continue;
    const NonceEntry& entry = at->second;
    if (entry.state != State::kSucceeded || entry.keep_until > now) continue;
    bytes_.fetch_sub(kEntryBytes + entry.result->size(), std::memory_order_relaxed);
    const auto [first, last] = shard.by_end.equal_range(entry.keep_until);
    const auto end =
        std::find_if(first, last, [&](const auto& one) { return one.second == nonce; });
    PV2_ASSERT(end != last, "a nonce that is remembered has an end");
    shard.by_end.erase(end);
    shard.entries.erase(at);
  }
}

void ServerNonceManager::Impl::stop() {
  stopping_ = true;
  std::vector<NonceEntry::Waiter> waiters;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    if (shard.waiting == 0) continue;
    for (auto& [nonce, entry] : shard.entries) {
      const auto taken = take_waiters(shard, entry);
      if (!taken) continue;
      for (NonceEntry::Waiter& waiter : *taken) waiters.push_back(std::move(waiter));
    }
  }
  std::ranges::sort(waiters, {}, &NonceEntry::Waiter::ticket);
  for (const NonceEntry::Waiter& waiter : waiters) give(waiter.answer, manager_stops());
}

NonceCounts ServerNonceManager::Impl::counts() {
  NonceCounts counts;
  counts.bytes = bytes_.load();
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    counts.waiting += shard.waiting;
    for (const auto& [nonce, entry] : shard.entries) {
      counts.running += entry.state == State::kRunning ? 1 : 0;
      counts.succeeded += entry.state == State::kSucceeded ? 1 : 0;
      counts.unknown += entry.state == State::kUnknown ? 1 : 0;
    }
  }
  return counts;
}

// ---- NonceOwner ----

NonceOwner::NonceOwner(NonceOwner&& other) noexcept
    : manager_(std::exchange(other.manager_, nullptr)),
      request_(other.request_),
      entry_(std::exchange(other.entry_, nullptr)),
      saved_(std::move(other.saved_)) {}

// What this owned ends without a verdict, with `taken`.
NonceOwner& NonceOwner::operator=(NonceOwner&& other) noexcept {
  NonceOwner taken(std::move(other));
  std::swap(manager_, taken.manager_);
  std::swap(request_, taken.request_);
  std::swap(entry_, taken.entry_);
  std::swap(saved_, taken.saved_);
  return *this;
}

NonceOwner::~NonceOwner() {
  if (manager_ == nullptr) return;
  std::exchange(manager_, nullptr)->impl_->said_nothing(request_.nonce, *entry_);
}

void NonceOwner::save(RowBatch& effect, std::string result) {
  if (manager_ == nullptr) return;
  saved_ = std::make_shared<const std::string>(std::move(result));
  put_nonce_row({request_, manager_->impl_->clock().wall_now(), *saved_}, effect);
}

void NonceOwner::succeed(std::string result) {
  if (manager_ == nullptr) return;
  saved_ = std::make_shared<const std::string>(std::move(result));
  succeed();
}

void NonceOwner::succeed() {
  if (manager_ == nullptr) return;
  PV2_ASSERT(saved_ != nullptr, "an operation that succeeds has a result");
  // As in RequestOwner: without memory for the verdict `taken` ends without one.
  NonceOwner taken(std::move(*this));
  taken.manager_->impl_->succeeded(taken.request_.nonce, *taken.entry_, taken.saved_);
  taken.manager_ = nullptr;
}

void NonceOwner::fail() {
  if (manager_ == nullptr) return;
  ServerNonceManager& manager = *std::exchange(manager_, nullptr);
  manager.impl_->not_done(manager, request_, *entry_);
}

// ---- ServerNonceManager ----

ServerNonceManager::ServerNonceManager(NonceManagerOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
ServerNonceManager::~ServerNonceManager() = default;

Result<NonceAnswer> ServerNonceManager::begin(const NonceRequest& request, const Wait& wait) {
  if (auto answer = impl_->decide(*this, request, nullptr)) return *std::move(answer);
  const auto latch = std::make_shared<Latch<Result<NonceAnswer>>>();
  const std::uint64_t ticket =
      begin_async(request, [latch](Result<NonceAnswer> answer) { latch->set(std::move(answer)); });
  const std::stop_callback on_stop(wait.stop, [&] {
    if (!cancel(request.nonce, ticket)) return;
    latch->set(Status(StatusCode::kAborted, "the wait for the operation with " +
                                                name_of(request.nonce) +
                                                " was cancelled; the operation itself goes on"));
  });
  const bool in_time =
      wait.timeout == Duration::max() ||
      arrives_in_time(latch, impl_->clock(), std::max(wait.timeout, Duration::zero()));
  if (!in_time && cancel(request.nonce, ticket)) return still_running(request.nonce);
  latch->wait();
  return *std::move(latch->value);
}

std::uint64_t ServerNonceManager::begin_async(const NonceRequest& request, Answer answer) {
  NonceEntry::Waiter waiter{impl_->new_ticket(), std::move(answer)};
  const std::uint64_t ticket = waiter.ticket;
  auto at_once = impl_->decide(*this, request, &waiter);
  if (!at_once) return ticket;
  give(waiter.answer, *std::move(at_once));
  return 0;
}

bool ServerNonceManager::cancel(const Nonce& nonce, std::uint64_t ticket) {
  return impl_->cancel(nonce, ticket);
}

Result<SavedResult> ServerNonceManager::lookup(const Nonce& nonce) const {
  return impl_->lookup(nonce);
}

bool ServerNonceManager::resolve_done(const Nonce& nonce, std::string result) {
  NonceRequest request{.nonce = nonce, .fingerprint = {}};
  NonceEntry* const entry = impl_->take_unknown(request);
  if (entry == nullptr) return false;
  NonceOwner(*this, request, *entry).succeed(std::move(result));
  return true;
}

bool ServerNonceManager::resolve_not_done(const Nonce& nonce) {
  NonceRequest request{.nonce = nonce, .fingerprint = {}};
  NonceEntry* const entry = impl_->take_unknown(request);
  if (entry == nullptr) return false;
  impl_->not_done(*this, request, *entry);
  return true;
}

ServerNonceManager::Replay ServerNonceManager::replay(const NonceRequest& request, WallTime done_at,
                                                      std::string result) {
  return impl_->replay(request, done_at, std::move(result));
}

std::vector<Nonce> ServerNonceManager::unknown() const { return impl_->unknown(); }
std::vector<Nonce> ServerNonceManager::expired(std::size_t most) { return impl_->expired(most); }
void ServerNonceManager::forget(const std::vector<Nonce>& nonces) { impl_->forget(nonces); }
WallTime ServerNonceManager::forgotten_through() const { return impl_->forgotten_through(); }
void ServerNonceManager::forgot_through(WallTime promise) { impl_->forgot_through(promise); }
void ServerNonceManager::stop() { impl_->stop(); }
NonceCounts ServerNonceManager::counts() const { return impl_->counts(); }

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// The handlers of the methods, and the two timers: one forgets old nonces, one looks after
// sessions.

#include "service.h"

#include <pv2/idempotency/client_sessions.h>
#include <pv2/idempotency/nonce_rows.h>
#include <pv2/idempotency/row_log.h>
#include <pv2/idempotency/server_nonce_manager.h>
#include <pv2/remote/once.h>
#include <pv2/remote/session_methods.h>
#include <pv2/rpc/rpc_server.h>

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "copy_call.h"
#include "engine_way.h"
#include "requests.h"
#include "values.h"

namespace counter {
namespace {

using pv2::IncomingCall;
using pv2::Result;
using pv2::RowBatch;
using pv2::Status;

// Of nonces; their deletion is one batch, which other operations wait for.
constexpr std::size_t kSweptAtOnce = 10'000;
constexpr pv2::Duration kMaintainPeriod = std::chrono::seconds(10);

}  // namespace

/// Shared with what the transport and the log still have to call. Declared in the order in which
/// each part needs the ones above it.
class CounterService::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(ServiceOptions options) : loop_(*options.transport), options_(std::move(options)) {}

  Status open();
  void close();

  [[nodiscard]] const std::string& address() const noexcept { return server_->address(); }
  [[nodiscard]] ServiceCounts counts() const {
    return {.calls = server_->counts().calls, .runs = runs_.load(std::memory_order_relaxed)};
  }
  [[nodiscard]] pv2::ProcedureStore& store() noexcept { return rows_->store(); }

 private:
  [[nodiscard]] pv2::RpcMethods methods();
  template <class Call>
  void add(Call call);
  template <class Call>
  void append(Call call);
  template <class Call>
  void finish(Call call, RowBatch effect, pv2::Response outcome,
              std::function<void(std::uint64_t)> is_durable);
  void read_counter(IncomingCall call) const;
  void read_text(IncomingCall call) const;

  void sweep();
  void maintain();
  void sweep_later();
  void maintain_later();
  void fail(const Status& why);

  pv2::Transport& loop_;
  ServiceOptions options_;
  std::atomic<std::uint64_t> runs_ = 0;  // counted on the loop's thread, read on any
  std::atomic<bool> has_failed_ = false;
  Values values_;
  std::unique_ptr<pv2::ServerNonceManager> nonces_;
  std::unique_ptr<pv2::StoreRows> rows_;
  std::unique_ptr<pv2::ClientSessions> sessions_;
  std::unique_ptr<EngineWay> engine_;
  std::unique_ptr<pv2::RpcServer> server_;
  pv2::TimerId sweep_timer_;
  pv2::TimerId maintain_timer_;
  bool is_closed_ = false;
};

Status CounterService::Core::open() {
  auto rows = pv2::StoreRows::open(std::move(options_.store));
  if (!rows.ok()) return rows.status();
  rows_ = *std::move(rows);
  if (Status status = values_.load(*rows_); !status.ok()) return status;

  nonces_ = std::make_unique<pv2::ServerNonceManager>(pv2::NonceManagerOptions{
      .clock = options_.clock, .retention = options_.retention, .skew_max = options_.skew_max});
  if (Status status = pv2::load_nonces(rows_->store(), *nonces_); !status.ok()) return status;

  pv2::SessionOptions session_options;
  session_options.clock = options_.clock;
  auto sessions = pv2::ClientSessions::load(*rows_, session_options);
  if (!sessions.ok()) return sessions.status();
  sessions_ = *std::move(sessions);

  if (options_.engine_store != nullptr) {
    auto engine = EngineWay::open(std::move(options_.engine_store), options_.log,
                                  [this](const Status& why) { fail(why); });
    if (!engine.ok()) return engine.status();
    engine_ = *std::move(engine);
  }
  // The server keeps the transport, and this object must not: tasks of the transport keep this.
  auto server = pv2::RpcServer::open({.transport = std::move(options_.transport),
                                      .address = options_.listen,
                                      .methods = methods(),
                                      .log = options_.log});
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  pv2::run_on_loop(loop_, [this] {
    sweep_later();
    maintain_later();
  });
  return {};
}

// First no more calls come, then no more commits end; then nobody owns a nonce.
void CounterService::Core::close() {
  server_.reset();
  engine_.reset();
  pv2::run_on_loop(loop_, [this] {
    is_closed_ = true;
    loop_.cancel(sweep_timer_);
    loop_.cancel(maintain_timer_);
  });
  sessions_.reset();
  rows_.reset();
  nonces_.reset();
}

pv2::RpcMethods CounterService::Core::methods() {
  pv2::RpcMethods methods;
  // The handlers live as long as the server, which close() ends first.
  if (options_.dedup == Dedup::kOn) {
    const auto add_once = [this](pv2::OnceCall call) { add(std::move(call)); };
    const auto append_once = [this](pv2::OnceCall call) { append(std::move(call)); };
    methods["counter.add"] = pv2::once_by_nonce(*nonces_, loop_, add_once);
    methods["text.append"] = pv2::once_by_nonce(*nonces_, loop_, append_once);
    methods["session.counter.add"] = pv2::once_in_session(*sessions_, loop_, add_once);
    methods["session.text.append"] = pv2::once_in_session(*sessions_, loop_, append_once);
  } else {
    methods["counter.add"] = methods["session.counter.add"] =
        each_copy([this](CopyCall call) { add(std::move(call)); });
    methods["text.append"] = methods["session.text.append"] =
        each_copy([this](CopyCall call) { append(std::move(call)); });
  }
  pv2::add_session_methods(methods, *sessions_);
  if (engine_ != nullptr) engine_->add_to(methods);
  methods["counter.get"] = [this](IncomingCall call) { read_counter(std::move(call)); };
  methods["text.get"] = [this](IncomingCall call) { read_text(std::move(call)); };
  return methods;
}

// --- the operations

template <class Call>
void CounterService::Core::add(Call call) {
  const auto request = parse_add(call.call().body());
  if (!request.ok()) return call.refuse(request.status());
  RowBatch effect;
  auto outcome = values_.add(*request, effect);
  finish(std::move(call), std::move(effect), std::move(outcome),
         [this, name = request->name](std::uint64_t value) {
           values_.counter_is_durable(name, value);
         });
}

template <class Call>
void CounterService::Core::append(Call call) {
  const auto request = parse_append(call.call().body());
  if (!request.ok()) return call.refuse(request.status());
  RowBatch effect;
  auto outcome = values_.append(*request, effect);
  finish(std::move(call), std::move(effect), std::move(outcome),
         [this, name = request->name](std::uint64_t size) { values_.text_is_durable(name, size); });
}

template <class Call>
void CounterService::Core::finish(Call call, RowBatch effect, pv2::Response outcome,
                                  std::function<void(std::uint64_t)> is_durable) {
  runs_.fetch_add(1, std::memory_order_relaxed);
  call.save(effect, outcome);
  std::optional<std::uint64_t> value;  // none: it has failed, and changes nothing
  if (outcome.ok()) value = parse_number(*outcome);
  rows_->commit(std::move(effect), [self = shared_from_this(), call, value,
                                    is_durable = std::move(is_durable)](Status status) mutable {
    // Before the answer, so that a client that has it reads what it did.
    if (status.ok() && value) {
      self->loop_.post(
          [self, value = *value, is_durable = std::move(is_durable)] { is_durable(value); });
    }
    call.committed(status);
    if (!status.ok()) self->fail(status);
  });
}

void CounterService::Core::read_counter(IncomingCall call) const {
  const auto request = parse_read(call.body());
  if (!request.ok()) return call.fail(request.status());
  call.reply(std::to_string(values_.counter(request->name)));
}

void CounterService::Core::read_text(IncomingCall call) const {
  const auto request = parse_read(call.body());
  if (!request.ok()) return call.fail(request.status());
  const std::string_view text = values_.text(request->name);
  call.reply(request->from < text.size() ? text.substr(request->from, kReadBytesMax)
                                         : std::string_view());
}

// --- what is done from time to time

void CounterService::Core::sweep_later() {
  if (is_closed_) return;
  const auto due = pv2::later(loop_.clock().steady_now(), options_.retention / 5);
  sweep_timer_ = loop_.call_at(due, [this] { sweep(); });
}

// The rows go first: after forget() a new operation may have the same nonce, and a row. The next
// sweep is not begun before this one has ended.
void CounterService::Core::sweep() {
  std::vector<pv2::Nonce> old = nonces_->expired(kSweptAtOnce);
  if (old.empty()) return sweep_later();
  RowBatch deletions;
  pv2::erase_nonce_rows(*nonces_, old, deletions);
  rows_->commit(std::move(deletions),
                [self = shared_from_this(), old = std::move(old)](const Status& status) {
                  if (!status.ok()) return self->fail(status);
                  const bool is_full = old.size() == kSweptAtOnce;
                  self->loop_.post([self, old, is_full] {
                    if (self->is_closed_) return;
                    self->nonces_->forget(old);
                    is_full ? self->sweep() : self->sweep_later();
                  });
                });
}

void CounterService::Core::maintain_later() {
  if (is_closed_) return;
  const auto due = pv2::later(loop_.clock().steady_now(), kMaintainPeriod);
  maintain_timer_ = loop_.call_at(due, [this] { maintain(); });
}

void CounterService::Core::maintain() {
  sessions_->maintain([self = shared_from_this()](const Status& status) {
    if (!status.ok()) return self->fail(status);
    self->loop_.post([self] { self->maintain_later(); });
  });
}

void CounterService::Core::fail(const Status& why) {
  if (has_failed_.exchange(true) || !options_.on_failure) return;
  options_.on_failure(why);
}

// --- the verbs

CounterService::CounterService(std::shared_ptr<pv2::Transport> transport,
                               std::shared_ptr<Core> core)
    : transport_(std::move(transport)), core_(std::move(core)) {}

Result<std::unique_ptr<CounterService>> CounterService::open(ServiceOptions options) {
  std::shared_ptr<pv2::Transport> transport = options.transport;
  auto core = std::make_shared<Core>(std::move(options));
  auto service = std::unique_ptr<CounterService>(new CounterService(std::move(transport), core));
  if (Status status = core->open(); !status.ok()) return status.with_context("the counter service");
  return service;
}

CounterService::~CounterService() { core_->close(); }

const std::string& CounterService::address() const noexcept { return core_->address(); }
ServiceCounts CounterService::counts() const { return core_->counts(); }
pv2::ProcedureStore& CounterService::store() noexcept { return core_->store(); }

}  // namespace counter

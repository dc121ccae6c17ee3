// SPDX-License-Identifier: Apache-2.0
//
// An event of a stream waits in the queue of that stream, and a turn for it in the inbox. A paused
// stream lets its turn pass, and asks for new ones when it goes on.

#include "cluster/master/process_transport.h"

#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace pv2::testing {

class ProcessTransport::State {
 public:
  using Task = std::function<void()>;
  struct Timer {
    TimerId below;
    Task task;
  };

  State(std::shared_ptr<Transport> given_below, Route given_route)
      : below(std::move(given_below)), route(std::move(given_route)) {}

  void push(Task task) {
    if (!is_dead) inbox.push_back(std::move(task));
  }
  void run_timer(std::uint64_t id) {
    const auto found = timers.find(id);
    if (found == timers.end()) return;
    const Task task = std::move(found->second.task);
    timers.erase(found);
    task();
  }
  void cancel(std::uint64_t id) {
    const auto found = timers.find(id);
    if (found == timers.end()) return;
    // Destroyed at the end, when the map is whole again.
    const Timer timer = std::move(found->second);
    timers.erase(found);
    below->cancel(timer.below);
  }
  void clear() {
    const auto waiting = std::exchange(inbox, {});
    const auto timing = std::exchange(timers, {});
    for (const auto& [id, timer] : timing) below->cancel(timer.below);
  }

  const std::shared_ptr<Transport> below;
  const Route route;
  bool is_dead = false;
  bool is_silent = false;
  std::deque<Task> inbox;
  std::map<std::uint64_t, Timer> timers;
  std::uint64_t last_timer = 0;
  std::vector<std::shared_ptr<StreamListener>> unclosed;  // with their streams
};

/// Owned by the process; its inner part also by the turns in the inbox.
class ProcessTransport::InboxStream final : public Stream {
 public:
  InboxStream(std::shared_ptr<State> state, std::unique_ptr<Stream> below)
      : state_(std::move(state)), inner_(std::make_shared<Inner>()) {
    inner_->state = state_;
    inner_->below = std::move(below);
  }
  ~InboxStream() override {
    inner_->listener = nullptr;
    inner_->events.clear();
    inner_->state.reset();
    // Nobody closes it: the other end goes on to believe in it.
    if (state_->is_silent) {
      state_->unclosed.push_back(inner_);
    } else {
      inner_->below.reset();
    }
  }

  void start(StreamListener& listener) override {
    inner_->listener = &listener;
    inner_->below->start(*inner_);
  }
  void send(std::string& bytes) override {
    if (state_->is_dead) return bytes.clear();
    inner_->below->send(bytes);
  }
  [[nodiscard]] std::size_t unsent() const noexcept override { return inner_->below->unsent(); }
  void pause() override { inner_->is_paused = true; }
  void resume() override {
    inner_->is_paused = false;
    for (std::size_t i = 0; i < inner_->events.size(); ++i) inner_->ask_for_turn();
  }
  [[nodiscard]] std::string peer() const override { return inner_->below->peer(); }

 private:
  struct Inner final : StreamListener, std::enable_shared_from_this<Inner> {
    void on_bytes(std::string_view bytes) override {
      add([this, copy = std::string(bytes)] { listener->on_bytes(copy); });
    }
    void on_drained() override {
      add([this] { listener->on_drained(); });
    }
    void on_closed(const Status& why) override {
      add([this, why] { listener->on_closed(why); });
    }
    void add(std::function<void()> event) {
      if (listener == nullptr) return;
      events.push_back(std::move(event));
      ask_for_turn();
    }
    void ask_for_turn() {
      state->push([self = shared_from_this()] { self->take_turn(); });
    }
    void take_turn() {
      if (is_paused || events.empty() || listener == nullptr) return;
      const auto event = std::move(events.front());
      events.pop_front();
      event();
    }

    std::shared_ptr<State> state;
    std::unique_ptr<Stream> below;
    StreamListener* listener = nullptr;
    bool is_paused = false;
    std::deque<std::function<void()>> events;
  };

  const std::shared_ptr<State> state_;
  const std::shared_ptr<Inner> inner_;
};

ProcessTransport::ProcessTransport(std::shared_ptr<Transport> below, Route route)
    : state_(std::make_shared<State>(std::move(below), std::move(route))) {}

ProcessTransport::~ProcessTransport() { die(Death::kHeard); }

bool ProcessTransport::run_one() {
  if (state_->inbox.empty()) return false;
  const auto task = std::move(state_->inbox.front());
  state_->inbox.pop_front();
  task();
  return true;
}

void ProcessTransport::die(Death death) {
  if (state_->is_dead) return;
  state_->is_dead = true;
  state_->is_silent = death == Death::kSilent;
  state_->clear();
}

void ProcessTransport::post(std::function<void()> task) { state_->push(std::move(task)); }
bool ProcessTransport::on_loop() const noexcept { return state_->below->on_loop(); }
Clock& ProcessTransport::clock() const noexcept { return state_->below->clock(); }

TimerId ProcessTransport::call_at(SteadyTime when, std::function<void()> task) {
  if (state_->is_dead) return {};
  const std::uint64_t id = ++state_->last_timer;
  const TimerId below = state_->below->call_at(
      when, [state = state_, id] { state->push([&state = *state, id] { state.run_timer(id); }); });
  state_->timers[id] = {below, std::move(task)};
  return {id};
}

void ProcessTransport::cancel(TimerId timer) { state_->cancel(timer.value); }

Result<std::unique_ptr<StreamAcceptor>> ProcessTransport::listen(std::string_view address,
                                                                 Accept accept) {
  const auto taker = std::make_shared<const Accept>(std::move(accept));
  // An acceptor that is gone takes nothing, also not what has waited.
  return state_->below->listen(
      address, [state = state_, weak = std::weak_ptr(taker), taker](std::unique_ptr<Stream> below) {
        const auto stream = std::make_shared<std::unique_ptr<Stream>>(
            std::make_unique<InboxStream>(state, std::move(below)));
        state->push([weak, stream] {
          if (const auto here = weak.lock()) (*here)(std::move(*stream));
        });
      });
}

void ProcessTransport::connect(std::string_view address, Duration timeout, Connected connected) {
  if (state_->is_dead) return;
  const std::string target =
      state_->route ? state_->route(std::string(address)) : std::string(address);
  state_->below->connect(target, timeout,
                         [state = state_, taker = std::make_shared<const Connected>(std::move(
                                              connected))](Result<std::unique_ptr<Stream>> below) {
                           if (!below.ok()) {
                             return state->push([taker, why = below.status()] { (*taker)(why); });
                           }
                           const auto stream = std::make_shared<std::unique_ptr<Stream>>(
                               std::make_unique<InboxStream>(state, *std::move(below)));
                           state->push([taker, stream] { (*taker)(std::move(*stream)); });
                         });
}

}  // namespace pv2::testing

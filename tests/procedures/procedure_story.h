// SPDX-License-Identifier: Apache-2.0
//
// ProcedureStory: a plot with the machine crashing before and after every store write, and with
// every step running twice. The cluster outlives the crashes, so an effect that is made twice or
// half stays visible in it. In a second kind of story the client also aborts the procedure while a
// given step is its current one, so that the crashes hit the rollback.

#pragma once

#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "procedure_plot.h"
#include "support/crash_everywhere.h"

namespace pv2::testing {

/// How the procedures of a plot are disturbed besides the crashes. A plain value.
struct StoryOptions {
  Delivery delivery = Delivery::kInline;
  std::optional<std::uint32_t> abort_in{};  ///< The subject is aborted when this step is current.
};

/// Owned by one thread.
class ProcedureStory final : public CrashStory {
 public:
  ProcedureStory(const ProcedurePlot& plot, StoryOptions options)
      : plot_(plot), options_(options), cluster_(options.delivery) {
    for (const std::string& server : plot_.servers) cluster_.add_server(server);
    start_next();
  }

  void add_types(ProcedureRegistry& registry) override {
    add_cluster_procedures(registry, cluster_.ports());
  }
  void begin_life(ProcedureExecutor& executor) override {
    abort_sent_ = false;
    for (KeyedClient& client : clients_) client.begin_life();
    send_last(executor);
  }
  bool stir(ProcedureExecutor& executor) override {
    // A report is repeated until it is acknowledged. Sent before the answers are delivered, it
    // would be the only thing that happens in a life that ends with its first commit.
    if (cluster_.deliver_all() > 0 || cluster_.deliver_reports(executor) > 0) return true;
    if (!clients_.back().result() || clients_.size() > plot_.before.size()) return false;
    start_next();
    send_last(executor);
    return true;
  }
  bool after_turn(ProcedureExecutor& executor) override {
    if (!options_.abort_in || abort_sent_ || !is_subject() || !clients_.back().id()) return false;
    const Result<ProcedureInfo> now = executor.inspect().describe(clients_.back().id());
    if (!now.ok() || now->undo || now->step != *options_.abort_in) return false;
    abort_sent_ = true;
    executor.async().abort(clients_.back().id(), {.reason = "the story says so", .who = "story"},
                           {});
    return true;
  }
  void check_end(CrashEnd& end) override {
    Findings& findings = end.findings;
    for (const KeyedClient& client : clients_) {
      if (!client.trouble().empty()) findings.add(client.trouble());
      if (!client.result()) return findings.add("a client was never told a result");
    }
    findings.expect(is_subject(), "the subject was submitted");
    for (std::size_t i = 0; i < plot_.before.size(); ++i) {
      findings.expect(
          clients_[i].result()->state == ProcedureState::kSuccess,
          plot_.before[i].type + " succeeds: " + clients_[i].result()->status.to_string());
    }
    const ProcedureResult& result = *clients_.back().result();
    if (result.state == ProcedureState::kSuccess) return check_success(plot_, cluster_, findings);
    findings.expect(options_.abort_in && result.status.code() == StatusCode::kAborted,
                    "the subject succeeds: " + result.status.to_string());
    findings.expect(show(cluster_.snapshot()) == before_,
                    "an aborted procedure leaves what it found:\n" + before_ + "but it left:\n" +
                        show(cluster_.snapshot()));
  }
  EndState end_state() override {
    // Whether an abort comes in time depends on the crash.
    if (options_.abort_in) return {};
    return {.world = show(cluster_.snapshot()),
            .id = clients_.back().id(),
            .result = clients_.back().result() ? clients_.back().result()->status.to_string() : ""};
  }

 private:
  [[nodiscard]] bool is_subject() const { return clients_.size() == plot_.before.size() + 1; }

  void start_next() {
    clients_.emplace_back(Nonce{1, clients_.size() + 1});
    if (!is_subject()) return;
    if (plot_.arrange) plot_.arrange(cluster_);
    before_ = show(cluster_.snapshot());
  }
  void send_last(ProcedureExecutor& executor) {
    const PlotOperation& now = is_subject() ? plot_.subject : plot_.before[clients_.size() - 1];
    now.send(clients_.back(), executor, cluster_);
  }

  const ProcedurePlot& plot_;
  const StoryOptions options_;
  MemoryCluster cluster_;
  std::deque<KeyedClient> clients_;  // of the operations that were begun
  std::string before_;               // the cluster when the subject was submitted
  bool abort_sent_ = false;          // in this life
};

/// Crashes the machine everywhere while the plot is played. The cluster answers at once, or only
/// when nothing else moves.
inline void check_crashes(const ProcedurePlot& plot) {
  for (const Delivery delivery : {Delivery::kInline, Delivery::kQueued}) {
    const std::size_t plays = check_everywhere(
        [&] {
          return std::make_unique<ProcedureStory>(plot, StoryOptions{delivery, {}});
        },
        {.leveldb = false});
    CHECK(plays > 10);
  }
}

/// The same, with an abort while each step of the subject is the current one.
inline void check_crashes_in_rollback(const ProcedurePlot& plot) {
  for (const StepInfo& step : plot.subject.steps) {
    CAPTURE(step.name);
    (void)check_everywhere(
        [&] {
          return std::make_unique<ProcedureStory>(plot, StoryOptions{.abort_in = step.number});
        },
        {.leveldb = false});
  }
}

}  // namespace pv2::testing

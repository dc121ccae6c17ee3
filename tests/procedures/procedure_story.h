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

/// The cluster in which the subject of a plot begins. What comes before is run on a store of its
/// own, where nothing crashes. Owned by one thread.
class PlotCluster {
 public:
  PlotCluster(const ProcedurePlot& plot, Delivery delivery) : cluster_(delivery, plot.first) {
    for (const std::string& server : plot.servers) cluster_.add_server(server);
    if (!plot.before.empty()) {
      DeterministicExecutor executor(cluster_);
      executor.open();
      for (const PlotOperation& operation : plot.before) {
        const Result<ProcedureId> id = operation.submit(executor, cluster_);
        REQUIRE(id.ok());
        executor.run();
        REQUIRE(executor.result(*id).status.to_string() == "OK");
      }
      cluster_.forget_effects();
    }
    if (plot.arrange) plot.arrange(cluster_);
    before_ = show(cluster_.snapshot());
  }

  [[nodiscard]] MemoryCluster& operator*() { return cluster_; }
  [[nodiscard]] MemoryCluster* operator->() { return &cluster_; }
  /// What there was before the subject, in words.
  [[nodiscard]] const std::string& before() const { return before_; }

 private:
  MemoryCluster cluster_;
  std::string before_;
};

/// Owned by one thread.
class ProcedureStory final : public CrashStory {
 public:
  ProcedureStory(const ProcedurePlot& plot, StoryOptions options)
      : plot_(plot), options_(options), cluster_(plot, options.delivery) {}

  void add_types(ProcedureRegistry& registry) override {
    add_cluster_procedures(registry, cluster_->ports());
  }
  void begin_life(ProcedureExecutor& executor) override {
    abort_sent_ = false;
    client_.begin_life();
    plot_.subject.send(client_, executor, *cluster_);
  }
  bool stir(ProcedureExecutor& executor) override {
    if (cluster_->deliver_one()) return true;
    if (cluster_->unsent_reports(executor) == 0) return false;
    cluster_->deliver_report(executor, 0);
    return true;
  }
  bool after_turn(ProcedureExecutor& executor) override {
    if (!options_.abort_in || abort_sent_ || !client_.id()) return false;
    const Result<ProcedureInfo> now = executor.inspect().describe(client_.id());
    if (!now.ok() || now->undo || now->step != *options_.abort_in) return false;
    abort_sent_ = true;
    executor.async().abort(client_.id(), {.reason = "the story says so", .who = "story"}, {});
    return true;
  }
  void check_end(CrashEnd& end) override {
    Findings& findings = end.findings;
    if (!client_.trouble().empty()) findings.add(client_.trouble());
    if (!client_.result()) return findings.add("the client was never told a result");
    const ProcedureResult& result = *client_.result();
    if (result.state == ProcedureState::kSuccess) return check_success(plot_, *cluster_, findings);
    findings.expect(options_.abort_in && result.status.code() == StatusCode::kAborted,
                    "the subject succeeds: " + result.status.to_string());
    const std::string after = show(cluster_->snapshot());
    findings.expect(after == cluster_.before(), "an aborted procedure leaves what it found:\n" +
                                                    cluster_.before() + "but it left:\n" + after);
  }
  EndState end_state() override {
    // Whether an abort comes in time depends on the crash.
    if (options_.abort_in) return {};
    return {.world = show(cluster_->snapshot()),
            .id = client_.id(),
            .result = client_.result() ? client_.result()->status.to_string() : ""};
  }

 private:
  const ProcedurePlot& plot_;
  const StoryOptions options_;
  PlotCluster cluster_;
  KeyedClient client_{Nonce{1, 1}};
  bool abort_sent_ = false;  // in this life
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

/// The same, on LevelDB too.
inline void check_crashes_on_disk(const ProcedurePlot& plot) {
  const std::size_t plays = check_everywhere(
      [&] { return std::make_unique<ProcedureStory>(plot, StoryOptions{}); }, {.leveldb = true});
  CHECK(plays > 20);
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

/// The same, on LevelDB too, with an abort while each step is the current one up to the point of no
/// return.
inline void check_crashes_in_rollback_on_disk(const ProcedurePlot& plot) {
  for (const StepInfo& step : plot.subject.steps) {
    CAPTURE(step.name);
    (void)check_everywhere(
        [&] {
          return std::make_unique<ProcedureStory>(plot, StoryOptions{.abort_in = step.number});
        },
        {.leveldb = true});
    if (step.kind == kPointOfNoReturn) break;
  }
}

}  // namespace pv2::testing

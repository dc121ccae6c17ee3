// SPDX-License-Identifier: Apache-2.0
//
// Drills: a plot is played without crashes, and one thing is done to it at a chosen moment. Either
// one call of a port fails, in each way in which it can, or the procedure is aborted while a given
// step waits. What must come out does not depend on the moment.

#pragma once

#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cluster_faults.h"
#include "procedure_plot.h"
#include "pv2/testing/seeds.h"
#include "support/catch.h"

namespace pv2::testing {

/// A plot up to its subject. Owned by one thread.
class ProcedureDrill {
 public:
  explicit ProcedureDrill(const ProcedurePlot& plot)
      : plot_(plot), cluster_(Delivery::kQueued, plot.first), executor_(cluster_) {
    for (const std::string& server : plot.servers) cluster_.add_server(server);
    executor_.open();
    for (const PlotOperation& operation : plot.before) {
      const Result<ProcedureId> id = operation.submit(executor_, cluster_);
      REQUIRE(id.ok());
      executor_.run();
      REQUIRE(executor_.result(*id).status.to_string() == "OK");
    }
    if (plot.arrange) plot.arrange(cluster_);
    before_ = show(cluster_.snapshot());
  }

  /// Submits the subject and runs to the end, at most ten simulated minutes; calls `watch` before,
  /// and after each turn and each answer.
  void run(const std::function<void()>& watch) {
    watch();
    const Result<ProcedureId> id = plot_.subject.submit(executor_, cluster_);
    REQUIRE(id.ok());
    id_ = *id;
    for (int second = 0; second < 600;) {
      watch();
      if (executor_->run_until_idle(1) > 0) continue;
      if (cluster_.deliver_one() || cluster_.deliver_reports(*executor_) > 0) continue;
      if (executor_->inspect().live_procedures() == 0) return;
      executor_.let_pass(std::chrono::seconds(1));
      ++second;
    }
    const auto left = executor_->inspect().list();
    INFO(left.front().type + " in " + left.front().step_name + ": " +
         left.front().error.to_string());
    REQUIRE(left.empty());
  }
  /// Whether the subject has begun its step `step` and waits there for something.
  [[nodiscard]] bool waits_in(std::uint32_t step) const {
    if (!id_) return false;
    const Result<ProcedureInfo> now = executor_->inspect().describe(id_);
    return now.ok() && !now->undo && now->step == step &&
           (cluster_.undelivered() > 0 || now->state != ProcedureState::kRunnable);
  }
  /// The answer arrives in `answer` when it is known.
  void abort(const std::shared_ptr<std::optional<Status>>& answer) {
    executor_->async().abort(id_, {.reason = "the drill says so", .who = "drill"},
                             [answer](const Status& status) { *answer = status; });
  }

  void check_success() {
    CHECK(result().status.to_string() == "OK");
    Findings findings;
    testing::check_success(plot_, cluster_, findings);
    CHECK(findings.words() == "");
  }
  void check_undone() {
    CHECK(result().state == ProcedureState::kRolledBack);
    CHECK(result().status.code() == StatusCode::kAborted);
    CHECK(show(cluster_.snapshot()) == before_);
  }

  void check_refused(StatusCode code, const std::string& why) {
    CHECK(result().state == ProcedureState::kRolledBack);
    CHECK(result().status.code() == code);
    CHECK_THAT(std::string(result().status.message()), ContainsSubstring(why));
    CHECK(show(cluster_.snapshot()) == before_);
    CHECK(executor_->inspect().locks().empty());
  }

  [[nodiscard]] MemoryCluster& cluster() { return cluster_; }
  [[nodiscard]] std::vector<ProcedureInfo> live() const { return executor_->inspect().list(); }
  [[nodiscard]] ProcedureResult result() const { return executor_.result(id_); }

 private:
  const ProcedurePlot& plot_;
  MemoryCluster cluster_;
  DeterministicExecutor executor_;
  ProcedureId id_;
  std::string before_;  // the cluster when the subject was submitted
};

/// Plays the plot once for each call that it makes, for each way in which that call can fail, with
/// the call failing once and several times. The end is always the same. Returns how many plays
/// there were, or with PV2_TEST_PART there would have been.
inline std::size_t check_faults(const ProcedurePlot& plot) {
  std::map<ClusterCall, std::size_t> made;
  {
    ProcedureDrill drill(plot);
    for (const ClusterCall call : all_calls()) made[call] = drill.cluster().calls(call);
    drill.run([] {});
    drill.check_success();
    for (auto& [call, count] : made) count = drill.cluster().calls(call) - count;
  }
  std::size_t plays = 0;
  for (const auto& [call, count] : made) {
    for (std::size_t nth = 0; nth < count; ++nth) {
      for (const ClusterFault fault : faults_of(call)) {
        for (const unsigned times : {1u, 4u}) {
          if (plays++ % test_part() != 0) continue;
          INFO(to_string(call) << ", call " << nth << ", fault " << static_cast<int>(fault)
                               << ", times " << times);
          ProcedureDrill drill(plot);
          const std::size_t from = drill.cluster().calls(call) + nth;
          bool failed = false;
          drill.run([&, call = call] {
            if (failed || drill.cluster().calls(call) < from) return;
            failed = true;
            drill.cluster().fail_next(call, fault, times);
          });
          drill.check_success();
        }
      }
    }
  }
  return plays;
}

/// A subject that is refused after some operations, and how. A plain value.
struct Refusal {
  PlotOperation subject;
  std::vector<PlotOperation> before{};
  StatusCode code = StatusCode::kOk;
  std::string why;  ///< A part of the message.
  std::function<void(MemoryCluster&)> arrange{};
};

/// Each of them is refused with its code and changes nothing; no lock is left.
inline void check_refused(const std::vector<Refusal>& refusals) {
  for (const Refusal& refused : refusals) {
    CAPTURE(refused.subject.type, refused.why);
    const ProcedurePlot plot{
        .subject = refused.subject, .before = refused.before, .arrange = refused.arrange};
    ProcedureDrill drill(plot);
    drill.run([] {});
    drill.check_refused(refused.code, refused.why);
  }
}

/// Aborts the subject while each of its steps waits. Before the point of no return everything is as
/// it was; from there on the abort is refused, and the procedure succeeds. Returns in how many
/// steps it was aborted: a step that waits for nothing is left out.
inline std::size_t check_aborts(const ProcedurePlot& plot) {
  std::size_t steps = 0;
  bool is_before = true;
  for (const StepInfo& step : plot.subject.steps) {
    CAPTURE(step.name);
    if (step.kind == kPointOfNoReturn) is_before = false;
    const auto answer = std::make_shared<std::optional<Status>>();
    ProcedureDrill drill(plot);
    bool sent = false;
    drill.run([&] {
      if (sent || !drill.waits_in(step.number)) return;
      sent = true;
      drill.abort(answer);
    });
    if (!sent) continue;
    ++steps;
    REQUIRE(answer->has_value());
    if (is_before) {
      CHECK((*answer)->to_string() == "OK");
      drill.check_undone();
    } else {
      CHECK((*answer)->code() == StatusCode::kFailedPrecondition);
      drill.check_success();
    }
  }
  return steps;
}

}  // namespace pv2::testing

// SPDX-License-Identifier: Apache-2.0
//
// What must be true when nothing moves any more: what each client was told, what is left of each
// tree, and every row.

#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>
#include <pv2/engine/procedure_info.h>

#include <algorithm>
#include <set>
#include <utility>

#include "pv2/testing/listing_words.h"
#include "simulation/mixed_story.h"

namespace pv2::testing {

void MixedStory::check_end(SimulationEnd& end) {
  orders_.check_audits(end.executor);
  check(end.executor, end.findings);
  check_repaired(end);
  for (const Client& client : clients_) {
    if (client.began) check_client(client, end);
  }
  check_rows(end);
}

// An operator that mends the cause and orders another attempt, or ends the parked tree, gets it to
// its end. The exception is trees that may wait for each other: each time another one may be
// parked.
void MixedStory::check_repaired(SimulationEnd& end) {
  if (world_.plan().ending == TaskPlan::Ending::kLeave || parked_.empty()) return;
  for (const std::size_t root : world_.plan().roots) {
    if (world_.fate(root).may_wait_in_a_cycle) return;
  }
  const ProcedureId root{*parked_.begin()};
  std::string words = "something is parked, and no order helps; " +
                      end.executor.operate().preview(root, last_order()).status().to_string();
  for (const ProcedureInfo& info : end.executor.inspect().list())
    words += "\n    " + in_words(info);
  end.findings.add(std::move(words));
}

void MixedStory::check_client(const Client& client, SimulationEnd& end) {
  const KeyedClient& keyed = client.keyed;
  const std::string who = "the client of " + in_words(world_.plan(), client.root);
  const auto aborted = aborts_.find(client.root);
  const TreeFate fate = world_.fate(client.root);
  if (!keyed.id()) {
    if (keyed.refused().ok()) end.findings.add(who + " was never answered");
    return;
  }
  if (!keyed.result()) {
    const auto info = end.executor.inspect().describe(keyed.id());
    // A cycle of trees that wait for each other while all are being undone is opened by parking
    // one.
    const bool may_park = fate.may_park || fate.may_wait_in_a_cycle;
    const bool waits = keeps_others_out_ && info.ok();
    if (!waits && (!info.ok() || !parked_.contains(keyed.id().value) || !may_park)) {
      end.findings.add(who + " got no result");
    }
    return;
  }
  const ProcedureResult& result = *keyed.result();
  const bool succeeded = result.state == ProcedureState::kSuccess;
  if (succeeded ? !fate.may_succeed : !fate.may_fail) {
    end.findings.add(who + " was told " + result.status.to_string());
  }
  if (succeeded && aborted != aborts_.end() && aborted->second.accepted) {
    end.findings.add(who + " had it aborted, and it succeeded");
  }
  if (succeeded && orders_.is_to_be_undone(keyed.id())) {
    end.findings.add(who + " had its rollback ordered, and it succeeded");
  }
  if (orders_.was_bypassed(keyed.id()) && (succeeded || !result.bypassed)) {
    end.findings.add(who + " had it bypassed, and was told " + result.status.to_string());
  }
  if (succeeded != result.status.ok()) end.findings.add(who + " was told a contradiction");
  if (succeeded && !world_.was_skipped(client.root) &&
      result.result != world_.plan().tasks[client.root].name() + " done") {
    end.findings.add(who + " was given '" + result.result + "'");
  }
  for (const Client& other : clients_) {
    if (other.root == client.root && other.keyed.id() && other.keyed.id() != keyed.id()) {
      end.findings.add("one nonce has two procedures, " + who);
    }
  }
  check_tree(client.root, succeeded, end);
}

void MixedStory::check_tree(std::size_t root, bool succeeded, SimulationEnd& end) {
  if (world_.may_be_cut(root)) return;  // an operator may have ended it at any point
  std::set<std::size_t> ran;
  for (const auto& [id, member] : world_.members()) {
    if (world_.plan().tasks[member.spec].root != root) continue;
    ran.insert(member.spec);
    check_member(id, member, succeeded, end);
  }
  for (const std::size_t task : world_.plan().tree(root)) {
    if (!succeeded || ran.contains(task) || may_be_undone_alone(task)) continue;
    end.findings.add("task " + std::to_string(task) + " never ran, though its tree succeeded");
  }
}

// True for a task in a domain whose failure is reported to its parent: the domain fails by itself,
// or is undone to open a cycle of waiting trees.
bool MixedStory::may_be_undone_alone(std::size_t task) const {
  const TaskPlan& plan = world_.plan();
  const std::size_t root = plan.tasks[task].root;
  const bool reports = plan.domain_of(task) != root;
  return plan.fails_and_is_reported(task) || (reports && world_.fate(root).may_wait_in_a_cycle);
}

// Whether it, or a member above it, is final and has finished.
bool MixedStory::is_kept(const TaskMember& member) const {
  if (member.finished && world_.plan().tasks[member.spec].kind == TaskSpec::Kind::kFinal) {
    return true;
  }
  const auto parent = world_.members().find(member.parent);
  return parent != world_.members().end() && is_kept(parent->second);
}

void MixedStory::check_member(std::uint64_t id, const TaskMember& member, bool succeeded,
                              SimulationEnd& end) {
  const TaskSpec& spec = world_.plan().tasks[member.spec];
  const bool repaired = world_.is_mended(spec.root) || world_.was_skipped(spec.root);
  const bool ended_alone = world_.was_ended(ProcedureId{id}) ||
                           (world_.plan().fails_and_is_reported(member.spec) && !repaired);
  const bool stays = spec.kind == TaskSpec::Kind::kCommitting || is_kept(member);
  for (std::uint32_t step = 1; step <= spec.steps.size(); ++step) {
    const auto effect = member.effects.find(step);
    const bool there = effect != member.effects.end() && effect->second;
    if (member.skipped.contains(step) || member.skipped_undos.contains(step)) continue;
    const std::string words =
        "step " + std::to_string(step) + " of procedure " + std::to_string(id);
    if (succeeded && !may_be_undone_alone(member.spec) &&
        (!there || !member.ended.contains(step))) {
      end.findings.add(words + " is missing, though its tree succeeded");
    }
    if ((!succeeded || ended_alone) && there && !stays && world_.undoable(spec, step)) {
      end.findings.add(words + " was not undone, though " +
                       (succeeded ? "its failure was reported" : "its tree was"));
    }
  }
}

// A row was written by exactly one run of its visit; a failed attempt leaves nothing.
void MixedStory::check_rows(SimulationEnd& end) {
  const Status scanned = end.store.scan(Space::kHost, "", [&](const StoredRow& row) {
    if (row.key.starts_with("bad/")) end.findings.add("a failed attempt left a row");
    if (row.key.starts_with("r/") && row.value != "1") {
      end.findings.add("the row " + std::string(row.key) + " is " + std::string(row.value));
    }
    return Status();
  });
  if (!scanned.ok()) end.findings.add(scanned.to_string());
  for (const auto& [id, member] : world_.members()) {
    const TaskSpec& spec = world_.plan().tasks[member.spec];
    for (const auto& [visit, life] : member.advanced) {
      // If no step of a task repeats, its visits are its steps.
      const bool repeats = std::any_of(spec.steps.begin(), spec.steps.end(), [](const auto& step) {
        return step.does == StepSpec::Does::kAgain;
      });
      if (life == 0) continue;  // it was skipped
      if (repeats || !spec.steps.at(visit).writes_row || visit >= member.visit) continue;
      const auto row =
          end.store.get(Space::kHost, "r/" + std::to_string(id) + "/" + std::to_string(visit));
      if (!row.ok() || !*row) {
        end.findings.add("the row of visit " + std::to_string(visit) + " of procedure " +
                         std::to_string(id) + " is missing, though a later one ran");
      }
    }
  }
}

}  // namespace pv2::testing

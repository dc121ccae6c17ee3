// SPDX-License-Identifier: Apache-2.0
//
// An explanation in words: one line per procedure and reason. The procedures form a graph, which is
// written as a tree: a procedure that has lines already is only named.

#include "pv2/engine/explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/names.h"

namespace pv2 {
namespace {

std::string names(const WaitReason& reason) {
  if (reason.on.empty()) return fmt::format("at least {} not named here", reason.more);
  std::string text = reason.on.size() + reason.more == 1 ? "procedure " : "procedures ";
  for (std::size_t i = 0; i < reason.on.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(reason.on[i].value);
  }
  if (reason.more != 0) text += fmt::format(" and at least {} more", reason.more);
  return text;
}

std::string time_span(Duration span) {
  const double seconds = static_cast<double>(span.count()) / 1e6;
  if (seconds < 1) return fmt::format("{:.3f} s", seconds);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string since(const WaitReason& reason) {
  return reason.age > Duration::zero() ? ", for " + time_span(reason.age) : std::string();
}

std::string until(const WaitReason& reason) {
  return reason.deadline ? ", at most for another " + time_span(reason.left) : std::string();
}

std::string several(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string queued(const WaitReason& reason) {
  return fmt::format("can run and waits for a worker: {} before it in its queue, {} in all",
                     several(reason.ahead, "other is", "others are"), reason.count);
}

std::string for_key(const WaitReason& reason, std::string_view behind) {
  return fmt::format("waits for {}{}{}{}", to_string(reason.key), behind, names(reason),
                     since(reason));
}

std::string limited(const WaitReason& reason) {
  const std::string place = "waits for a place at " + to_string(reason.key);
  if (reason.on.empty()) return place + ": none is to be had";
  return place + "; those there are belong to " + names(reason) + since(reason);
}

std::string backing_off(const WaitReason& reason) {
  return fmt::format("makes attempt {} in {}, after {}", reason.attempt, time_span(reason.left),
                     reason.error.to_string());
}

// What has no reason of its own, as there are many.
std::string others(std::size_t count, std::string_view one, std::string_view many) {
  return count == 0 ? "" : ", and " + several(count, one, many);
}

std::string event(const WaitReason& reason) {
  const std::string awaited = reason.name.empty() ? "awaits an event without a name"
                                                  : "awaits the event '" + reason.name + "'";
  return awaited + others(reason.count, "other event", "other events") + until(reason) +
         since(reason);
}

std::string offloaded(const WaitReason& reason) {
  std::string text = "awaits " + several(reason.count, "piece", "pieces") + " of offloaded work" +
                     until(reason) + since(reason);
  if (reason.heartbeat)
    text += ", with the last heartbeat " + time_span(*reason.heartbeat) + " ago";
  return text;
}

std::string committed_with(const WaitReason& reason) {
  return "has ended its step; its record goes to the store together with that of " + names(reason);
}

std::string around_in_flight(const WaitReason& reason) {
  const std::string text = "stands still until its tree is undone, or ended by an operator";
  if (reason.on.empty() && reason.more == 0) return text;
  return text + ", which waits for the step, or for what was offloaded, of " + names(reason);
}

std::string waiting_for_children(const WaitReason& reason) {
  const std::string text = "waits for " + several(reason.count, "child", "children") + " to finish";
  return (reason.more == 0 ? text
                           : text + fmt::format(", {} of them not named here", reason.more)) +
         since(reason);
}

class Writer {
 public:
  explicit Writer(const Explanation& explanation) : explanation_(explanation) {}

  std::string run() {
    if (!explanation_.procedures.empty()) write(explanation_.procedures.front(), 0);
    for (const auto& cycle : explanation_.cycles) {
      text_ += "they wait in a cycle: ";
      for (const ProcedureId id : cycle) text_ += std::to_string(id.value) + " -> ";
      text_ += std::to_string(cycle.front().value) + "\n";
    }
    if (explanation_.left_out != 0) {
      text_ += fmt::format("{} more have no line of their own here\n", explanation_.left_out);
    }
    text_.pop_back();  // the newline of the last line
    return std::move(text_);
  }

 private:
  void write(const Explanation::Procedure& procedure, std::size_t depth) {
    written_.push_back(procedure.id);
    for (const WaitReason& reason : procedure.reasons) {
      text_.append(2 * depth, ' ');
      text_ += fmt::format("{} ({}", name_of(procedure.id), procedure.type);
      if (!procedure.step_name.empty()) {
        text_ += (procedure.undo ? ", undoing step " : ", step ") + procedure.step_name;
      }
      text_ += ") " + to_string(reason) + "\n";
      for (const ProcedureId id : reason.on) {
        const Explanation::Procedure* const next = explanation_.find(id);
        const bool known = std::find(written_.begin(), written_.end(), id) != written_.end();
        if (next != nullptr && !known) write(*next, depth + 1);
      }
    }
  }

  const Explanation& explanation_;
  std::vector<ProcedureId> written_;
  std::string text_;
};

}  // namespace

const Explanation::Procedure* Explanation::find(ProcedureId id) const noexcept {
  const auto at = std::find_if(procedures.begin(), procedures.end(),
                               [&](const Procedure& procedure) { return procedure.id == id; });
  return at == procedures.end() ? nullptr : &*at;
}

std::string_view to_string(WaitReason::Kind kind) noexcept {
  switch (kind) {
    case WaitReason::Kind::kSubmitting:
      return "SUBMITTING";
    case WaitReason::Kind::kQueued:
      return "QUEUED";
    case WaitReason::Kind::kLock:
      return "LOCK";
    case WaitReason::Kind::kLine:
      return "LINE";
    case WaitReason::Kind::kLimit:
      return "LIMIT";
    case WaitReason::Kind::kProducer:
      return "PRODUCER";
    case WaitReason::Kind::kChildren:
      return "CHILDREN";
    case WaitReason::Kind::kTimer:
      return "TIMER";
    case WaitReason::Kind::kBackOff:
      return "BACK_OFF";
    case WaitReason::Kind::kValue:
      return "VALUE";
    case WaitReason::Kind::kEvent:
      return "EVENT";
    case WaitReason::Kind::kSignal:
      return "SIGNAL";
    case WaitReason::Kind::kOffload:
      return "OFFLOAD";
    case WaitReason::Kind::kRunning:
      return "RUNNING";
    case WaitReason::Kind::kTaken:
      return "TAKEN";
    case WaitReason::Kind::kRun:
      return "RUN";
    case WaitReason::Kind::kCommitting:
      return "COMMITTING";
    case WaitReason::Kind::kTreeInFlight:
      return "TREE_IN_FLIGHT";
    case WaitReason::Kind::kTurn:
      return "TURN";
    case WaitReason::Kind::kParked:
      return "PARKED";
    case WaitReason::Kind::kQuarantined:
      return "QUARANTINED";
    case WaitReason::Kind::kStopped:
      return "STOPPED";
    case WaitReason::Kind::kFinished:
      return "FINISHED";
  }
  return "UNKNOWN";
}

std::string to_string(const WaitReason& reason) {
  switch (reason.kind) {
    case WaitReason::Kind::kSubmitting:
      return "is being submitted: its first record is on its way to the store";
    case WaitReason::Kind::kQueued:
      return queued(reason);
    case WaitReason::Kind::kLock:
      return for_key(reason, ", held by ");
    case WaitReason::Kind::kLine:
      return for_key(reason, ", in line behind ");
    case WaitReason::Kind::kLimit:
      return limited(reason);
    case WaitReason::Kind::kProducer:
      return "waits for something that " + names(reason) + " has to do" + since(reason);
    case WaitReason::Kind::kChildren:
      return waiting_for_children(reason);
    case WaitReason::Kind::kTimer:
      return "waits for its deadline, in " + time_span(reason.left);
    case WaitReason::Kind::kBackOff:
      return backing_off(reason);
    case WaitReason::Kind::kValue:
      return "awaits " + several(reason.count, "value", "values") + until(reason) + since(reason);
    case WaitReason::Kind::kEvent:
      return event(reason);
    case WaitReason::Kind::kSignal:
      return "waits for a signal '" + reason.name + "'" +
             others(reason.count, "other signal", "other signals") + until(reason) + since(reason);
    case WaitReason::Kind::kOffload:
      return offloaded(reason);
    case WaitReason::Kind::kRunning:
      return "runs its step" + since(reason);
    case WaitReason::Kind::kTaken:
      return "was taken by a worker that runs the step of " + names(reason) + " first";
    case WaitReason::Kind::kRun:
      return committed_with(reason);
    case WaitReason::Kind::kCommitting:
      return "has ended its step; its record is on its way to the store";
    case WaitReason::Kind::kTreeInFlight:
      return around_in_flight(reason);
    case WaitReason::Kind::kTurn:
      return "waits while its tree is undone; it is the turn of " + names(reason);
    case WaitReason::Kind::kParked:
      return "is parked until somebody acts: " + reason.error.to_string();
    case WaitReason::Kind::kQuarantined:
      return "is quarantined until a program that understands it runs: " + reason.error.to_string();
    case WaitReason::Kind::kStopped:
      return "stands still with the executor: " + reason.error.to_string();
    case WaitReason::Kind::kFinished:
      return reason.error.ok() ? "has finished" : "has ended: " + reason.error.to_string();
  }
  return "does not go on for a reason that this version cannot name";
}

std::string to_string(const Explanation& explanation) {
  if (explanation.procedures.empty()) return "nothing is known";
  return Writer(explanation).run();
}

}  // namespace pv2

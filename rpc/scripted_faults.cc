// SPDX-License-Identifier: Apache-2.0
//
// ScriptedFaults: rules in their order; each counts what it sees, and goes when it is done.

#include "pv2/rpc/scripted_faults.h"

#include <utility>

namespace pv2 {
namespace {

template <class T, class U>
bool allows(const std::optional<T>& wanted, const U& is) {
  return !wanted || *wanted == is;
}

bool matches(const FaultRule& rule, const PassingFrame& frame) {
  return allows(rule.connection, frame.connection) && allows(rule.direction, frame.direction) &&
         (!rule.kind || rule.kind == frame.kind) && allows(rule.method, frame.method);
}

}  // namespace

Status ScriptedFaults::add(FaultRule rule) {
  if (Status status = check(rule.fate); !status.ok()) return status;
  if (rule.times == 0) return {StatusCode::kInvalidArgument, "fault rule: times is 0"};
  MutexLock lock(rules_mutex_);
  if (rules_.size() >= kRulesMax) {
    return {StatusCode::kResourceExhausted,
            "fault rule: " + std::to_string(kRulesMax) + " rules are not done"};
  }
  rules_.push_back(std::move(rule));
  return {};
}

std::size_t ScriptedFaults::rules_left() const {
  MutexLock lock(rules_mutex_);
  return rules_.size();
}

Fate ScriptedFaults::fate(const PassingFrame& frame) {
  MutexLock lock(rules_mutex_);
  for (auto rule = rules_.begin(); rule != rules_.end(); ++rule) {
    if (!matches(*rule, frame)) continue;
    if (rule->skip > 0) {
      --rule->skip;
      continue;
    }
    const Fate fate = rule->fate;
    if (--rule->times == 0) rules_.erase(rule);
    return fate;
  }
  return {};
}

}  // namespace pv2

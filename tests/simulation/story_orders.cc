// SPDX-License-Identifier: Apache-2.0
//
// Before an order is given, the world is told what effects may be seen; after it was acknowledged,
// which must be seen.

#include "simulation/story_orders.h"

#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>
#include <pv2/engine/procedure_info.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace pv2::testing {
namespace {

const std::string kWho = "operator";

std::string why_of(std::size_t number) { return "order " + std::to_string(number); }

// Every second order has a nonce.
bool has_nonce(std::size_t number) { return number % 2 == 0; }
Nonce nonce_of(std::size_t number) { return {17, number + 1}; }

// The first procedure that a line of a preview names.
ProcedureId named_in(const std::string& line) {
  constexpr std::string_view kProcedure = "procedure ";
  const std::size_t at = line.find(kProcedure);
  if (at == std::string::npos) return {};
  return ProcedureId{std::stoull(line.substr(at + kProcedure.size()))};
}

// The step that an order skips: "... did ONE, which ..." or "... failed at ONE, which ...".
std::uint32_t step_in(const std::string& line) {
  constexpr std::array<std::pair<std::string_view, std::uint32_t>, 7> kNames{{{"ONE", 1},
                                                                              {"TWO", 2},
                                                                              {"CHECK", 2},
                                                                              {"THREE", 3},
                                                                              {"COMMIT", 3},
                                                                              {"FOUR", 4},
                                                                              {"FIVE", 5}}};
  for (const auto& [name, step] : kNames) {
    if (line.find(" " + std::string(name) + ", which") != std::string::npos) return step;
  }
  return 0;
}

// For a bypass, the last line names the head of what ends; otherwise the first names the procedure
// that is repaired.
ProcedureId whom(RepairVerb verb, const std::vector<std::string>& lines) {
  if (verb == RepairVerb::kFailAndRollBack) return {};
  return named_in(verb == RepairVerb::kBypass ? lines.back() : lines.front());
}

// An answer that can be explained by a crash, a stop or a failed store.
bool is_unknown(const Status& answer) {
  return answer.code() == StatusCode::kUnknownOutcome || answer.code() == StatusCode::kIoError ||
         answer.code() == StatusCode::kStopping;
}

}  // namespace

void StoryOrders::begin_life(ProcedureExecutor& executor) {
  for (Order& order : orders_) {
    if (order.answer == Answer::kNone) order.answer = Answer::kUnknown;
  }
  check_audits(executor);
  for (std::size_t number = 0; number < orders_.size(); ++number) repeat(executor, number);
}

// An order that was answered is given again, as by somebody who has lost the answer. One that was
// refused may be carried out now, so only one that cannot be is given again: of a tree that has
// ended.
void StoryOrders::repeat(ProcedureExecutor& executor, std::size_t number) {
  const Order& order = orders_[number];
  if (!has_nonce(number) || acknowledged_.contains(order.root.value)) return;
  if (order.answer == Answer::kRefused) return repeat_refused(executor, number);
  if (order.answer != Answer::kDone) return;
  executor.operate().order_once(
      nonce_of(number), order.target, order.verb, {.who = kWho, .why = "again"},
      [this, number](const Result<Ordered>& answer) {
        const StatusCode code = answer.status().code();
        if (is_unknown(answer.status()) || code == StatusCode::kExpired) return;
        if (answer.ok() && answer->replayed) return;
        found_.add(why_of(number) + " was acknowledged, and its copy answered " +
                   (answer.ok() ? "as if it were new" : answer.status().to_string()));
      });
}

void StoryOrders::repeat_refused(ProcedureExecutor& executor, std::size_t number) {
  const Order& order = orders_[number];
  if (executor.inspect().describe(order.root).ok()) return;
  executor.operate().order_once(
      nonce_of(number), order.target, order.verb, {.who = kWho, .why = "again"},
      [this, number](const Result<Ordered>& answer) {
        if (!answer.ok()) return;
        found_.add(why_of(number) + " was refused, and its copy answered " +
                   (answer->replayed ? "that it was carried out" : "that it is done"));
      });
}

void StoryOrders::order(ProcedureExecutor& executor, RepairVerb verb, ProcedureId target,
                        std::size_t root, bool mends) {
  const auto info = executor.inspect().describe(target);
  if (!info.ok()) {
    return executor.operate().order(target, verb, {.who = kWho, .why = "late"},
                                    [this](const Status& answer) {
                                      if (answer.ok())
                                        found_.add("an order about what has ended was carried out");
                                    });
  }
  auto lines = executor.operate().preview(target, verb);
  while (lines.status().message().ends_with("ask again"))
    lines = executor.operate().preview(target, verb);
  Order order;
  order.verb = verb;
  order.target = target;
  order.root = info->root;
  order.preview = lines.status();
  if (mends) world_.mend(root);
  if (lines.ok()) {
    order.about = whom(verb, *lines);
    if (verb != RepairVerb::kFailAndRollBack && !order.about) {
      found_.add("a preview does not say whom it is about: " + lines->back());
      return;
    }
    order.waits = std::any_of(lines->begin(), lines->end(), [](const std::string& line) {
      return line.starts_with("the order waits until");
    });
    if (verb == RepairVerb::kSkipStep) order.step = step_in(lines->front());
    expect_effect(order, lines->front(), root);
  }
  const auto list = executor.inspect().list();
  order.goes_forward = std::none_of(list.begin(), list.end(), [&](const ProcedureInfo& one) {
    return one.root == info->root && one.parked;
  });
  const std::size_t number = orders_.size();
  orders_.push_back(std::move(order));
  const OperatorConsole console = executor.operate();
  const RepairNote note{.who = kWho, .why = why_of(number)};
  if (has_nonce(number)) {
    console.order_once(nonce_of(number), target, verb, note,
                       [this, &executor, number](const Result<Ordered>& answer) {
                         heard(number, answer.status());
                         if (orders_[number].answer == Answer::kRefused) {
                           repeat_refused(executor, number);
                         }
                       });
    return;
  }
  console.order(target, verb, note,
                [this, number](const Status& answer) { heard(number, answer); });
}

void StoryOrders::expect_effect(const Order& order, const std::string& line, std::size_t root) {
  const bool of_a_step = line.find("again, at which") != std::string::npos ||
                         line.find("counts as done") != std::string::npos;
  if (of_a_step) repaired_.insert(order.root.value);
  if (of_a_step) world_.resumes(root);
  switch (order.verb) {
    case RepairVerb::kRetryNow:
      return line.starts_with("the wait of") ? world_.hurry(order.about)
                                             : world_.begins_anew(order.about);
    case RepairVerb::kSkipStep:
      return of_a_step ? world_.skip_step(order.about, order.step)
                       : world_.skip_undo(order.about, order.step);
    case RepairVerb::kFailAndRollBack:
      return world_.may_be_aborted(root);
    case RepairVerb::kBypass:
      world_.may_be_aborted(root);
      return world_.cut(root);
  }
}

void StoryOrders::heard(std::size_t number, const Status& answer) {
  Order& order = orders_[number];
  if (is_unknown(answer)) return;
  const std::string words = std::string(to_string(order.verb)) + " of procedure " +
                            std::to_string(order.target.value) + " was answered " +
                            answer.to_string() + ", its preview " + order.preview.to_string();
  order.answer = answer.ok() ? Answer::kDone : Answer::kRefused;
  // An abort is a message, which may become durable too late. An order that ends a tree waits for
  // running steps; these may end the tree meanwhile, or a wider domain may fail. If the part that
  // it ends goes forward, it also waits until that part is stopped, even though no step runs.
  const bool is_overtaken = order.verb == RepairVerb::kBypass &&
                            answer.message().find("could be bypassed") != std::string_view::npos;
  const bool may_be_late =
      order.verb == RepairVerb::kFailAndRollBack || order.waits || is_overtaken;
  const bool too_late =
      may_be_late && order.preview.ok() && answer.code() == StatusCode::kFailedPrecondition;
  if (answer.code() != order.preview.code() && !too_late) found_.add(words);
  if (answer.ok()) was_done(order);
}

void StoryOrders::was_done(Order& order) {
  if (order.verb == RepairVerb::kFailAndRollBack && order.goes_forward) {
    undone_.insert(order.root.value);
  }
  if (order.verb != RepairVerb::kBypass) return;
  bypassed_.insert(order.about.value);
  world_.is_over(order.about);
}

void StoryOrders::check(ProcedureExecutor& executor) {
  if (bypassed_.empty()) return;
  for (const ProcedureInfo& info : executor.inspect().list()) {
    if (bypassed_.contains(info.root.value)) {
      found_.add("procedure " + std::to_string(info.id.value) + " is live, though it was bypassed");
    }
  }
  for (const LockInfo& lock : executor.inspect().locks()) {
    for (const LockInfo::Party& holder : lock.holders) {
      if (!world_.was_ended(holder.id)) continue;
      found_.add(to_string(lock.key) + " is held by procedure " + std::to_string(holder.id.value) +
                 ", which was bypassed");
    }
  }
}

void StoryOrders::check_audits(ProcedureExecutor& executor) {
  std::set<std::uint64_t> roots;
  for (const Order& order : orders_) roots.insert(order.root.value);
  for (const std::uint64_t root : roots) {
    if (!acknowledged_.contains(root)) check_audit(executor, ProcedureId{root});
  }
}

void StoryOrders::check_audit(ProcedureExecutor& executor, ProcedureId root) {
  const auto audit = executor.operate().audit(root);
  if (!audit.ok()) return found_.add(audit.status().to_string());
  std::map<std::string, const AuditEntry*> entries;
  for (const AuditEntry& entry : *audit) {
    if (!entries.emplace(entry.why, &entry).second) {
      found_.add("the audit of procedure " + std::to_string(root.value) + " has '" + entry.why +
                 "' twice");
    }
  }
  for (std::size_t number = 0; number < orders_.size(); ++number) {
    Order& order = orders_[number];
    if (order.root != root) continue;
    const auto found = entries.find(why_of(number));
    const bool there = found != entries.end();
    const bool right = order.answer == Answer::kDone      ? there
                       : order.answer == Answer::kRefused ? !there
                                                          : true;
    const std::string words = why_of(number) + " (" + std::string(to_string(order.verb)) +
                              " of procedure " + std::to_string(order.target.value) + ")";
    if (!right) {
      found_.add("the audit " + std::string(there ? "has " : "does not have ") + words);
    }
    if (!there) continue;
    const AuditEntry& entry = *found->second;
    const ProcedureId about = order.about ? order.about : entry.procedure;
    if (entry.verb != order.verb || entry.who != kWho || entry.procedure != about ||
        (order.step != 0 && entry.step != order.step)) {
      found_.add("the audit says something else of " + words);
    }
    if (order.answer == Answer::kUnknown) {
      order.answer = Answer::kDone;
      was_done(order);
    }
    entries.erase(found);
  }
  entries.erase("simulated");  // the reason of a client's abort, which is not one of these orders
  for (const auto& [why, entry] : entries) found_.add("nobody ordered '" + why + "'");
}

void StoryOrders::take_findings(Findings& findings) {
  for (const std::string& words : found_.list()) findings.add(words);
  found_ = Findings();
}

}  // namespace pv2::testing

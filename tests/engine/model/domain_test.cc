// SPDX-License-Identifier: Apache-2.0
//
// The tables of legal moves of a failure domain and of the phase of one execution.

#include "model/domain.h"

#include "model/phase.h"
#include "support/catch.h"
#include "support/in_child.h"

namespace pv2::testing::domain_test {
namespace {

constexpr DomainState kDomainStates[] = {DomainState::kForward,      DomainState::kStopped,
                                         DomainState::kFailed,       DomainState::kRollingBack,
                                         DomainState::kParkedInUndo, DomainState::kParkedBeyond,
                                         DomainState::kQuarantined,  DomainState::kOver};

TEST_CASE("a domain that is over stays over, and a quarantined one can only end") {
  for (const DomainState to : kDomainStates) {
    CHECK_FALSE(is_legal_move(DomainState::kOver, to));
    CHECK(is_legal_move(DomainState::kQuarantined, to) == (to == DomainState::kOver));
  }
}

TEST_CASE("every domain may end, and is undone only after it has failed") {
  for (const DomainState from : kDomainStates) {
    CHECK(is_legal_move(from, DomainState::kOver) == (from != DomainState::kOver));
    const bool plans = is_legal_move(from, DomainState::kRollingBack);
    CHECK(plans == (from == DomainState::kFailed || from == DomainState::kParkedInUndo));
  }
  CHECK_FALSE(is_legal_move(DomainState::kForward, DomainState::kParkedBeyond));
}

TEST_CASE("a domain is stopped in every state but forward and over") {
  for (const DomainState state : kDomainStates) {
    CHECK(is_stopped(state) == (state != DomainState::kForward && state != DomainState::kOver));
    if (is_parked(state) || is_undone(state)) CHECK(is_stopped(state));
  }
}

TEST_CASE("no phase moves back to inserting, and a dropping member only becomes idle") {
  for (const Phase from : {Phase::kInserting, Phase::kQueued, Phase::kInFlight, Phase::kWaiting,
                           Phase::kIdle, Phase::kDropping}) {
    CHECK_FALSE(is_legal_move(from, Phase::kInserting));
    CHECK(is_legal_move(from, Phase::kDropping) == (from == Phase::kQueued));
    CHECK(is_legal_move(Phase::kDropping, from) == (from == Phase::kIdle));
  }
}

TEST_CASE("a move that is not in the table ends the process") {
  const auto [text, aborted] = testing::in_child([] {
    StateOf<DomainState> state(DomainState::kOver);
    state.move_to(DomainState::kForward);
  });
  CHECK(aborted);
  CHECK_THAT(text, ContainsSubstring("a state moves along its table"));
}

}  // namespace
}  // namespace pv2::testing::domain_test

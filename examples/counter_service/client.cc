// SPDX-License-Identifier: Apache-2.0
//
// Makes up operations, and has them done.

#include "client.h"

#include <fmt/format.h>

#include <utility>

#include "requests.h"

namespace counter {
namespace {

/// The service's own rule has forbidden it, and each copy is told so.
bool is_definite(const pv2::CallOutcome& outcome) {
  return outcome.kind == pv2::CallOutcome::Kind::kFailed && !outcome.was_refused &&
         outcome.status.code() == pv2::StatusCode::kFailedPrecondition;
}

}  // namespace

Client::Client(std::uint64_t number, std::uint64_t seed, Work work, std::unique_ptr<Caller> caller,
               AnswerLedger& ledger, std::function<void()> on_answer)
    : number_(number),
      random_(seed),
      left_(work),
      ledger_(ledger),
      on_answer_(std::move(on_answer)),
      caller_(std::move(caller)) {}

void Client::go_on() {
  while (under_way_ < left_.in_flight && left_.increments + left_.appends > 0) {
    ++under_way_;
    random_.below(left_.increments + left_.appends) < left_.increments ? increment() : append();
  }
}

void Client::increment() {
  --left_.increments;
  AddRequest request;
  request.amount = 1 + random_.below(9);
  if (random_.below(8) == 0) {
    request.name = kPurse;
    request.not_above = left_.purse_limit;
  } else {
    request.name = std::string(1, static_cast<char>('a' + random_.below(left_.counters)));
  }
  caller_->add(request, [this, request](const pv2::CallOutcome& outcome) {
    if (outcome.ok()) {
      ledger_.added(request.name, request.amount, outcome.body);
    } else if (request.not_above && is_definite(outcome)) {
      ledger_.add_failed(request.name, request.amount, *request.not_above);
    } else {
      has_no_answer(outcome);
    }
    ended();
  });
}

void Client::append() {
  --left_.appends;
  AppendRequest request{.name = kDiary, .piece = fmt::format("{}.{};", number_, ++pieces_)};
  caller_->append(request, [this, request](const pv2::CallOutcome& outcome) {
    if (outcome.ok()) {
      ledger_.appended(request.name, request.piece, outcome.body);
    } else {
      has_no_answer(outcome);
    }
    ended();
  });
}

void Client::has_no_answer(const pv2::CallOutcome& outcome) {
  ledger_.contradiction(
      fmt::format("client {} has an operation that ended as {}", number_, pv2::to_string(outcome)));
}

void Client::ended() {
  --under_way_;
  on_answer_();
  go_on();
}

void Client::stop() {
  left_.increments = left_.appends = 0;
  caller_->end();
}

}  // namespace counter

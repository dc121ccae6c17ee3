// SPDX-License-Identifier: Apache-2.0
//
// pv2_remote.proto says what the messages are: protoc reads what we write, names each field of it,
// and we read what protoc writes. If protoc is not installed, the test says so and passes.

#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "listing_messages.h"
#include "operator_messages.h"
#include "support/catch.h"
#include "support/protoc.h"
#include "verb_messages.h"

namespace pv2::testing::remote_proto_test {
namespace {

using namespace std::chrono_literals;
using namespace pv2::remote;

std::string the_proto() {
  std::ifstream file(PV2_SOURCE_DIR "/remote/pv2_remote.proto");
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Message>
void compare(Protoc& protoc, const std::string& short_name, const Message& message) {
  const std::string name = "pv2.remote." + short_name;
  CAPTURE(name);
  const std::string ours = to_bytes(message);
  const std::string text = protoc.text_of(name, ours);
  CAPTURE(text);
  // What the .proto file has no name for, or another type, is printed under its number.
  CHECK_FALSE(std::regex_search(text, std::regex("(^|\n) *[0-9]+( \\{|:)")));

  const auto read = from_bytes<Message>(protoc.bytes_of(name, text));
  REQUIRE(read.status().to_string() == "OK");
  CHECK((to_bytes(*read) == ours));
}

const Status kError(StatusCode::kAborted, "the shop is closed");
constexpr WallTime kTime{1'700'000'000'000'000us};

ProcedureInfo info() {
  return {
      .id = {9},
      .parent = {8},
      .root = {7},
      .type = "shop.Order",
      .owner = "ann",
      .state = ProcedureState::kFailed,
      .step = 3,
      .step_name = "SHIP",
      .undo = true,
      .attempt = 4,
      .parked = true,
      .quarantined = true,
      .holds_locks = true,
      .locks = LockSet()
                   .table("ns", "t", LockMode::kExclusive)
                   .global("all", LockMode::kShared)
                   .scope(LockScope::kVisit),
      .error = kError,
      .undo_error = kError,
      .submitted = kTime,
      .updated = kTime + 1s,
      .history =
          {{.step = 1, .attempt = 2, .outcome = Outcome::Kind::kRetry, .at = kTime, .undo = true}},
      .children_done = 7,
      .children_total = 64,
      .progress = "7 of 64 regions",
      .fields = "{}",
      .fields_error = kError};
}

WaitReason reason() {
  return {.kind = WaitReason::Kind::kLock,
          .on = {{1}, {2}},
          .more = 3,
          .key = {ResourceClass::kTable, "ns:t"},
          .name = "go",
          .ahead = 4,
          .count = 5,
          .attempt = 6,
          .age = 7s,
          .deadline = kTime,
          .left = 8s,
          .error = kError,
          .heartbeat = 9s};
}

}  // namespace

TEST_CASE("the messages of a remote executor are those of its .proto file") {
  if (!has_protoc()) return;
  Protoc protoc(the_proto());
  compare(protoc, "Submit", SubmitMessage{"shop.Order", "\x08\x01", 5s, kTime});
  compare(protoc, "Submit", SubmitMessage{"shop.Order", "", {}, {}});
  compare(protoc, "Submitted", SubmittedMessage{{7}, true});
  compare(protoc, "Nonce", NonceMessage{UINT64_MAX, 1});
  compare(protoc, "Id", IdMessage{{7}});
  compare(protoc, "Result",
          ResultMessage{{{7}, ProcedureState::kRolledBack, kError, "r", true, kTime, kTime + 1s}});
  compare(protoc, "Abort", AbortMessage{{7}, "why", "who"});
  compare(protoc, "Aborted", AbortedMessage{true});
  compare(protoc, "Run", RunMessage{UINT64_MAX});
  compare(protoc, "Signal", SignalMessage{{7}, "go", "payload", 5});

  ListMessage list;
  list.filter = {.state = ProcedureState::kRunnable,
                 .type = "shop.Order",
                 .owner = "ann",
                 .root = {7},
                 .is_root = false,
                 .entity = ResourceKey{ResourceClass::kPeer, "p"},
                 .older_than = 5s,
                 .parked = true,
                 .quarantined = true,
                 .with_fields = true};
  list.after = {6};
  list.limit = 100;
  compare(protoc, "List", list);
  compare(protoc, "Page", PageMessage{{InfoMessage{info()}, InfoMessage{info()}}, {9}});

  Explanation explanation;
  explanation.procedures.push_back(
      {{7}, "shop.Order", ProcedureState::kRunnable, 2, "PACK", true, {reason(), reason()}});
  explanation.root_causes = {{8}, {9}};
  explanation.cycles = {{{1}, {2}}, {{3}, {4}}};
  explanation.left_out = 5;
  compare(protoc, "Explanation", ExplanationMessage{explanation});

  compare(protoc, "HistoryList",
          HistoryListMessage{{{{1, 2, Outcome::Kind::kRetry, kTime, true}}, {}}});
  const RemoteLock::Party party{{7}, LockMode::kExclusive, 5s, "shop.Order"};
  compare(protoc, "LockList",
          LockListMessage{{{{{ResourceClass::kTable, "ns:t"}, 3, {party}, {party, party}}}}, 9});
  compare(protoc, "Order", OrderMessage{{7}, RepairVerb::kSkipStep, "ann", "stuck", 3});
  compare(protoc, "Ordered", OrderedMessage{true});
  compare(protoc, "Preview", PreviewMessage{{"it ends", "its locks are released"}});
  compare(
      protoc, "Audit",
      AuditMessage{{{{RepairVerb::kBypass, {7}, 3, "ann", "stuck", kTime, {5, 6}, {8}, 2}}}, 4});
  compare(protoc, "AuditQuery", AuditQueryMessage{{7}, 5, 6});
}

TEST_CASE("messages of another version are read as far as that is safe") {
  Status odd(StatusCode::kAborted, "x");
  StatusMessage status(odd);
  status.code = 99;
  CHECK(status.status().to_string() == "INTERNAL: x");

  ResultMessage result;
  result.value.state = static_cast<ProcedureState>(77);
  CHECK(check(result).code() == StatusCode::kNotSupported);
  PageMessage page{{InfoMessage{info()}}, {}};
  CHECK(check(page).ok());
  page.procedures[0].value.history[0].outcome = static_cast<Outcome::Kind>(99);
  CHECK(check(page).code() == StatusCode::kNotSupported);
  ExplanationMessage explanation;
  explanation.value.procedures.emplace_back().reasons.push_back(reason());
  CHECK(check(explanation).ok());
  explanation.value.procedures[0].reasons[0].kind = static_cast<WaitReason::Kind>(99);
  CHECK(check(explanation).code() == StatusCode::kNotSupported);
  CHECK(check(OrderMessage{.id = {7}, .verb = static_cast<RepairVerb>(9)}).code() ==
        StatusCode::kNotSupported);
  LockListMessage locks{.locks = {{{.holders = {{.id = {7}}}}}}};
  CHECK(check(locks).ok());
  locks.locks[0].value.holders[0].mode = static_cast<LockMode>(9);
  CHECK(check(locks).code() == StatusCode::kNotSupported);
}

}  // namespace pv2::testing::remote_proto_test

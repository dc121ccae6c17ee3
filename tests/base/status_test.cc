// SPDX-License-Identifier: Apache-2.0
//
// Status, Result, and the two other ways in which base reports trouble: the log callback and the
// assertion.

#include "pv2/base/status.h"

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pv2/base/assert.h"
#include "pv2/base/log.h"
#include "support/catch.h"
#include "support/in_child.h"

namespace pv2::testing::status_test {

TEST_CASE("an exception says what its text is, also if it has none") {
  struct Silent final : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return nullptr; }
  };
  CHECK(text_of(std::runtime_error("no room")) == "no room");
  CHECK(text_of(Silent()) == "an exception that says nothing");
}

TEST_CASE("status codes keep their numbers and names, which are persisted and printed") {
  const std::pair<StatusCode, const char*> codes[] = {
      {StatusCode::kOk, "OK"},
      {StatusCode::kInvalidArgument, "INVALID_ARGUMENT"},
      {StatusCode::kNotFound, "NOT_FOUND"},
      {StatusCode::kAlreadyExists, "ALREADY_EXISTS"},
      {StatusCode::kKeyReused, "KEY_REUSED"},
      {StatusCode::kExpired, "EXPIRED"},
      {StatusCode::kFailedPrecondition, "FAILED_PRECONDITION"},
      {StatusCode::kAborted, "ABORTED"},
      {StatusCode::kDeadlineExceeded, "DEADLINE_EXCEEDED"},
      {StatusCode::kUnavailable, "UNAVAILABLE"},
      {StatusCode::kStopping, "STOPPING"},
      {StatusCode::kResourceExhausted, "RESOURCE_EXHAUSTED"},
      {StatusCode::kCorruption, "CORRUPTION"},
      {StatusCode::kIoError, "IO_ERROR"},
      {StatusCode::kNotSupported, "NOT_SUPPORTED"},
      {StatusCode::kInternal, "INTERNAL"},
      {StatusCode::kUnknownOutcome, "UNKNOWN_OUTCOME"},
      {StatusCode::kFenced, "FENCED"},
      {StatusCode::kBusy, "BUSY"},
      {StatusCode::kDeadlock, "DEADLOCK"},
      {StatusCode::kStorageFull, "STORAGE_FULL"},
      {StatusCode::kUnauthenticated, "UNAUTHENTICATED"},
  };
  int number = 0;
  for (const auto& [code, name] : codes) {
    CHECK(static_cast<int>(code) == number++);
    CHECK(to_string(code) == name);
  }
  CHECK(to_string(static_cast<StatusCode>(number)) == "UNKNOWN_CODE");
}

TEST_CASE("a Status without a failure is OK and says so") {
  const Status status;
  CHECK(status.ok());
  CHECK(status.code() == StatusCode::kOk);
  CHECK(status.message().empty());
  CHECK(status.to_string() == "OK");
}

TEST_CASE("a failure gains context as it rises and keeps its code") {
  const Status low(StatusCode::kIoError, "disk full");
  const Status high = low.with_context("commit of 3 records");

  CHECK(high.code() == StatusCode::kIoError);
  CHECK(high.message() == "commit of 3 records: disk full");
  CHECK(high.to_string() == "IO_ERROR: commit of 3 records: disk full");
  CHECK(low.message() == "disk full");
  CHECK(Status().with_context("nothing happened").ok());
}

TEST_CASE("failures are equal when code and message are") {
  const Status failure(StatusCode::kBusy, "taken");
  const Status copy = failure;
  CHECK(copy == failure);
  CHECK(copy.message().data() == failure.message().data());  // shared, not copied
  CHECK(failure == Status(StatusCode::kBusy, "taken"));
  CHECK_FALSE(failure == Status(StatusCode::kBusy, "given"));
  CHECK_FALSE(failure == Status(StatusCode::kAborted, "taken"));
  CHECK_FALSE(failure == Status());
}

TEST_CASE("a Result is a value or the reason why there is none") {
  Result<std::string> good = std::string("value");
  REQUIRE(good.ok());
  CHECK(good.status().ok());
  CHECK(*good == "value");
  CHECK(good->size() == 5);
  CHECK(std::move(good).value() == "value");

  const Result<std::string> bad = Status(StatusCode::kNotFound, "no such thing");
  CHECK_FALSE(bad);
  CHECK(bad.status().code() == StatusCode::kNotFound);
}

TEST_CASE("a range-for over the value of a temporary Result is safe") {
  const auto names = [] { return Result<std::vector<std::string>>({std::string(100, 'a'), "b"}); };
  std::string all;
  for (const std::string& name : *names()) all += name;
  for (const std::string& name : names().value()) all += name;
  CHECK(all == std::string(100, 'a') + "b" + std::string(100, 'a') + "b");

  static_assert(std::is_same_v<decltype(*names()), std::vector<std::string>>);
  static_assert(std::is_same_v<decltype(names().value()), std::vector<std::string>>);
}

TEST_CASE("the message of a temporary Status is a string of its own") {
  const auto failure = [] { return Status(StatusCode::kNotFound, "no such thing"); };
  const auto message = failure().message();
  CHECK(message == "no such thing");
  CHECK(Status().message().empty());

  static_assert(std::is_same_v<decltype(failure().message()), std::string>);
  static_assert(std::is_same_v<decltype(std::declval<Status&>().message()), std::string_view>);
}

TEST_CASE("a Result can hold what cannot be copied") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  REQUIRE(result.ok());
  const std::unique_ptr<int> taken = *std::move(result);
  CHECK(*taken == 3);
}

TEST_CASE("a log sink gets the line, and what it throws is ignored") {
  std::string seen;
  log(
      [&](LogLevel level, std::string_view line) {
        seen = std::string(to_string(level)) + " " + std::string(line);
      },
      LogLevel::kWarning, "the disk is slow");
  CHECK(seen == "WARNING the disk is slow");

  log([](LogLevel, std::string_view) { throw std::runtime_error("sink"); }, LogLevel::kError, "x");
  log(LogSink(), LogLevel::kError, "nobody listens");
  SUCCEED();
}

TEST_CASE("log levels have names") {
  CHECK(to_string(LogLevel::kDebug) == "DEBUG");
  CHECK(to_string(LogLevel::kInfo) == "INFO");
  CHECK(to_string(LogLevel::kWarning) == "WARNING");
  CHECK(to_string(LogLevel::kError) == "ERROR");
}

TEST_CASE("a broken invariant ends the process and says in words what should have held") {
  PV2_ASSERT(1 + 1 == 2, "arithmetic works");  // one that holds does nothing

  const auto [text, aborted] = in_child([] { PV2_ASSERT(1 > 2, "one is the larger"); });

  CHECK(aborted);
  CHECK_THAT(text, StartsWith("pv2: invariant broken: one is the larger [1 > 2] at "));
}

TEST_CASE(
    "a failure with the code OK, and the value of a failed Result, are defects of the caller") {
  CHECK(in_child([] { (void)Status(StatusCode::kOk, "fine"); }).second);
  CHECK(in_child([] { (void)Result<int>(Status()); }).second);
  CHECK(in_child([] {
          Result<int> failed = Status(StatusCode::kBusy, "taken");
          (void)failed.value();
        }).second);
}

}  // namespace pv2::testing::status_test

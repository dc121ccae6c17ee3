// SPDX-License-Identifier: Apache-2.0
//
// A reader of the engine's records that was written from docs/store-format.md alone: it shares no
// code with the engine's codecs but the CRC. It reads the rows that real runs leave behind. If it
// fails after a change of a codec, either the page is wrong now or the format has changed.

#include <pv2/base/crc32c.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/all_rows.h"
#include "support/engine_world.h"

namespace pv2::testing::store_format_test {
namespace {

using namespace std::chrono_literals;

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

std::string big_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// "Frames": takes the first frame off `row`; nullopt when it is damaged.
std::optional<std::string> take_frame(std::string_view& row) {
  if (row.size() < 8) return std::nullopt;
  const std::uint64_t size = little_endian(row.substr(4, 4));
  if (size > row.size() - 8) return std::nullopt;
  if (crc32c(row.substr(4, 4 + size)) != little_endian(row.substr(0, 4))) return std::nullopt;
  std::string bytes(row.substr(8, size));
  row.remove_prefix(8 + size);
  return bytes;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    REQUIRE(!bytes.empty());
    REQUIRE(shift < 64);
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

std::int64_t signed_of(std::uint64_t varint) {
  return static_cast<std::int64_t>(varint >> 1) * (varint & 1 ? -1 : 1) - (varint & 1 ? 1 : 0);
}

// "Messages": number -> values, in order of appearance; a fixed64 or varint as a number, the rest
// as bytes.
struct Message {
  std::map<std::uint64_t, std::vector<std::uint64_t>> numbers;
  std::map<std::uint64_t, std::vector<std::string>> bytes;

  explicit Message(std::string_view in) {
    while (!in.empty()) {
      const std::uint64_t tag = take_varint(in);
      if ((tag & 7) == 0) {
        numbers[tag >> 3].push_back(take_varint(in));
        continue;
      }
      REQUIRE(((tag & 7) == 1 || (tag & 7) == 2));
      const std::uint64_t size = (tag & 7) == 1 ? 8 : take_varint(in);
      REQUIRE(size <= in.size());
      if ((tag & 7) == 1) {
        numbers[tag >> 3].push_back(little_endian(in.substr(0, 8)));
      } else {
        bytes[tag >> 3].emplace_back(in.substr(0, size));
      }
      in.remove_prefix(size);
    }
  }
  [[nodiscard]] bool has(std::uint64_t number) const {
    return numbers.contains(number) || bytes.contains(number);
  }
  [[nodiscard]] std::uint64_t number(std::uint64_t at) const {
    REQUIRE(numbers.contains(at));
    return numbers.at(at).back();
  }
  [[nodiscard]] std::int64_t sint(std::uint64_t at) const { return signed_of(number(at)); }
  [[nodiscard]] std::string text(std::uint64_t at) const {
    REQUIRE(bytes.contains(at));
    return bytes.at(at).back();
  }
  // A packed list.
  [[nodiscard]] std::vector<std::uint64_t> list(std::uint64_t at) const {
    std::vector<std::uint64_t> values;
    if (!bytes.contains(at)) return values;
    for (std::string_view in = bytes.at(at).back(); !in.empty();) values.push_back(take_varint(in));
    return values;
  }
};

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    for (const int nibble : {(c >> 4) & 15, c & 15}) text += "0123456789abcdef"[nibble];
  }
  return text;
}

struct Row {
  std::uint64_t sequence = 0;
  std::string value;
};

// Every row of a disk, by space and key.
std::map<std::string, Row> rows_of(const std::shared_ptr<MemoryDisk>& disk) {
  class NoSink final : public CommitSink {
    void on_committed(CommitList) noexcept override {}
  } sink;
  std::map<std::string, Row> rows;
  MemoryProcedureStore store(disk->clone());
  REQUIRE(store.recover_lease(sink).ok());
  const Status read = testing::visit_all(store, [&](const StoredRow& row) {
    rows[static_cast<char>(row.space) + std::string(row.key)] = {row.sequence.value,
                                                                 std::string(row.value)};
    return Status();
  });
  REQUIRE(read.ok());
  store.close();
  return rows;
}

std::ptrdiff_t but_schemas(const std::map<std::string, Row>& rows) {
  return std::count_if(rows.begin(), rows.end(),
                       [](const auto& row) { return !row.first.starts_with("Eschema:"); });
}

// One of the two records of a procedure. For a root that has ended it is half of a row.
struct Record {
  std::uint64_t sequence;
  Message engine;
  std::string user;
};
constexpr char kHeader = 1;
constexpr char kState = 2;

Record record(const std::map<std::string, Row>& rows, ProcedureId id, char kind) {
  auto at = rows.find("P" + big_endian(id.value) + kind);
  const bool has_ended = at == rows.end();
  if (has_ended) at = rows.find("R" + big_endian(id.value));
  REQUIRE(at != rows.end());
  std::string_view row = at->second.value;
  if (has_ended && kind == kState) {
    REQUIRE(take_frame(row).has_value());  // the header
    REQUIRE(take_frame(row).has_value());
  }
  const auto engine = take_frame(row);
  const auto user = take_frame(row);
  REQUIRE(engine.has_value());
  REQUIRE(user.has_value());
  REQUIRE(row.empty() == (!has_ended || kind == kState));
  return {at->second.sequence, Message(*engine), *user};
}
Record state_of(const EngineWorld& world, ProcedureId id) {
  return record(rows_of(world.disk), id, kState);
}

using Numbers = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("a reader written from the page reads what submit leaves") {
  EngineWorld w;
  auto locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  locks.key({ResourceClass{70}, "depot"}, LockMode::kShared);
  w.world.scripts["a"] = {.locks = locks, .priority = Priority::kHigh};
  w.open();

  const ProcedureId id = w.submit("a", {.nonce = {7, 9}, .owner = "anna"});

  const auto rows = rows_of(w.disk);
  REQUIRE(but_schemas(rows) == 4);  // watermark, nonce, header, state
  const Record header = record(rows, id, kHeader);
  CHECK(header.engine.number(1) == id.value);
  CHECK(!header.engine.has(2));
  CHECK(header.engine.number(3) == id.value);
  CHECK(header.engine.text(4) == "test.Job");
  CHECK(header.engine.number(5) == 7);
  CHECK(header.engine.number(6) == 9);
  CHECK(header.engine.sint(9) == w.clock->wall_now().time_since_epoch().count());
  CHECK(header.engine.text(10) == "anna");
  REQUIRE(header.engine.bytes.at(11).size() == 3);
  const auto lock = [&](std::size_t i) {
    const Message one(header.engine.bytes.at(11)[i]);
    return std::to_string(one.number(1)) + " " + one.text(2) + " " + std::to_string(one.number(3));
  };
  CHECK(lock(0) == "3 shop 1");
  CHECK(lock(1) == "4 shop:orders 2");
  CHECK(lock(2) == "70 depot 1");
  CHECK(header.engine.number(12) == 1);
  CHECK(header.engine.number(13) == 96);
  CHECK(!header.engine.has(14));
  CHECK(header.engine.number(15) == 4);
  CHECK(header.engine.text(16) == "shop:orders");
  CHECK(header.user ==
        "\x0a\x01"
        "a");

  const Record state = record(rows, id, kState);
  CHECK(state.sequence == header.sequence);
  CHECK(state.engine.number(1) == 2);
  CHECK(state.engine.number(2) == 1);
  CHECK(state.engine.number(3) == 1);
  CHECK(state.engine.number(4) == 0);
  CHECK(state.engine.number(5) == 1);
  for (const std::uint64_t absent : {6, 7, 8, 9, 10, 11, 12, 14}) CHECK(!state.engine.has(absent));
  CHECK(state.engine.sint(13) == header.engine.sint(9));
  CHECK(Message(state.user).text(2).empty());

  std::string_view nonce_row = rows.at("N" + big_endian(7) + big_endian(9)).value;
  const Message nonce(*take_frame(nonce_row));
  CHECK(nonce_row.empty());
  CHECK(hex(rows.at("N" + big_endian(7) + big_endian(9)).value) ==  // as on the page
        "2d9f759f16000000"
        "0801"
        "11f778c1f410dd976f"
        "19b8a25f1b56af2535"
        "2002");
  CHECK(nonce.number(1) == id.value);
  CHECK(nonce.number(2) == header.engine.number(7));
  CHECK(nonce.number(3) == header.engine.number(8));
  CHECK(nonce.number(4) == 2);
  CHECK(header.engine.number(19) == 2);

  std::string_view watermark_row = rows.at("Enext_id").value;
  CHECK(Message(*take_frame(watermark_row)).number(1) > id.value);

  std::string_view schema_row = rows.at("Eschema:test.Job").value;
  const Message schema(*take_frame(schema_row));
  REQUIRE(schema.bytes.at(1).size() == 2);
  const Message name(schema.bytes.at(1)[0]);  // f.arg(1, "name", ...), a string
  CHECK(name.text(1) == "1");
  CHECK(name.text(2) == "name");
  CHECK(name.number(3) == 6);
  CHECK(name.number(6) == 1);
  const Message note(schema.bytes.at(1)[1]);  // f(2, "note", ...)
  CHECK(note.text(1) == "2");
  CHECK_FALSE(note.has(4));
  CHECK_FALSE(note.has(5));
  CHECK_FALSE(note.has(6));
}

TEST_CASE("a reader written from the page reads a retry, a wait and an end") {
  EngineWorld w;
  w.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    run.note = "at " + std::to_string(run.step);
    if (run.step == 2 && run.ctx.attempt() == 1) return Say::retry("later");
    if (run.step == 3 && run.ctx.await<int>([](const Completion<int>&) {}) == nullptr &&
        !run.ctx.timed_out()) {
      return Say::wait_for(1min);
    }
    return std::nullopt;
  }};
  w.retry.jitter_percent = 0;
  w.open();
  const ProcedureId id = w.submit("a");
  const auto start = w.clock->wall_now().time_since_epoch().count();

  w.run();
  const Record retrying = state_of(w, id);
  CHECK(retrying.engine.number(1) == 4);
  CHECK(retrying.engine.number(2) == 2);
  CHECK(retrying.engine.number(3) == 2);
  CHECK(retrying.engine.number(4) == 1);
  CHECK(retrying.engine.sint(6) == start + 1'000'000);
  CHECK(retrying.engine.sint(7) == 1'000'000);
  CHECK(retrying.engine.list(8) == Numbers{1, retrying.sequence - 1});
  CHECK(retrying.engine.list(9) == Numbers{1, 1 * 16 + 0, 0, 2, 1 * 16 + 4, 0});
  CHECK(retrying.engine.number(10) == 9);
  CHECK(retrying.engine.text(11) == "later");
  CHECK(!retrying.engine.has(12));
  CHECK(Message(retrying.user).text(2) == "at 1");  // a retry keeps nothing of its attempt

  w.advance(1s);
  const Record waiting = state_of(w, id);
  CHECK(waiting.engine.number(1) == 4);
  CHECK(waiting.engine.number(2) == 3);
  CHECK(waiting.engine.number(3) == 1);
  CHECK(waiting.engine.number(4) == 2);
  CHECK(waiting.engine.number(5) == 1 + 8);
  CHECK(waiting.engine.list(8) == Numbers{1, retrying.sequence - 1, 2, waiting.sequence - 1});
  CHECK(waiting.engine.list(9) ==
        Numbers{1, 16, 2'000'000, 2, 16 + 4, 2'000'000, 2, 2 * 16, 0, 3, 16 + 3, 0});
  CHECK(!waiting.engine.has(10));
  CHECK(Message(waiting.user).text(2) == "at 3");

  w.advance(1min);
  const Record ended = state_of(w, id);
  CHECK(ended.engine.number(1) == 6);
  CHECK(ended.engine.number(2) == 0);
  CHECK(ended.engine.number(4) == 3);
  CHECK(ended.engine.number(5) == 0);
  CHECK(!ended.engine.has(6));
  CHECK(ended.engine.text(14) == "a done");
  const auto age = static_cast<std::uint64_t>(ended.engine.sint(17));
  CHECK(age == 61'000'000);  // microseconds that the executor has run
  CHECK(rows_of(w.disk).contains("Ekept:" + big_endian(age) + big_endian(id.value)));

  REQUIRE(w.executor().acknowledge(id).ok());
  CHECK(but_schemas(rows_of(w.disk)) == 1);
}

TEST_CASE("a reader written from the page reads a tree that is undone") {
  EngineWorld w;
  w.world.scripts["p"] = {.children = {"c1", "c2"}};
  w.world.scripts["c1"] = {
      .steps = 1, .run = [](JobRun&) -> std::optional<Outcome> { return Say::fail("no wood"); }};
  w.world.scripts["c2"] = {.steps = 1};
  int attempts = 0;
  w.world.scripts["p"].undo = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2 && ++attempts == 1) return Say::retry("not yet");
    return run.step == 1 ? std::optional(Say::fail("stuck")) : std::nullopt;
  };
  w.retry.jitter_percent = 0;
  w.open();
  const ProcedureId id = w.submit("p");
  const ProcedureId c1{id.value + 1};

  w.executor().run_until_idle(2);
  const auto spawned = rows_of(w.disk);
  const Record parent = record(spawned, id, kState);
  CHECK(parent.engine.number(1) == 3);
  CHECK(parent.engine.number(2) == 3);
  const Record child = record(spawned, c1, kHeader);
  CHECK(child.engine.number(2) == id.value);
  CHECK(child.engine.number(3) == id.value);
  CHECK(child.engine.number(14) == parent.engine.number(4));
  CHECK(!child.engine.has(5));
  CHECK(!child.engine.has(11));
  CHECK(child.sequence == parent.sequence);  // one batch

  w.run();
  const Record undone_child = state_of(w, c1);
  CHECK(undone_child.engine.number(1) == 5);
  CHECK(undone_child.engine.number(10) == 6);
  CHECK(undone_child.engine.text(11) == "no wood");
  CHECK(undone_child.engine.number(12) < undone_child.sequence);
  const Record backing_off = state_of(w, id);
  CHECK(backing_off.engine.number(1) == 7);
  CHECK(backing_off.engine.number(3) == 2);
  CHECK(backing_off.engine.number(5) == 1);
  CHECK(backing_off.engine.sint(7) == 1'000'000);
  CHECK(backing_off.engine.list(8).size() == 4);
  CHECK(backing_off.engine.list(9).back() == 0);
  CHECK(*(backing_off.engine.list(9).end() - 2) == 16 + 4);

  w.advance(1s);
  const Record parked = state_of(w, id);
  CHECK(parked.engine.number(1) == 7);
  CHECK(parked.engine.number(5) == 1 + 4);
  CHECK(parked.engine.list(8).size() == 2);
  CHECK(parked.engine.number(15) == 6);
  CHECK_THAT(parked.engine.text(16), ContainsSubstring("stuck"));
  CHECK(!parked.engine.has(10));  // no step of its own failed
}

TEST_CASE("a reader written from the page reads the message of an abort") {
  EngineWorld w;
  w.world.scripts["a"] = {
      .run = [](JobRun&) -> std::optional<Outcome> { return Say::wait_for(1h); },
      .undo = [](JobRun& run) -> std::optional<Outcome> {
        return run.ctx.timed_out() ? std::nullopt : std::optional(Say::wait_for(1h));
      }};
  w.open();
  const ProcedureId id = w.submit("a");
  w.run();
  w.advance(1s);
  const auto accepted = w.clock->wall_now();
  REQUIRE(w.executor().abort(id, {.reason = "no wood", .who = "anna"}).ok());
  w.run();

  const auto rows = rows_of(w.disk);
  const auto at = rows.find("P" + big_endian(id.value) + '\x03' + big_endian(1));
  REQUIRE(at != rows.end());
  std::string_view row = at->second.value;
  const Message message(*take_frame(row));
  CHECK(row.empty());
  CHECK(message.number(1) == 1);
  CHECK(message.number(2) == 1);
  CHECK(message.sint(3) == accepted.time_since_epoch().count());
  CHECK(message.text(4) == "anna");
  CHECK(message.text(5) == "no wood");

  w.advance(1h);
  CHECK(w.result(id).status.code() == StatusCode::kAborted);
  // Watermark, result, date, audit entry: no message.
  CHECK(but_schemas(rows_of(w.disk)) == 4);
}

TEST_CASE("a reader written from the page reads an audit entry, and a bypassed root") {
  EngineWorld w;
  w.world.scripts["a"] = {
      .run = [](JobRun& run) -> std::optional<Outcome> {
        return run.step == 2 ? std::optional(Say::fail("no")) : std::nullopt;
      },
      .undo = [](JobRun&) -> std::optional<Outcome> { return Say::fail("stuck"); }};
  w.open();
  const ProcedureId id = w.submit("a");
  w.run();
  REQUIRE(w.executor().operate().skip_step(id, {.who = "anna", .why = "by hand"}).ok());
  w.run();
  REQUIRE(w.executor().operate().bypass(id, {.who = "ben", .why = "it is stuck"}).ok());

  const auto rows = rows_of(w.disk);
  const auto audit = [&](std::uint64_t number) {
    std::string_view row = rows.at("P" + big_endian(id.value) + '\x04' + big_endian(number)).value;
    return Message(*take_frame(row));
  };
  CHECK(audit(1).number(1) == 2);
  CHECK(audit(1).number(2) == 1);
  CHECK(audit(1).sint(3) == w.clock->wall_now().time_since_epoch().count());
  CHECK(audit(1).text(4) == "anna");
  CHECK(audit(1).text(5) == "by hand");
  CHECK(audit(1).number(6) == id.value);
  CHECK(audit(1).number(7) == 2);
  CHECK(audit(2).number(1) == 4);
  CHECK(!audit(2).has(7));
  const Record ended = state_of(w, id);
  CHECK(ended.engine.number(1) == 5);
  CHECK(ended.engine.number(5) == 16 + 2048);
  REQUIRE(w.executor().acknowledge(id).ok());
  CHECK(but_schemas(rows_of(w.disk)) == 1);
}

TEST_CASE(
    "a reader written from the page reads a reported failure, and a member that gave up unsure") {
  EngineWorld w;
  w.retry.max_attempts = 1;
  w.world.scripts["p"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2) {
      run.ctx.spawn(Job(run.world, "bad"),
                    {.on_failure = OnFailure::kReport, .undo_order = UndoOrder::kConcurrent});
      run.spawn("unsure");
      run.ctx.spawn(Job(run.world, "beside bad"), {.undo_order = UndoOrder::kConcurrent});
    }
    return std::nullopt;
  }};
  w.world.scripts["bad"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 1) return std::nullopt;
    return Say::fail("no");
  }};
  w.world.scripts["beside bad"] = {.steps = 1};
  w.world.scripts["unsure"] = {.run = [](JobRun&) -> std::optional<Outcome> {
    return Say::unsure(Status(StatusCode::kDeadlineExceeded, "late"));
  }};
  w.open();
  const ProcedureId root = w.submit("p");
  w.run();
  const auto rows = rows_of(w.disk);
  const ProcedureId bad{root.value + 1};
  const ProcedureId unsure{root.value + 2};
  CHECK(record(rows, bad, kHeader).engine.number(17) == 1);
  CHECK(record(rows, bad, kHeader).engine.number(18) == 1);
  for (const std::uint32_t field : {17, 18})
    CHECK(!record(rows, unsure, kHeader).engine.has(field));
  const Record end = record(rows, bad, kState);
  CHECK(end.engine.number(1) == 5);
  CHECK((end.engine.number(5) & 64) != 0);
  CHECK(end.engine.text(11) == "no");
  const Record parked = record(rows, unsure, kState);
  CHECK(parked.engine.number(1) == 2);
  CHECK(parked.engine.number(2) == 1);
  CHECK((parked.engine.number(5) & (4 + 128)) == 4 + 128);
  CHECK(!parked.engine.has(10));
  CHECK(parked.engine.number(15) == 8);
  CHECK_THAT(parked.engine.text(16), ContainsSubstring("late"));

  REQUIRE(w.executor().operate().retry_now(unsure, {.who = "anna", .why = "it is there"}).ok());
  const auto history = state_of(w, unsure).engine.list(9);
  CHECK(history.size() == 6);
  CHECK(history[4] % 16 == 7);
  REQUIRE(w.executor().operate().fail_and_roll_back(root, {.who = "anna", .why = "no use"}).ok());
  const auto after = rows_of(w.disk);
  std::string_view audit = after.at("P" + big_endian(root.value) + "\x04" + big_endian(3)).value;
  CHECK(Message(*take_frame(audit)).number(1) == 3);
  const auto retried = [&](ProcedureId under) {
    std::string_view row = after.at("P" + big_endian(under.value) + "\x04" + big_endian(1)).value;
    return Message(*take_frame(row));
  };
  CHECK(!retried(root).has(8));
  CHECK(retried(unsure).number(8) == root.value);  // the copy
  for (const ProcedureId id : {root, unsure}) CHECK(retried(id).number(6) == unsure.value);
}

TEST_CASE(
    "a reader written from the page reads which member was interrupted, and why an undo failed") {
  EngineWorld w;
  w.world.scripts["p"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                            for (const char* child : {"asks", "idle"}) run.spawn(child);
                            return std::nullopt;
                          }};
  w.world.scripts["asks"] = {
      .steps = 1,
      .run = [](JobRun& run) -> std::optional<Outcome> {
        (void)run.ctx.await<std::string>([&](auto completion) { run.world.ask(completion); });
        return Say::wait();
      },
      .undo = [](JobRun&) -> std::optional<Outcome> { return Say::retry("the bank is closed"); }};
  w.world.scripts["idle"] = {.steps = 1};
  w.open();
  const ProcedureId root = w.submit("p");
  w.executor().run_until_idle(2);  // the parent, and the first of its children
  REQUIRE(w.executor().abort(root, {.reason = "late"}).ok());
  w.run();

  const ProcedureId asks{root.value + 1};
  const Record head = state_of(w, root);
  CHECK((head.engine.number(5) & 1024) != 0);
  CHECK(head.engine.list(19) == std::vector<std::uint64_t>{asks.value, 0});
  const Record undone = state_of(w, asks);
  CHECK(undone.engine.number(1) == 7);
  const std::string bytes(undone.engine.text(20));
  const Message error(bytes);
  CHECK(error.number(1) == 9);
  CHECK(error.text(2) == "the bank is closed");
  CHECK(undone.engine.list(8) == std::vector<std::uint64_t>{1, UINT64_MAX - 1});
  const auto history = undone.engine.list(9);
  REQUIRE(history.size() >= 3);
  CHECK(history[history.size() - 3] == (std::uint64_t{1} << 32) + 1);
}

TEST_CASE("a reader written from the page reads a signal") {
  EngineWorld w;
  w.world.scripts["a"] = {
      .run = [](JobRun&) -> std::optional<Outcome> { return Say::wait_for(1h); }};
  w.open();
  const ProcedureId id = w.submit("a");
  REQUIRE(w.executor().signal(id, "approved", "by ben").ok());

  const auto rows = rows_of(w.disk);
  std::string_view row = rows.at("P" + big_endian(id.value) + '\x03' + big_endian(1)).value;
  const Message message(*take_frame(row));
  CHECK(message.number(1) == 2);
  CHECK(message.text(5) == "by ben");
  CHECK(message.text(6) == "approved");
}

TEST_CASE("a reader written from the page sees a point of no return, and damage") {
  EngineWorld w;
  w.world.scripts["m"] = {.steps = 5};
  w.open();
  const ProcedureId id = w.submit<CommittingJob>("m");

  w.executor().run_until_idle(2);
  CHECK(state_of(w, id).engine.list(8).size() == 2);  // step 2 leaves nothing to undo
  w.executor().run_until_idle(1);
  const Record beyond = state_of(w, id);
  CHECK(beyond.engine.number(5) == 1 + 2);
  CHECK(!beyond.engine.has(8));

  std::string damaged = rows_of(w.disk).at("P" + big_endian(id.value) + kState).value;
  damaged[12] = static_cast<char>(damaged[12] ^ 1);
  std::string_view row = damaged;
  CHECK(!take_frame(row).has_value());
}

}  // namespace pv2::testing::store_format_test

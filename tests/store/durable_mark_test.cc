// SPDX-License-Identifier: Apache-2.0
//
// PV2-DURABLE: a database that has lost its end is refused, and any other is accepted. On a file
// system that loses what was not synced.

#include "durable_mark.h"

#include <pv2/base/random.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>

#include "step_files.h"
#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::durable_mark_test {
namespace {

// A log with the commits 1 to 5, as it is after a clean stop and after the death of the process.
TEST_CASE("every cut of a log that loses a durable commit is refused, with both commits named") {
  const bool clean = GENERATE(true, false);
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* key : {"a", "b", "c", "d", "e"}) REQUIRE(writer.write(key).ok());
    if (clean) writer.store().close();
  }
  const std::string log = step_files(env).back();
  const std::string whole = env.contents(log);
  const auto ends = frame_ends(whole);
  REQUIRE(ends.size() == 5);
  const bool with_zeros = GENERATE(false, true);
  for (std::size_t size = 0; size < ends.back(); ++size) {
    CrashEnv copy;
    copy_files(env, copy);
    std::string cut = whole.substr(0, size);
    if (with_zeros) cut.resize(whole.size());
    const auto left =
        std::count_if(ends.begin(), ends.end(), [&](auto end) { return end <= size; });
    copy.set_contents(log, cut);
    const std::size_t operations = copy.operations();

    Writer writer(copy);
    const Status refused = writer.open();

    INFO("log cut to " << size << " of " << whole.size() << " bytes: " << refused.to_string());
    REQUIRE(refused.code() == StatusCode::kCorruption);
    const std::string message(refused.message());
    if (left != 0) REQUIRE_THAT(message, ContainsSubstring("PV2-STEPS-1: its end is missing"));
    REQUIRE_THAT(message, ContainsSubstring("PV2-DURABLE says that commit 5 was durable"));
    REQUIRE_THAT(message,
                 ContainsSubstring("the last one that is there is " + std::to_string(left)));
    REQUIRE(copy.operations() == operations);
  }
}

TEST_CASE("after a power cut a lost commit is found even if 128 syncs have followed it") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (int i = 1; i <= 130; ++i) REQUIRE(writer.write(std::to_string(i)).ok());
    env.crash();
  }
  env.reboot();
  const std::string log = step_files(env).back();
  env.set_contents(log, env.contents(log).substr(0, 100));

  Writer writer(env);
  const Status refused = writer.open();

  REQUIRE(refused.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("commit 129 was durable"));
}

TEST_CASE("marks are never ahead of the database, wherever the power is cut") {
  for (std::size_t cut = 0; cut < 400; ++cut) {
    for (const auto torn : {CrashEnv::TornTail::kNone, CrashEnv::TornTail::kBytes}) {
      CrashEnv env(cut);
      env.crash_before_operation(cut, torn);
      {
        Writer writer(env);
        if (writer.open().ok()) {
          for (int i = 1; i <= 140; ++i) {
            if (!writer.write(std::to_string(i)).ok()) break;
          }
        }
      }
      env.crash(torn);
      env.reboot();
      Writer writer(env);
      const Status opened = writer.open();
      INFO("power off before operation " << cut << ": " << opened.to_string());
      REQUIRE(opened.ok());
      REQUIRE(writer.write("after").ok());
      writer.store().close();
    }
  }
}

// The marks of one life, in a file system of their own.
struct Marks {
  CrashEnv env;
  const LevelDbFiles files{env, env.directory_sync()};
  const std::string path = "store/PV2-DURABLE";

  Marks() {
    REQUIRE(env.CreateDir("store").ok());
    REQUIRE(env.directory_sync()(".").ok());
  }
  std::uint64_t read() { return read_marks(files, path).value().value; }
  std::string contents() { return env.contents(path); }
};

TEST_CASE("the file of marks keeps its size and its first mark, and the highest mark counts") {
  Marks marks;
  REQUIRE(marks.read() == 0);
  DurableMark mark(marks.files, marks.env, marks.path);
  REQUIRE(mark.raise({1}).ok());
  const std::string first = marks.contents();
  REQUIRE(first.size() == DurableMark::kMarks * DurableMark::kMarkBytes);
  for (std::uint64_t i = 2; i <= 3 * DurableMark::kMarks; ++i) {
    REQUIRE(mark.raise({i}).ok());
    REQUIRE(marks.read() == i);
  }
  REQUIRE(marks.contents().size() == first.size());
  REQUIRE(marks.contents().starts_with(first.substr(0, DurableMark::kMarkBytes)));
}

// What a power cut may leave of `written`, if `durable` is what the last sync has brought to the
// disk: each sector is old or new, and each mark whole, or one part of the new one with the rest of
// the old one.
std::string torn_bytes(const std::string& written, const std::string& durable, Random& random) {
  constexpr std::size_t kSector = 512;
  const bool by_sector = random.below(2) == 0;
  std::string torn = written;
  for (std::size_t at = 0; by_sector && at < torn.size(); at += kSector) {
    if (random.below(2) == 0) torn.replace(at, kSector, durable, at, kSector);
  }
  for (std::size_t at = 0; !by_sector && at < torn.size(); at += DurableMark::kMarkBytes) {
    const std::size_t from = random.below(DurableMark::kMarkBytes + 1);
    const std::size_t to = random.below(2) == 0 ? from : DurableMark::kMarkBytes;
    const std::size_t begin = to == from ? 0 : from;
    torn.replace(at + begin, to - begin, durable, at + begin, to - begin);
  }
  return torn;
}

TEST_CASE("after a power cut the highest mark is at most 128 old, whatever is torn") {
  Random random(1);
  for (int time = 0; time < 200; ++time) {
    Marks marks;
    const std::uint64_t first = random.below(2) == 0 ? 1 : (std::uint64_t{1} << 32) - 300;
    const std::uint64_t step = random.below(2) == 0 ? 1 : 541;  // commits of one sync
    const std::uint64_t raised = 1 + random.below(3 * DurableMark::kMarks);
    DurableMark mark(marks.files, marks.env, marks.path);
    for (std::uint64_t i = 0; i < raised; ++i) REQUIRE(mark.raise({first + i * step}).ok());
    const std::string written = marks.contents();
    marks.env.crash();
    marks.env.reboot();
    const std::string durable = marks.contents();
    REQUIRE(durable.size() == written.size());
    for (int way = 0; way < 50; ++way) {
      marks.env.set_contents(marks.path, torn_bytes(written, durable, random));
      const std::uint64_t found = (marks.read() - first) / step;
      INFO(raised << " marks from " << first << " by " << step << ", found " << found);
      REQUIRE((found < raised && raised - found <= DurableMark::kSyncEvery));
    }
  }
}

TEST_CASE("a power cut among many commits loses none that was answered, whatever is torn") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CrashEnv env(seed);
    Random random(seed);
    env.crash_before_operation(random.below(3000), CrashEnv::TornTail::kRandom);
    std::size_t answered = 0;
    {
      Writer writer(env);
      if (writer.open().ok()) {
        while (answered < 900 && writer.write(std::to_string(answered)).ok()) ++answered;
      }
    }
    env.crash(CrashEnv::TornTail::kRandom);
    env.reboot();
    Writer writer(env);
    const Status opened = writer.open();
    INFO("seed " << seed << ", " << answered << " answered: " << opened.to_string());
    REQUIRE(opened.ok());
    const std::size_t rows = load_rows(writer.store()).size();
    REQUIRE((answered <= rows && rows <= answered + 1));
    writer.store().close();
  }
}

TEST_CASE("marks that an older version has appended are read to their end") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (int i = 1; i <= 500; ++i) REQUIRE(writer.write(std::to_string(i)).ok());
    writer.store().close();
  }
  std::string appended;
  Marks marks;
  for (std::uint64_t i = 1; i <= 500; ++i) {
    REQUIRE(replace_marks(marks.files, marks.path, {i}).ok());
    appended += marks.contents().substr(0, DurableMark::kMarkBytes);
  }
  env.set_contents("store/PV2-DURABLE", appended);
  CrashEnv cut;
  copy_files(env, cut);
  const std::string log = step_files(env).back();
  const std::string whole = env.contents(log);
  cut.set_contents(log, whole.substr(0, frame_ends(whole).back() - 1));

  Writer whole_store(env);
  REQUIRE(whole_store.open().ok());
  whole_store.store().close();
  Writer cut_store(cut);
  const Status refused = cut_store.open();

  REQUIRE(refused.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("commit 500 was durable"));
}

// A file that grew would change its inode, which can make the syncs of the log slower.
TEST_CASE("a commit changes neither the size of the marks nor that of the log's file") {
  CrashEnv env;
  Writer writer(env);
  REQUIRE(writer.open().ok());
  REQUIRE(writer.write("first").ok());
  const std::string log = step_files(env).back();
  const auto sizes = [&] {
    return std::pair(env.contents("store/PV2-DURABLE").size(), env.contents(log).size());
  };
  const auto before = sizes();
  for (std::size_t i = 1; i <= DurableMark::kMarks + 10; ++i) {
    REQUIRE(writer.write(std::to_string(i)).ok());
  }
  REQUIRE(step_files(env).back() == log);
  REQUIRE(sizes() == before);
}

TEST_CASE("a mark that cannot be written or synced fails the store, which then opens with all") {
  using Operation = CrashEnv::Operation;
  const auto fails = GENERATE(Operation::kAppend, Operation::kSync);
  CrashEnv env;
  std::size_t answered = 0;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    REQUIRE(writer.write("first").ok());
    env.set_fault([&](Operation operation, const std::string& file) {
      const bool now = operation == fails && file == "store/PV2-DURABLE";
      return now ? leveldb::Status::IOError(file, "broken") : leveldb::Status::OK();
    });
    Status failed;
    while (answered <= 200 && failed.ok()) {
      failed = writer.write(std::to_string(answered));
      if (failed.ok()) ++answered;
    }
    REQUIRE(answered == (fails == Operation::kAppend ? 0 : DurableMark::kSyncEvery - 1));
    REQUIRE(failed.code() == StatusCode::kIoError);
    REQUIRE_THAT(std::string(failed.message()), ContainsSubstring("PV2-DURABLE"));
  }
  env.set_fault({});
  Writer writer(env);
  REQUIRE(writer.open().ok());
  REQUIRE(load_rows(writer.store()).size() >= answered + 1);
}

TEST_CASE("marks that are removed in use fail the store within 128 syncs, by name") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  const auto store = leveldb(path, {.committer = LevelDbOptions::Committer::kPump});
  RecordingSink sink;
  REQUIRE(store->recover_lease(sink).ok());
  std::deque<Request> requests;
  const auto commit = [&](const std::string& key) {
    Request& request = requests.emplace_back();
    request.batch.put(Space::kHost, key, "value");
    store->commit(request);
    return sink.wait_for(requests.size(), *store).back().status;
  };
  REQUIRE(commit("first").ok());
  REQUIRE(std::filesystem::remove(path + "/PV2-DURABLE"));

  Status failed;
  for (int i = 0; i < 128 && failed.ok(); ++i) failed = commit(std::to_string(i));

  REQUIRE(failed.code() == StatusCode::kIoError);
  REQUIRE_THAT(std::string(failed.message()), ContainsSubstring("PV2-DURABLE was removed in use"));
}

TEST_CASE("a bad first mark is refused by name, but a torn end and other bad marks are accepted") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* key : {"a", "b"}) REQUIRE(writer.write(key).ok());
    writer.store().close();
  }
  const std::string marks = env.contents("store/PV2-DURABLE");
  for (std::size_t size = 0; size < 30; ++size) {
    CrashEnv copy;
    copy_files(env, copy);
    copy.set_contents("store/PV2-DURABLE", marks.substr(0, size));
    Writer writer(copy);
    const Status opened = writer.open();
    INFO("cut to " << size << " bytes: " << opened.to_string());
    REQUIRE(opened.ok() == (size >= 12));
    if (opened.ok()) continue;
    REQUIRE(opened.code() == StatusCode::kCorruption);
    REQUIRE_THAT(std::string(opened.message()), ContainsSubstring("PV2-DURABLE: it is cut short"));
  }
  for (std::size_t byte = 0; byte < 30; ++byte) {
    CrashEnv copy;
    copy_files(env, copy);
    std::string bad = marks;
    bad[byte] = static_cast<char>(bad[byte] ^ 4);
    copy.set_contents("store/PV2-DURABLE", bad);
    Writer writer(copy);
    const Status opened = writer.open();
    INFO("byte " << byte << " is wrong: " << opened.to_string());
    REQUIRE(opened.ok() == (byte >= 12));
  }
}

TEST_CASE("a store of a version without marks opens, and has marks from its first commit on") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    REQUIRE(writer.write("a").ok());
    writer.store().close();
  }
  REQUIRE(env.RemoveFile("store/PV2-DURABLE").ok());

  Writer writer(env);
  REQUIRE(writer.open().ok());
  REQUIRE(env.contents("store/PV2-DURABLE").empty());
  REQUIRE(writer.write("b").ok());
  REQUIRE(env.contents("store/PV2-DURABLE").size() == 4092);
  writer.store().close();
}

}  // namespace
}  // namespace pv2::testing::durable_mark_test

// SPDX-License-Identifier: Apache-2.0
//
// Files of LevelDB that are damaged or lack their ends. What a power cut may have left is opened
// with every acknowledged row; everything else is refused by the name of the file, and a salvage
// leaves a state that some commit has made.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "leveldb_directory.h"
#include "leveldb_log_file.h"
#include "leveldb_record.h"
#include "little_endian.h"
#include "pv2/base/random.h"
#include "step_files.h"
#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::leveldb_damage_test {
namespace {

// Leaves a store that has begun a second log, and so added to its MANIFEST. Returns the name of
// that file.
std::string live_with_two_logs(CrashEnv& env) {
  RecordingSink sink;
  LevelDbOptions options = on_crash_env(env, 4'096, 2);
  options.write_buffer_bytes = 64 << 10;
  LevelDbProcedureStore store("store", options);
  REQUIRE(store.recover_lease(sink).ok());
  std::deque<Request> requests;
  for (int i = 0; i < 60; ++i) {
    Request& request = requests.emplace_back();
    request.batch.insert(Space::kHost, std::to_string(i), std::string(4'000, 'v'));
    store.commit(request);
    store.pump();
    REQUIRE(request.status.ok());
  }
  store.close();
  std::string manifest;
  for (const std::string& file : env.files()) {
    if (file.find("MANIFEST") != std::string::npos) manifest = file;
  }
  return manifest;
}

TEST_CASE("a MANIFEST without its end loses nothing, or its error names it and no other file") {
  const bool with_zeros = GENERATE(false, true);
  const bool with_old_files = GENERATE(false, true);
  CrashEnv env;
  if (with_old_files) {  // as if the last life had ended before LevelDB removed them
    env.set_fault([](CrashEnv::Operation operation, const std::string& file) {
      const bool removes = operation == CrashEnv::Operation::kRemove;
      return removes ? leveldb::Status::IOError(file, "not yet") : leveldb::Status::OK();
    });
  }
  const std::string manifest = live_with_two_logs(env);
  env.set_fault(nullptr);
  const std::string whole = env.contents(manifest);
  const std::size_t records = read_log_file(whole).records.size();
  int refusals = 0;
  int records_lost = 0;  // without harm
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CrashEnv copy;
    copy_files(env, copy);
    std::string cut = whole.substr(0, size);
    if (with_zeros) cut.resize(whole.size());
    copy.set_contents(manifest, cut);
    Writer writer(copy);
    const Status opened = writer.open();
    INFO("cut to " << size << " of " << whole.size() << " bytes, zeros behind it: " << with_zeros
                   << ": " << opened.to_string());
    if (opened.ok()) {  // what a crash before the last record leaves: nothing is lost
      REQUIRE(load_rows(writer.store()).size() == 60);
      if (read_log_file(cut).records.size() < records) ++records_lost;
      continue;
    }
    ++refusals;
    REQUIRE(opened.code() == StatusCode::kCorruption);
    REQUIRE_THAT(std::string(opened.message()),
                 ContainsSubstring("damaged: " + name_in_store(manifest) + ": "));
    const bool is_guess = opened.message().find("knows nothing of") != std::string_view::npos;
    REQUIRE_FALSE((with_zeros && is_guess));  // the zeros tell it
  }
  REQUIRE(refusals > 0);
  REQUIRE((records_lost > 0) == with_old_files);
}

// A power cut may leave the new size of the file without the bytes that were to be in it.
TEST_CASE("a MANIFEST whose last record was not written loses nothing") {
  CrashEnv env;
  const std::string manifest = live_with_two_logs(env);
  const std::string whole = env.contents(manifest);
  std::string end;
  SECTION("not at all") {
    const std::size_t zeros = GENERATE(1, 6, 7, 59, 5'000, 40'000);
    end = std::string(zeros, '\0');
  }
  SECTION("apart from its first sector") {
    end = record_of(std::string(1'000, 'x'));
    const std::size_t sector = 512 - whole.size() % 512;
    end.replace(sector, end.size() - sector, end.size() - sector, '\0');
  }
  env.set_contents(manifest, whole + end);
  {
    Writer writer(env);
    const Status opened = writer.open();
    INFO(end.size() << " bytes behind the end: " << opened.to_string());
    REQUIRE(opened.ok());
    REQUIRE(load_rows(writer.store()).size() == 60);
    REQUIRE(writer.write("one more").ok());
    writer.store().close();
  }
  Writer again(env);
  REQUIRE(again.open().ok());
  REQUIRE(load_rows(again.store()).size() == 61);
  again.store().close();
}

TEST_CASE("the ends of LevelDB's files that were not written do not hide damage of the step log") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* key : {"a", "b", "c"}) REQUIRE(writer.write(key).ok());
    writer.store().close();
  }
  const std::string steps = step_files(env).back();
  std::string damaged = env.contents(steps);
  damaged[frame_ends(damaged)[0] + 40] ^= 1;
  env.set_contents(steps, damaged);
  std::string besides;
  SECTION("of the MANIFEST") {
    for (const std::string& file : env.files()) {
      if (file.find("MANIFEST") == std::string::npos) continue;
      env.set_contents(file, env.contents(file) + std::string(59, '\0'));
    }
  }
  SECTION("of a log") {
    const std::string log = last_database_log(env);
    env.set_contents(log, env.contents(log) + std::string(59, '\0'));
    besides = "; or " + name_in_store(log) + " has lost more than its last write: a wrong checksum";
  }

  Writer writer(env);
  const Status refused = writer.open();

  REQUIRE(refused.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(refused.message()),
               ContainsSubstring("damaged: " + name_in_store(steps) + ": from byte ") &&
                   ContainsSubstring(besides));
}

// Commits a row for each key. Returns the log of the database that has most of them.
std::string log_with(CrashEnv& env, std::initializer_list<const char*> keys) {
  Writer writer(on_crash_env(env, 1, 4));  // each commit fills a segment, and two are kept
  REQUIRE(writer.open().ok());
  for (const char* const key : keys) REQUIRE(writer.write(key).ok());
  writer.store().close();
  return last_database_log(env);
}

TEST_CASE(
    "logs of the database that continue each other are opened, and a gap between them is refused") {
  CrashEnv env;
  const std::string log = log_with(env, {"a", "b", "c", "d", "e"});
  const std::string whole = env.contents(log);
  // The first record names the first segment; the next three are of one size.
  const std::size_t record = whole.find("value of b") - whole.find("value of a");
  const std::size_t before = whole.size() - 3 * record;
  REQUIRE(whole.find("value of c") > before + 2 * record);
  const auto open_with = [&](std::string first, std::string second) {
    CrashEnv copy;
    copy_files(env, copy);
    copy.set_contents(log, std::move(first));
    copy.set_contents("store/000099.log", std::move(second));
    Writer writer(copy);
    Status status = writer.open();
    if (status.ok()) REQUIRE(load_rows(writer.store()).size() == 5);
    writer.store().close();
    return status;
  };

  REQUIRE(open_with(whole.substr(0, before + record), whole.substr(before + record)).ok());
  // Two crashes may have left this if CURRENT was not durable. The start after the first crash read
  // up to the torn record and began a new log. The second crash took that start's CURRENT.
  REQUIRE(open_with(whole.substr(0, before + record + 20), whole.substr(before + record)).ok());

  // A log gets bytes when all of the one before it is durable. So no power cut leaves zeros or
  // damage there.
  std::string torn = whole.substr(before + record, record);
  torn.back() ^= 1;
  for (const std::string& end : {std::string(20, '\0'), torn}) {
    const Status cut =
        open_with(whole.substr(0, before + record) + end, whole.substr(before + record));
    REQUIRE(cut.code() == StatusCode::kCorruption);
    REQUIRE_THAT(std::string(cut.message()),
                 ContainsSubstring(name_in_store(log) + ": a wrong checksum"));
  }
  const Status none = open_with("", whole.substr(before));
  REQUIRE_THAT(std::string(none.message()),
               ContainsSubstring(name_in_store(log) + ": it has no record"));

  const Status gap = open_with(whole.substr(0, before + record), whole.substr(before + 2 * record));
  REQUIRE(gap.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(gap.message()), ContainsSubstring("operation 6 is missing"));
  REQUIRE_THAT(std::string(gap.message()), ContainsSubstring("000099.log goes on with 9"));
  REQUIRE(open_with("", whole.substr(before + record)).code() == StatusCode::kCorruption);
}

// A life that ends while the rows of one log are on their way into a table. Returns the logs that
// have records, the older one first; fewer than two: it ended at another moment.
std::vector<std::string> end_between_two_logs(CrashEnv& env, Random& random) {
  {
    RecordingSink sink;
    LevelDbOptions options = on_crash_env(env, 8'192, 2);
    options.write_buffer_bytes = 64 << 10;
    LevelDbProcedureStore store("store", options);
    REQUIRE(store.recover_lease(sink).ok());
    env.crash_before_operation(400 + random.below(3'000), CrashEnv::TornTail::kBytes);
    std::deque<Request> requests;
    while (!env.is_off()) {
      Request& request = requests.emplace_back();
      const std::string key = std::to_string(random.below(3'000));
      request.batch.put(Space::kHost, key, std::string(500 + random.below(4'000), 'v'));
      request.batch.put(Space::kHost, "n" + std::to_string(requests.size()), "x");
      store.commit(request);
      store.pump();
    }
  }
  env.reboot();
  const LevelDbDirectory directory("store", LevelDbFiles(env, env.directory_sync()));
  const auto manifest = directory.manifest();
  std::vector<std::string> logs;
  if (!manifest.ok()) return logs;
  const auto live = directory.live_logs(*manifest);
  REQUIRE(live.ok());
  for (const LiveLog& log : *live) {
    const std::string file = directory.file(log.file);
    if (!read_log_file(env.contents(file)).records.empty()) logs.push_back(file);
  }
  return logs;
}

// Salvages a copy of the store in a real directory. A salvage that is not refused keeps the rows of
// every commit up to `last_kept`, and of no later one.
void salvage_copy(const CrashEnv& env, bool loses_nothing) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path("store"));
  for (const std::string& file : env.files()) {
    std::ofstream(directory.path(file), std::ios::binary) << env.contents(file);
  }
  const auto salvaged = LevelDbProcedureStore::salvage(directory.path("store"));
  INFO(salvaged.status().to_string());
  if (!salvaged.ok()) {
    REQUIRE_FALSE(loses_nothing);
    REQUIRE(salvaged.status().code() == StatusCode::kNotSupported);
    return;
  }
  INFO(salvaged->report);
  RecordingSink sink;
  LevelDbProcedureStore store(directory.path("store"), {});
  REQUIRE(store.recover_lease(sink).ok());
  REQUIRE(scan_rows(store, Space::kHost, "n").size() == salvaged->last_kept.value);
  store.close();
}

// LevelDB writes its number of operations with every change of the MANIFEST, also late.
TEST_CASE(
    "a log behind an older one that lost everything is not taken, whatever the MANIFEST says") {
  CrashEnv env;
  const std::string log = log_with(env, {"n1", "n2", "n3", "n4", "n5"});
  const std::string whole = env.contents(log);
  const std::vector<std::string> records = read_log_file(whole).records;
  REQUIRE(records.size() >= 3);
  std::size_t split = 0;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i + 1 < records.size(); ++i) {
    split += record_of(records[i]).size();
    last = read_fixed64(records[i].data()) + read_fixed32(records[i].data() + 8) - 1;
  }
  REQUIRE(last < 128);
  const std::string change = {4, static_cast<char>(last)};  // the last sequence is `last`
  for (const std::string& file : env.files()) {
    if (file.find("MANIFEST") == std::string::npos) continue;
    env.set_contents(file, env.contents(file) + record_of(change));
  }
  const bool is_empty = GENERATE(true, false);
  std::string older = whole.substr(0, is_empty ? 0 : split);
  if (!is_empty) older[10] ^= 1;  // in its first record
  env.set_contents(log, older);
  env.set_contents("store/000099.log", whole.substr(split));

  Writer writer(env);
  const Status refused = writer.open();
  REQUIRE(refused.code() == StatusCode::kCorruption);
  REQUIRE_THAT(
      std::string(refused.message()),
      ContainsSubstring(name_in_store(log) + (is_empty ? ": it has no record, and 000099.log"
                                                       : ": a wrong checksum at byte 0")));
  writer.store().close();
  salvage_copy(env, false);
}

// A MANIFEST does not say where the older log begins: its number of operations may be a later one.
TEST_CASE("damage of the older of two logs is refused by its name, wherever it is") {
  int damaged = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CrashEnv env(seed);
    Random random(seed);
    const std::vector<std::string> logs = end_between_two_logs(env, random);
    if (logs.size() < 2) continue;
    const std::string whole = env.contents(logs[0]);
    const std::size_t good = read_log_file(whole).good_bytes;
    std::string flipped = whole;
    flipped[random.below(good)] ^= 1;
    std::string zeroed = whole;
    const std::size_t from = random.below(good);
    zeroed.replace(from, zeroed.size() - from, zeroed.size() - from, '\0');
    for (const std::string& bytes :
         {flipped, zeroed, whole + std::string(700, '\0'), whole.substr(0, from), std::string()}) {
      CrashEnv copy;
      copy_files(env, copy);
      copy.set_contents(logs[0], bytes);
      // As if its first checkpoint had never reached the disk.
      const bool is_new = bytes.size() == whole.size() && random.below(2) == 0;
      if (is_new) copy.set_contents(logs[1], std::string(700, '\0'));
      Writer writer(on_crash_env(copy, 8'192, 2));
      const Status refused = writer.open();
      INFO("seed " << seed << ", " << bytes.size() << " of " << whole.size() << " bytes, from "
                   << from << ": " << refused.to_string());
      REQUIRE(refused.code() == StatusCode::kCorruption);
      REQUIRE_THAT(std::string(refused.message()),
                   ContainsSubstring("damaged: " + name_in_store(logs[0]) + ": "));
      writer.store().close();
      salvage_copy(copy, bytes.size() > whole.size());
      ++damaged;
    }
  }
  REQUIRE(damaged > 20);
}

TEST_CASE("any flipped bit in a log, the MANIFEST or CURRENT is refused, and no file is changed") {
  CrashEnv env;
  for (const char* const life : {"a", "b"}) {  // the second one moves the rows into LevelDB's log
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* key : {"1", "2", "3"}) REQUIRE(writer.write(std::string(life) + key).ok());
    writer.store().close();
  }
  REQUIRE(env.contents(last_database_log(env)).find("value of a2") != std::string::npos);
  for (const std::string& file : env.files()) {
    const bool steps = file.find("/PV2-STEPS-") != std::string::npos;
    const bool checked = file.ends_with(".log") || steps ||
                         file.find("MANIFEST") != std::string::npos || file.ends_with("/CURRENT") ||
                         file.ends_with("/PV2-STORE");
    if (!checked) continue;
    const std::string whole = env.contents(file);
    // What lies behind the last frame means nothing.
    const std::size_t bytes = steps ? frame_ends(whole).back() : whole.size();
    for (std::size_t bit = 0; bit < bytes * 8; ++bit) {
      CrashEnv copy;
      copy_files(env, copy);
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      copy.set_contents(file, damaged);
      const std::size_t operations = copy.operations();

      Writer writer(copy);
      const Status refused = writer.open();

      INFO(file << ", bit " << bit << ": " << refused.to_string());
      REQUIRE_FALSE(refused.ok());
      const bool newer_format = refused.code() == StatusCode::kNotSupported;
      REQUIRE((newer_format || refused.code() == StatusCode::kCorruption));
      if (file.find("MANIFEST") != std::string::npos) {
        REQUIRE_THAT(std::string(refused.message()),
                     ContainsSubstring("damaged: " + name_in_store(file) + ": "));
      }
      REQUIRE(copy.operations() == operations);
      REQUIRE(copy.contents(file) == damaged);
    }
  }
}

}  // namespace
}  // namespace pv2::testing::leveldb_damage_test

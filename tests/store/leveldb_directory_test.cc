// SPDX-License-Identifier: Apache-2.0
//
// Which directories a LevelDB store opens, which it refuses, and what it says then; on real
// directories. A refusal leaves every byte as it was. What needs root (another user, a tiny file
// system) is done where the tests run as root.

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>

#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Every file below a directory with its bytes.
std::map<std::string, std::string> fingerprint(const fs::path& root) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    files[entry.path()] = entry.is_regular_file() ? read_file(entry.path()) : "directory";
  }
  return files;
}

constexpr LevelDbOptions::Committer kPump = LevelDbOptions::Committer::kPump;

Status open_and_close(const std::string& path, LevelDbOptions options = {}) {
  RecordingSink sink;
  LevelDbProcedureStore store(path, std::move(options));
  Status status = store.recover_lease(sink);
  store.close();
  return status;
}

void make_store(const std::string& path, int commits = 3, std::size_t padding = 0) {
  RecordingSink sink;
  LevelDbProcedureStore store(path, {.committer = kPump});
  REQUIRE(store.recover_lease(sink).ok());
  std::deque<Request> requests(static_cast<std::size_t>(commits));
  for (Request& request : requests) {
    request.number = static_cast<int>(sink.answers().size()) + 1;
    const std::string number = std::to_string(request.number);
    request.batch.insert(Space::kHost, number, "value of " + number + std::string(padding, '.'));
    store.commit(request);
    store.pump();
    REQUIRE(request.status.ok());
  }
  store.close();
}

fs::path only_file(const std::string& directory, const std::string& extension) {
  fs::path found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == extension) found = entry.path();
  }
  REQUIRE_FALSE(found.empty());
  return found;
}

void flip_byte(const fs::path& path, std::string_view at) {
  std::string bytes = read_file(path);
  const std::size_t position = bytes.find(at);
  REQUIRE(position != std::string::npos);
  bytes[position] = static_cast<char>(bytes[position] ^ 0x20);
  write_file(path, bytes);
}

// Runs `body` in a child process as a user without rights and returns what it says.
std::string as_nobody(const std::function<std::string()>& body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said = "cannot become another user";
    if (::geteuid() != 0 || ::setuid(65'534) == 0) said = body();
    const ssize_t written = ::write(ends[1], said.data(), said.size());
    ::_exit(written < 0);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[512];
  for (ssize_t size = 0; (size = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    said.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return said;
}

TEST_CASE("a second store on the same directory is refused and told which process has it") {
  const TemporaryDirectory directory;
  RecordingSink sink;
  LevelDbProcedureStore first(directory.path("orders.db"), {.committer = kPump});
  REQUIRE(first.recover_lease(sink).ok());

  const Status refused = open_and_close(directory.path("orders.db"));

  REQUIRE(refused.code() == StatusCode::kBusy);
  const std::string message(refused.message());
  REQUIRE_THAT(message, ContainsSubstring("orders.db is in use by process "));
  REQUIRE_THAT(message, ContainsSubstring(std::to_string(::getpid()) + " (store_tests) since 20"));
  REQUIRE_THAT(message, ContainsSubstring("stop it or use another directory"));

  first.close();
  REQUIRE(open_and_close(directory.path("orders.db")).ok());
}

TEST_CASE("a store whose process was killed opens at once, and one whose process lives does not") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("orders.db");
  make_store(path);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    RecordingSink sink;
    LevelDbProcedureStore store(path, {.committer = kPump});
    const bool opened = store.recover_lease(sink).ok();
    const ssize_t written = ::write(ends[1], opened ? "o" : "f", 1);
    if (written == 1) ::pause();
    ::_exit(1);
  }
  char opened = 0;
  REQUIRE(::read(ends[0], &opened, 1) == 1);
  REQUIRE(opened == 'o');
  const Status refused = open_and_close(path);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);

  REQUIRE(refused.code() == StatusCode::kBusy);
  REQUIRE_THAT(std::string(refused.message()),
               ContainsSubstring("in use by process " + std::to_string(child)));
  REQUIRE_FALSE(read_file(path + "/PV2-LOCK").empty());  // stale, and harmless
  REQUIRE(open_and_close(path).ok());
}

TEST_CASE("a directory with the files of others is refused and left as it is") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("home");
  fs::create_directory(path);
  write_file(path + "/letter.txt", "Dear Ada");
  write_file(path + "/CURRENT", "MANIFEST-000001\n");
  const auto before = fingerprint(path);

  const Status refused = open_and_close(path);

  REQUIRE(refused.code() == StatusCode::kFailedPrecondition);
  REQUIRE_THAT(std::string(refused.message()),
               ContainsSubstring("is not a pv2 store: it holds CURRENT and 1 more"));
  REQUIRE(fingerprint(path) == before);
}

TEST_CASE("a path that is a file, or whose parent does not exist, is refused by name") {
  const TemporaryDirectory directory;
  write_file(directory.path("file"), "text");

  const Status file = open_and_close(directory.path("file"));
  const Status orphan = open_and_close(directory.path("no/such/store"));

  REQUIRE(file.code() == StatusCode::kFailedPrecondition);
  REQUIRE_THAT(std::string(file.message()), ContainsSubstring("file is a file"));
  REQUIRE(read_file(directory.path("file")) == "text");
  REQUIRE(orphan.code() == StatusCode::kNotFound);
  REQUIRE_THAT(std::string(orphan.message()), ContainsSubstring("no/such does not exist"));
  REQUIRE_FALSE(fs::exists(directory.path("no")));
}

TEST_CASE("without create_if_missing nothing is made where no store is") {
  const TemporaryDirectory directory;
  const Status refused = open_and_close(directory.path("store"), {.create_if_missing = false});

  REQUIRE(refused.code() == StatusCode::kNotFound);
  REQUIRE_FALSE(fs::exists(directory.path("store")));
}

TEST_CASE("a newer format is refused with both versions and left as it is") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path);
  write_file(path + "/PV2-STORE", "pv2 store\nformat 7\ncomplete and with new lines\n");
  const auto before = fingerprint(path);

  const Status refused = open_and_close(path);

  REQUIRE(refused.code() == StatusCode::kNotSupported);
  REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("has format 7"));
  REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("up to format 1"));
  REQUIRE(fingerprint(path) == before);
}

TEST_CASE("missing permissions are reported with the path and what is needed") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path);
  fs::permissions(fs::path(path).parent_path(), fs::perms(0755));
  for (const unsigned mode : {0500U, 0555U, 0000U}) {
    fs::permissions(path, fs::perms(mode));
    for (const auto& entry : fs::directory_iterator(path)) {
      fs::permissions(entry.path(), fs::perms(0444));
    }
    const std::string said = as_nobody([&] { return open_and_close(path).to_string(); });
    fs::permissions(path, fs::perms(0700));

    INFO(said << " for mode " << mode);
    REQUIRE_THAT(said, StartsWith("IO_ERROR: "));
    REQUIRE_THAT(said, ContainsSubstring(path));
    REQUIRE_THAT(said, ContainsSubstring("Permission denied"));
    REQUIRE_THAT(said, ContainsSubstring("needs permission to read and write the directory"));
  }
}

TEST_CASE("a directory that may not be created is reported with the path") {
  const TemporaryDirectory directory;
  const fs::path parent = fs::path(directory.path("x")).parent_path();
  fs::permissions(parent, fs::perms(0555));

  const std::string said =
      as_nobody([&] { return open_and_close(directory.path("store")).to_string(); });
  fs::permissions(parent, fs::perms(0700));

  REQUIRE_THAT(said, StartsWith("IO_ERROR: "));
  REQUIRE_THAT(said, ContainsSubstring(directory.path("store")));
  REQUIRE_THAT(said, ContainsSubstring("Permission denied"));
}

TEST_CASE("a damaged log is refused with the file and the way out, and nothing has changed") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path);
  flip_byte(only_file(path, ".log"), "value of 2");
  const auto before = fingerprint(path);

  const Status refused = open_and_close(path);

  REQUIRE(refused.code() == StatusCode::kCorruption);
  const std::string message(refused.message());
  REQUIRE_THAT(message, ContainsSubstring(only_file(path, ".log").filename().string() +
                                          ": a wrong checksum at byte "));
  REQUIRE_THAT(message, ContainsSubstring("No data was changed. Restore the directory from"));
  REQUIRE(fingerprint(path) == before);
}

TEST_CASE("a missing file is refused by name") {
  const auto extension = GENERATE(std::string("CURRENT"), std::string(".log"), std::string(".ldb"));
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path);
  REQUIRE(open_and_close(path).ok());  // moves the rows from the log into a table
  const fs::path gone =
      extension == "CURRENT" ? fs::path(path + "/CURRENT") : only_file(path, extension);
  fs::remove(gone);
  const auto before = fingerprint(path);

  const Status refused = open_and_close(path);

  REQUIRE(refused.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(refused.message()),
               ContainsSubstring(gone.filename().string() + ": it is missing"));
  REQUIRE(fingerprint(path) == before);
}

TEST_CASE("a damaged table is found by load and named") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path, 3, 5'000);  // more than one block, so that opening does not meet the damage
  REQUIRE(open_and_close(path).ok());
  const fs::path table = only_file(path, ".ldb");
  flip_byte(table, "value of 2");

  RecordingSink sink;
  LevelDbProcedureStore store(path, {.committer = kPump});
  REQUIRE(store.recover_lease(sink).ok());
  const Status damaged = store.load([](const StoredRow&) { return Status(); });

  REQUIRE(damaged.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(damaged.message()), ContainsSubstring(table.filename().string()));
  REQUIRE(store.get(Space::kHost, "2").status().code() == StatusCode::kCorruption);
  store.close();
}

TEST_CASE("a damaged table is never merged into a sound one: the commits fail instead") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  const auto write = [&](int rounds) {
    RecordingSink sink;
    LevelDbProcedureStore store(path, {.write_buffer_bytes = 64 << 10, .committer = kPump});
    REQUIRE(store.recover_lease(sink).ok());
    Status status;
    for (int i = 0; i < rounds && status.ok(); ++i) {
      Request request;
      request.batch.put(Space::kHost, "a", "value of a");
      request.batch.put(Space::kHost, "z" + std::to_string(i % 50), std::string(2'000, 'z'));
      store.commit(request);
      store.pump();
      status = request.status;
    }
    store.close();
    return status;
  };
  // Three tables that overlap, then damage in each, then as many writes as surely merge them.
  for (int tables = 0; tables < 3; ++tables) REQUIRE(write(10).ok());
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".ldb") flip_byte(entry.path(), "value of a");
  }

  const Status failed = write(2'000);

  REQUIRE(failed.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(failed.message()), ContainsSubstring("leveldb commit of 1 batches"));
}

TEST_CASE("a full file system is reported as such and keeps what was acknowledged") {
  if (::geteuid() != 0) return;
  const TemporaryDirectory directory;
  const std::string tiny = directory.path("tiny");
  fs::create_directory(tiny);
  if (::mount("tmpfs", tiny.c_str(), "tmpfs", 0, "size=256k") != 0) return;
  std::size_t acknowledged = 0;
  std::size_t found = 0;
  Status full;
  {
    RecordingSink sink;
    LevelDbProcedureStore store(tiny + "/store", {.committer = kPump});
    full = store.recover_lease(sink);
    while (full.ok()) {
      Request request;
      request.batch.insert(Space::kHost, std::to_string(acknowledged), std::string(1'000, 'v'));
      store.commit(request);
      store.pump();
      full = request.status;
      if (full.ok()) ++acknowledged;
    }
    store.close();
  }
  const bool larger = ::mount("tmpfs", tiny.c_str(), "tmpfs", MS_REMOUNT, "size=4m") == 0;
  {
    RecordingSink sink;
    LevelDbProcedureStore store(tiny + "/store", {.committer = kPump});
    if (larger && store.recover_lease(sink).ok()) {
      found = scan_rows(store, Space::kHost, "").size();
    }
    store.close();
  }
  ::umount(tiny.c_str());

  REQUIRE(full.code() == StatusCode::kResourceExhausted);
  REQUIRE(acknowledged > 100);
  REQUIRE(larger);
  REQUIRE(found >= acknowledged);
}

TEST_CASE("salvage cuts a damaged log at the damage, keeps copies, and says what is left") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path, 5);
  const fs::path log = only_file(path, ".log");
  flip_byte(log, "value of 3");
  const std::string damaged = read_file(log);
  REQUIRE(open_and_close(path).code() == StatusCode::kCorruption);

  const auto salvaged = LevelDbProcedureStore::salvage(path);

  REQUIRE(salvaged.ok());
  REQUIRE(salvaged.value().changed);
  REQUIRE(salvaged.value().last_kept.value == 2);
  REQUIRE_THAT(salvaged.value().report, ContainsSubstring("Every commit up to 2 is kept"));
  REQUIRE(read_file(fs::path(salvaged.value().copies) / log.filename()) == damaged);
  RecordingSink sink;
  LevelDbProcedureStore store(path, {.committer = kPump});
  REQUIRE(store.recover_lease(sink).ok());
  REQUIRE(scan_rows(store, Space::kHost, "") ==
          std::vector<std::string>{"1=value of 1", "2=value of 2"});
  store.close();
}

TEST_CASE("salvage leaves alone what is sound, what is in use, and what it cannot mend") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  REQUIRE(LevelDbProcedureStore::salvage(path).status().code() == StatusCode::kNotFound);

  make_store(path);
  REQUIRE_FALSE(LevelDbProcedureStore::salvage(path).value().changed);
  {
    RecordingSink sink;
    LevelDbProcedureStore owner(path);
    REQUIRE(owner.recover_lease(sink).ok());
    REQUIRE(LevelDbProcedureStore::salvage(path).status().code() == StatusCode::kBusy);
    owner.close();
  }
  flip_byte(only_file(path, ".ldb"), "value of 2");
  const auto before = fingerprint(path);
  const Status beyond = LevelDbProcedureStore::salvage(path).status();

  REQUIRE(beyond.code() == StatusCode::kNotSupported);
  REQUIRE_THAT(std::string(beyond.message()), ContainsSubstring(".ldb"));
  auto after = fingerprint(path);
  after[path + "/PV2-LOCK"] = before.at(path + "/PV2-LOCK");
  REQUIRE(after == before);
}

}  // namespace
}  // namespace pv2::testing

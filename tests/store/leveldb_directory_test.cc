// SPDX-License-Identifier: Apache-2.0
//
// Which directories a LevelDB store opens, which it refuses, and with which message; on real
// directories. A refusal leaves every byte as it was. Tests that need root (another user, a tiny
// file system) run only as root.

#include <fcntl.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "leveldb_files.h"
#include "log/segment_pool.h"
#include "step_files.h"
#include "store_fixture.h"
#include "support/catch.h"
#include "support/forked_child.h"
#include "support/new_threads_limit.h"

namespace pv2::testing::leveldb_directory_test {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

constexpr LevelDbOptions::Committer kPump = LevelDbOptions::Committer::kPump;

// A file system of its own in memory, of `size`, until it is destroyed. Only root may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& size) {
    fs::create_directory(root_);
    is_mounted_ = ::geteuid() == 0 && mount(0, "size=" + size);
  }
  ~SmallDisk() {
    if (is_mounted_) ::umount(root_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  [[nodiscard]] bool is_mounted() const { return is_mounted_; }
  [[nodiscard]] std::string path(const std::string& name) const { return root_ + "/" + name; }
  [[nodiscard]] std::uintmax_t room() const { return fs::space(root_).available; }
  [[nodiscard]] bool grow_to(const std::string& size) { return mount(MS_REMOUNT, "size=" + size); }
  [[nodiscard]] bool make_read_only() { return mount(MS_REMOUNT | MS_RDONLY, ""); }

 private:
  bool mount(unsigned long flags, const std::string& options) {
    return ::mount("tmpfs", root_.c_str(), "tmpfs", flags, options.c_str()) == 0;
  }

  TemporaryDirectory directory_;
  std::string root_ = directory_.path("disk");
  bool is_mounted_ = false;
};

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

// One commit takes the store over: the rows of the step log go into LevelDB's log, and LevelDB
// moves those that were there into a table.
void commit_once(const std::string& path) {
  RecordingSink sink;
  LevelDbProcedureStore store(path, {.committer = kPump});
  REQUIRE(store.recover_lease(sink).ok());
  Request request;
  request.batch.put(Space::kEngine, "again", "");
  store.commit(request);
  store.pump();
  REQUIRE(request.status.ok());
  store.close();
}

// The file of the step log that make_store() has written.
fs::path steps(const std::string& path) {
  return path + "/" + std::string(SegmentPool::kFilePrefix) + "1";
}

// Rows in a table, in LevelDB's log and in the step log.
void make_settled_store(const std::string& path, std::size_t padding = 0) {
  make_store(path, 3, padding);
  commit_once(path);
  commit_once(path);
}

Status open_load_and_close(const std::string& path) {
  RecordingSink sink;
  LevelDbProcedureStore store(path, {.committer = kPump});
  Status status = store.recover_lease(sink);
  if (status.ok()) status = visit_all(store, [](const StoredRow&) { return Status(); });
  store.close();
  return status;
}

fs::path only_file(const std::string& directory, const std::string& extension) {
  fs::path found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == extension) found = entry.path();
  }
  REQUIRE_FALSE(found.empty());
  return found;
}

// The one file with this extension that has this text.
fs::path file_with(const std::string& directory, const std::string& extension,
                   std::string_view text) {
  fs::path found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const bool fits = entry.path().extension() == extension;
    if (fits && read_file(entry.path()).find(text) != std::string::npos) found = entry.path();
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
  const ForkedChild child([&](int writing) {
    const bool is_nobody = ::geteuid() != 0 || ::setuid(65'534) == 0;
    say(writing, is_nobody ? body() : "cannot become another user");
  });
  return child.read_all();
}

TEST_CASE("a second store on the same directory is refused with the process that has it") {
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
  ForkedChild child([&](int writing) {
    RecordingSink sink;
    LevelDbProcedureStore store(path, {.committer = kPump});
    say(writing, store.recover_lease(sink).ok() ? "opened" : "failed");
    ::pause();
  });
  REQUIRE(child.read_some() == "opened");
  const pid_t pid = child.pid();
  const Status refused = open_and_close(path);
  child.kill();

  REQUIRE(refused.code() == StatusCode::kBusy);
  REQUIRE_THAT(std::string(refused.message()),
               ContainsSubstring("in use by process " + std::to_string(pid)));
  REQUIRE_FALSE(read_file(path + "/PV2-LOCK").empty());  // stale, and harmless
  REQUIRE(open_and_close(path).ok());
}

TEST_CASE("a database that a program without the lock of stores has locked is in use") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path);
  const ForkedChild child([&](int writing) {
    const int fd = ::open((path + "/LOCK").c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    say(writing, ::fcntl(fd, F_SETLK, &lock) == 0 ? "locked" : "failed");
    ::pause();
  });
  REQUIRE(child.read_some() == "locked");

  const Status refused = open_and_close(path);

  REQUIRE(refused.code() == StatusCode::kBusy);
  REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("in use by another program"));
}

TEST_CASE("a store of which a file cannot be opened is not in use") {
  const TemporaryDirectory directory;
  const std::string name = GENERATE(std::string("store"), std::string("LOCKbox"));
  const std::string path = directory.path(name);
  make_settled_store(path);
  const fs::path file = path + "/LOCK";
  fs::remove(file);
  fs::create_directory(file);

  const Status refused = open_and_close(path);

  REQUIRE(refused.code() == StatusCode::kIoError);
  REQUIRE_THAT(std::string(refused.message()), ContainsSubstring(file.string()));
}

TEST_CASE("a store without its marker is damaged, and not somebody else's directory") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path);
  const std::string marker = read_file(path + "/PV2-STORE");
  fs::remove(path + "/PV2-STORE");
  const auto before = fingerprint(path);

  const Status refused = open_and_close(path);

  REQUIRE(refused.code() == StatusCode::kCorruption);
  const std::string message(refused.message());
  REQUIRE_THAT(message,
               ContainsSubstring("PV2-STORE: it is missing; if it is all that is missing"));
  REQUIRE(fingerprint(path) == before);
  std::string said = marker;  // of three lines
  said.pop_back();
  for (std::size_t end = 0; (end = said.find('\n', end)) != std::string::npos; end += 4) {
    said.replace(end, 1, "', '");
  }
  REQUIRE_THAT(message, ContainsSubstring("these lines: '" + said + "'"));
}

TEST_CASE("a log with a number that LevelDB could not count on from is refused") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_settled_store(path);
  write_file(path + "/18446744073709551615.log", "");
  const auto before = fingerprint(path);

  const Status refused = open_and_close(path);

  REQUIRE(refused.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("18446744073709551615.log"));
  REQUIRE(fingerprint(path) == before);
}

TEST_CASE("a directory with foreign files is refused and left as it is") {
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

TEST_CASE("without create_if_missing no store is created where there is none") {
  const TemporaryDirectory directory;
  const Status refused = open_and_close(directory.path("store"), {.create_if_missing = false});

  REQUIRE(refused.code() == StatusCode::kNotFound);
  REQUIRE_FALSE(fs::exists(directory.path("store")));
}

TEST_CASE("without create_if_missing a store that was never finished is none, and stays so") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path, 0);
  write_file(path + "/PV2-STORE", "pv2 store\nformat 3\ncreating\n");
  const auto before = fingerprint(path);

  const Status refused = open_and_close(path, {.create_if_missing = false});

  REQUIRE(refused.code() == StatusCode::kNotFound);
  REQUIRE(fingerprint(path) == before);
  REQUIRE(open_and_close(path).ok());
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
  REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("up to format 3"));
  REQUIRE(fingerprint(path) == before);
}

// A store as a version without a step log has left it, whose marker is `marker`.
void make_older_store(const std::string& path, const std::string& marker) {
  make_store(path);
  make_store(path, 3);
  commit_once(path);
  fs::remove(steps(path));
  const TemporaryDirectory other;
  make_store(other.path("store"), 3);
  write_file(path + "/PV2-DURABLE", read_file(other.path("store/PV2-DURABLE")));
  write_file(path + "/PV2-STORE", marker);
}

TEST_CASE("a store of an older format stays as it was until the first commit, which upgrades it") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  const std::string older = GENERATE(std::string("pv2 store\nformat 1\ncomplete\n"),
                                     std::string("pv2 store\nformat 2\ncomplete\n"));
  make_older_store(path, older);
  REQUIRE(open_load_and_close(path).ok());
  REQUIRE(read_file(path + "/PV2-STORE") == older);

  commit_once(path);

  REQUIRE(read_file(path + "/PV2-STORE") == "pv2 store\nformat 3\ncomplete\n");
  REQUIRE(open_load_and_close(path).ok());
}

// The value of a row ended in zeros, so a commit that is damaged may look like one in part.
TEST_CASE("zeros at the end of the log of an older format, which holds commits, are damage") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_older_store(path, "pv2 store\nformat 2\ncomplete\n");
  const fs::path log = only_file(path, ".log");
  fs::resize_file(log, fs::file_size(log) + 700);

  const Status refused = open_load_and_close(path);

  REQUIRE(refused.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(refused.message()),
               ContainsSubstring(log.filename().string() + ": a wrong checksum"));
}

TEST_CASE("a store that is refused as damaged keeps every file name and every byte") {
  struct Damage {
    std::string what;
    std::function<void(const std::string& path)> act;
  };
  const auto cut = [](const fs::path& file, std::size_t bytes) { fs::resize_file(file, bytes); };
  const std::vector<Damage> all = {
      {"a block of a table",
       [](auto& path) { flip_byte(file_with(path, ".ldb", "value of 2"), "value of 2"); }},
      {"a table that is cut",
       [&](auto& path) { cut(file_with(path, ".ldb", "value of 2"), 5'000); }},
      {"a table that is missing", [](auto& path) { fs::remove(only_file(path, ".ldb")); }},
      {"a frame of the step log", [](auto& path) { flip_byte(steps(path), "again"); }},
      {"a step log that is cut", [&](auto& path) { cut(steps(path), 10); }},
      {"a step log that is empty", [&](auto& path) { cut(steps(path), 0); }},
      {"a step log that is missing", [](auto& path) { fs::remove(steps(path)); }},
      {"a step log of zeros",
       [](auto& path) { write_file(steps(path), std::string(fs::file_size(steps(path)), '\0')); }},
      {"a block of the log", [](auto& path) { flip_byte(only_file(path, ".log"), "again"); }},
      {"a log that is cut", [&](auto& path) { cut(only_file(path, ".log"), 10); }},
      {"a log that is empty", [&](auto& path) { cut(only_file(path, ".log"), 0); }},
      {"a log that is missing", [](auto& path) { fs::remove(only_file(path, ".log")); }},
      {"the MANIFEST",
       [](auto& path) {
         const std::string current = read_file(path + "/CURRENT");
         flip_byte(path + "/" + current.substr(0, current.size() - 1), "leveldb.Bytewise");
       }},
      {"CURRENT", [](auto& path) { write_file(path + "/CURRENT", "MANIFEST-000099\n"); }},
      {"the marker", [](auto& path) { write_file(path + "/PV2-STORE", "pv2 store\nformat 1\n"); }},
      {"the format", [](auto& path) { write_file(path + "/PV2-STORE", "pv2 store\nformat 2\n"); }},
      {"a marker that says creating",
       [](auto& path) { write_file(path + "/PV2-STORE", "pv2 store\nformat 1\ncreating\n"); }},
      {"a marker that names the format before the step log",
       [](auto& path) { write_file(path + "/PV2-STORE", "pv2 store\nformat 2\ncomplete\n"); }},
      {"the marks", [](auto& path) { write_file(path + "/PV2-DURABLE", std::string(12, 'x')); }},
      {"the value of a row",
       [](auto& path) {
         leveldb::DB* opened = nullptr;
         REQUIRE(leveldb::DB::Open({}, path, &opened).ok());
         const std::unique_ptr<leveldb::DB> db(opened);
         REQUIRE(db->Put({}, "H2", "short").ok());
       }},
  };
  for (const Damage& damage : all) {
    INFO("damaged: " << damage.what);
    const TemporaryDirectory directory;
    const std::string path = directory.path("store");
    make_settled_store(path, 5'000);
    REQUIRE(open_load_and_close(path).ok());
    damage.act(path);
    const auto before = fingerprint(path);

    const Status refused = open_load_and_close(path);

    INFO(refused.to_string());
    REQUIRE(
        (refused.code() == StatusCode::kCorruption || refused.code() == StatusCode::kNotSupported));
    REQUIRE_THAT(std::string(refused.message()), ContainsSubstring(path));
    REQUIRE(fingerprint(path) == before);
  }
}

TEST_CASE("a store that another owner has is refused, and left as it is") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  RecordingSink sink;
  LevelDbProcedureStore owner(path, {.committer = kPump});
  REQUIRE(owner.recover_lease(sink).ok());
  const auto before = fingerprint(path);

  REQUIRE(open_load_and_close(path).code() == StatusCode::kBusy);

  REQUIRE(fingerprint(path) == before);
  owner.close();
}

TEST_CASE("a marker that says creating is believed only as long as there is no data") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  const std::string creating = "pv2 store\nformat 3\ncreating\n";
  make_store(path);
  const bool in_database = GENERATE(false, true);
  if (in_database) commit_once(path);
  if (in_database) fs::remove(steps(path));
  const fs::path log = only_file(path, ".log");
  const std::string bytes = read_file(log);
  if (!in_database) fs::resize_file(log, 0);
  write_file(path + "/PV2-STORE", creating);

  const Status refused = open_and_close(path);

  REQUIRE(refused.code() == StatusCode::kCorruption);
  const std::string message(refused.message());
  REQUIRE_THAT(message, ContainsSubstring("says that the store was never finished"));
  REQUIRE_THAT(message, ContainsSubstring(in_database ? " holds " : "PV2-STEPS-1 holds "));
  REQUIRE_THAT(message, ContainsSubstring("write \"complete\" in place of \"creating\""));
  if (in_database) return;
  write_file(log, bytes);
  write_file(path + "/PV2-STORE", "pv2 store\nformat 3\ncomplete\n");
  REQUIRE(open_and_close(path).ok());

  const std::string fresh = directory.path("fresh");  // interrupted before its first commit
  make_store(fresh, 0);
  write_file(fresh + "/PV2-STORE", creating);
  REQUIRE(open_and_close(fresh).ok());
}

TEST_CASE("a directory that is removed, moved or replaced under a store fails its next commit") {
  const auto how = GENERATE(std::string("removed"), std::string("moved"), std::string("replaced"));
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(directory.path("other"));
  RecordingSink sink;
  LevelDbProcedureStore store(path, {.committer = kPump});
  REQUIRE(store.recover_lease(sink).ok());
  std::deque<Request> requests(3);
  const auto commit = [&](std::size_t i) {
    requests[i].batch.put(Space::kHost, std::to_string(i), "value");
    store.commit(requests[i]);
    store.pump();
    return requests[i].status;
  };
  REQUIRE(commit(0).ok());
  if (how == "moved") {
    fs::rename(path, directory.path("elsewhere"));
  } else {
    fs::remove_all(path);
  }
  if (how == "replaced") fs::rename(directory.path("other"), path);

  const Status failed = commit(1);

  INFO(failed.to_string());
  REQUIRE(failed.code() == StatusCode::kIoError);
  REQUIRE_THAT(std::string(failed.message()),
               ContainsSubstring("store " + path + " was removed, moved or replaced"));
  REQUIRE(commit(2) == failed);
  store.close();
}

TEST_CASE("a store that is put in the place of an open one keeps every byte") {
  const bool in_use = GENERATE(false, true);
  const std::size_t segment_bytes = GENERATE(std::size_t{1}, std::size_t{16} << 20);
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  const std::string other = directory.path("other");
  LevelDbOptions options{.segment_bytes = segment_bytes, .committer = kPump};
  const auto live = [&](const std::string& at, const std::function<void()>& before_last) {
    RecordingSink sink;
    LevelDbProcedureStore store(at, options);
    REQUIRE(store.recover_lease(sink).ok());
    std::deque<Request> requests(10);
    Status status;
    const std::size_t commits = before_last && !in_use ? 1 : requests.size();
    for (std::size_t i = 0; i < commits; ++i) {
      if (i + 1 == commits && before_last) before_last();
      requests[i].batch.put(Space::kHost, std::to_string(i), at + std::string(3'000, 'v'));
      store.commit(requests[i]);
      store.pump();
      status = requests[i].status;
    }
    store.close();
    return status;
  };
  REQUIRE(live(other, {}).ok());
  REQUIRE(live(path, {}).ok());
  std::map<std::string, std::string> before;

  const Status failed = live(path, [&] {
    fs::rename(path, directory.path("moved"));
    fs::rename(other, path);
    before = fingerprint(path);
  });

  REQUIRE_THAT(std::string(failed.message()),
               ContainsSubstring("store " + path + " was removed, moved or replaced"));
  REQUIRE(fingerprint(path) == before);
  REQUIRE(open_load_and_close(path).ok());
  REQUIRE(open_load_and_close(directory.path("moved")).ok());
}

// LevelDB begins a log when the table in its memory is full, and opens it by its name.
TEST_CASE("a checkpoint begins no file in a directory that is put in the store's place") {
  const TemporaryDirectory directory;
  // Commits until `is_over` says so. Each fills a segment, and moves an earlier one.
  const auto live = [&](const std::string& path, const std::function<bool(int)>& is_over) {
    RecordingSink sink;
    LevelDbProcedureStore store(
        path, {.write_buffer_bytes = 65'536, .segment_bytes = 1, .committer = kPump});
    REQUIRE(store.recover_lease(sink).ok());
    std::deque<Request> requests;
    for (int commits = 1; requests.empty() || requests.back().status.ok(); ++commits) {
      requests.emplace_back().batch.put(Space::kHost, std::to_string(commits),
                                        std::string(9'000, 'v'));
      store.commit(requests.back());
      store.pump();
      if (is_over(commits)) break;
    }
    store.close();
  };
  const auto logs = [](const std::string& path) {
    std::set<std::string> names;
    for (const auto& [file, bytes] : fingerprint(path)) {
      if (file.ends_with(".log")) names.insert(file);
    }
    return names;
  };
  const std::string twin = directory.path("twin");
  std::set<std::string> first;
  int until_next = 0;
  live(twin, [&](int commits) {
    if (commits == 1) first = logs(twin);
    until_next = commits;
    return logs(twin) != first;
  });
  const std::string path = directory.path("store");
  std::map<std::string, std::string> before;

  live(path, [&](int commits) {
    if (commits + 1 != until_next) return false;
    fs::rename(path, directory.path("moved"));
    fs::rename(twin, path);
    before = fingerprint(path);
    return false;
  });

  REQUIRE_FALSE(before.empty());
  REQUIRE(fingerprint(path) == before);
}

TEST_CASE("an invalid path, and one that leads nowhere, is refused with a message that says why") {
  const TemporaryDirectory directory;
  write_file(directory.path("file"), "text");
  fs::create_symlink("nowhere", directory.path("dangling"));
  fs::create_symlink("file", directory.path("to-file"));
  fs::create_directory(directory.path("real"));
  fs::create_symlink("real", directory.path("good"));
  const auto said = [&](const std::string& path) { return open_and_close(path).to_string(); };

  REQUIRE_THAT(said(""), ContainsSubstring("the path of a store is empty; name a directory"));
  REQUIRE_THAT(said(std::string("a\0b", 3)), ContainsSubstring("contains a zero byte"));
  REQUIRE_THAT(said(std::string(5'000, 'p')), ContainsSubstring("has 5000 bytes; at most"));
  for (const char* const slash : {"", "/", "//"}) {
    REQUIRE_THAT(said(directory.path("dangling") + slash),
                 ContainsSubstring("dangling is a symbolic link to nowhere, which does not exist"));
  }
  REQUIRE_THAT(said(directory.path("to-file")), ContainsSubstring("to-file is a file; a store is"));
  REQUIRE_THAT(said(directory.path("file/store")), ContainsSubstring("file is a file; a store is"));
  REQUIRE_THAT(said(directory.path("file") + "/"), ContainsSubstring("a file; a store is"));
  REQUIRE(open_and_close(directory.path("good")).ok());
  REQUIRE_FALSE(fs::exists(directory.path("nowhere")));
}

TEST_CASE("a relative path is refused with a message if the current directory was removed") {
  const TemporaryDirectory directory;
  const std::string gone = directory.path("gone");
  fs::create_directory(gone);
  const ForkedChild child([&](int writing) {
    const bool is_there = ::chdir(gone.c_str()) == 0 && ::rmdir(gone.c_str()) == 0;
    say(writing, is_there ? open_and_close("store").to_string() : "cannot go there");
  });

  REQUIRE_THAT(child.read_all(),
               ContainsSubstring("the current directory of the process cannot be found"));
}

TEST_CASE("a file system that is mounted read-only is named as the reason") {
  SmallDisk disk("4m");
  if (!disk.is_mounted()) return;
  make_store(disk.path("store"));
  REQUIRE(disk.make_read_only());

  const Status old_store = open_and_close(disk.path("store"));
  const Status new_store = open_and_close(disk.path("new"));

  for (const Status& refused : {old_store, new_store}) {
    REQUIRE(refused.code() == StatusCode::kIoError);
    REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("Read-only file system"));
    REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("mount the file system for"));
  }
}

TEST_CASE("salvage of a store that has lost commits keeps what is there, and it opens again") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path, 5);
  const fs::path log = steps(path);
  fs::resize_file(log, frame_ends(read_file(log)).back() / 2);
  const std::string marks = read_file(path + "/PV2-DURABLE");
  REQUIRE(open_and_close(path).code() == StatusCode::kCorruption);

  const auto salvaged = LevelDbProcedureStore::salvage(path);

  REQUIRE(salvaged.ok());
  REQUIRE(salvaged.value().changed);
  REQUIRE(salvaged.value().last_kept.value == 2);
  REQUIRE_THAT(salvaged.value().report, ContainsSubstring("said that commit 5 was durable"));
  REQUIRE(read_file(salvaged.value().copies + "/PV2-DURABLE") == marks);
  REQUIRE(open_load_and_close(path).ok());
  commit_once(path);
  REQUIRE(open_load_and_close(path).ok());
  REQUIRE_FALSE(LevelDbProcedureStore::salvage(path).value().changed);
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
  const bool in_database = GENERATE(false, true);
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path);
  if (in_database) commit_once(path);
  flip_byte(in_database ? only_file(path, ".log") : steps(path), "value of 2");
  const auto before = fingerprint(path);

  const Status refused = open_and_close(path);

  REQUIRE(refused.code() == StatusCode::kCorruption);
  const std::string message(refused.message());
  if (in_database) {
    REQUIRE_THAT(message, ContainsSubstring(only_file(path, ".log").filename().string() +
                                            ": a wrong checksum at byte "));
  } else {
    const std::size_t damage = frame_ends(read_file(steps(path))).front();
    REQUIRE_THAT(message, ContainsSubstring("PV2-STEPS-1: from byte " + std::to_string(damage) +
                                            " on, commit 2 is missing, though PV2-STEPS-1 goes "
                                            "on with commit 3"));
  }
  REQUIRE_THAT(message, ContainsSubstring("No data was changed. Restore the directory from"));
  REQUIRE(fingerprint(path) == before);
}

TEST_CASE("a missing file is refused by name") {
  const auto extension = GENERATE(std::string("CURRENT"), std::string(".log"), std::string(".ldb"));
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_settled_store(path);
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

TEST_CASE("an error from reading a damaged table names the table") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_settled_store(path, 5'000);  // more than one block: opening does not meet the damage
  const fs::path table = file_with(path, ".ldb", "value of 2");
  flip_byte(table, "value of 2");

  RecordingSink sink;
  LevelDbProcedureStore store(path, {.committer = kPump});
  REQUIRE(store.recover_lease(sink).ok());
  const Status damaged = visit_all(store, [](const StoredRow&) { return Status(); });

  REQUIRE(damaged.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(damaged.message()), ContainsSubstring(table.filename().string()));
  const Status of_one = store.get(Space::kHost, "2").status();
  REQUIRE(of_one.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(of_one.message()), ContainsSubstring(table.filename().string()) &&
                                                  ContainsSubstring("No data was changed"));
  store.close();
}

TEST_CASE("a damaged table is never merged into a sound one: the commits fail instead") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  const auto write = [&](int rounds) {
    RecordingSink sink;
    LevelDbProcedureStore store(path, {.write_buffer_bytes = 64 << 10,
                                       .segment_bytes = 64 << 10,  // many checkpoints
                                       .committer = kPump});
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
  // Two tables that overlap, then damage in each, then as many writes as surely merge them. The
  // rows of a life are in a table after the next two; LevelDB merges by itself from four tables on.
  for (int lives = 0; lives < 4; ++lives) REQUIRE(write(10).ok());
  int damaged = 0;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() != ".ldb") continue;
    if (read_file(entry.path()).find("value of a") == std::string::npos) continue;
    flip_byte(entry.path(), "value of a");
    ++damaged;
  }
  REQUIRE(damaged == 2);

  const Status failed = write(2'000);

  REQUIRE(failed.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(failed.message()), ContainsSubstring("leveldb commit of 1 batches"));
}

TEST_CASE("a full file system is reported as such and keeps what was acknowledged") {
  SmallDisk disk("256k");
  if (!disk.is_mounted()) return;
  std::size_t acknowledged = 0;
  Status full;
  {
    RecordingSink sink;
    LevelDbProcedureStore store(disk.path("store"), {.committer = kPump});
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
  REQUIRE(full.code() == StatusCode::kStorageFull);
  REQUIRE(acknowledged > 50);  // more than one file of the log may hold

  REQUIRE(disk.grow_to("4m"));
  RecordingSink sink;
  LevelDbProcedureStore store(disk.path("store"), {.committer = kPump});
  REQUIRE(store.recover_lease(sink).ok());
  REQUIRE(scan_rows(store, Space::kHost, "").size() >= acknowledged);
  store.close();
}

TEST_CASE("salvage cuts a damaged log of the database, and keeps all that went before") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  {
    RecordingSink sink;
    LevelDbProcedureStore store(path, {.segment_bytes = 1, .committer = kPump});
    REQUIRE(store.recover_lease(sink).ok());
    for (int i = 1; i <= 9; ++i) {  // each commit fills a segment, and two are kept
      Request request;
      request.batch.insert(Space::kHost, std::to_string(i), "value of " + std::to_string(i));
      store.commit(request);
      store.pump();
      REQUIRE(request.status.ok());
    }
    store.close();
  }
  const fs::path log = only_file(path, ".log");
  flip_byte(log, "value of 5");
  const std::string damaged = read_file(log);
  REQUIRE(open_and_close(path).code() == StatusCode::kCorruption);

  const auto salvaged = LevelDbProcedureStore::salvage(path);

  REQUIRE(salvaged.ok());
  REQUIRE(salvaged.value().changed);
  REQUIRE(salvaged.value().last_kept.value == 4);  // the files of the later ones are used again
  REQUIRE(read_file(fs::path(salvaged.value().copies) / log.filename()) == damaged);
  RecordingSink sink;
  LevelDbProcedureStore store(path, {.committer = kPump});
  REQUIRE(store.recover_lease(sink).ok());
  REQUIRE(scan_rows(store, Space::kHost, "").size() == 4);
  store.close();
  commit_once(path);
  REQUIRE(open_load_and_close(path).ok());
  REQUIRE_FALSE(LevelDbProcedureStore::salvage(path).value().changed);
}

TEST_CASE("salvage cuts a damaged log at the damage, keeps copies, and reports what is left") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path, 5);
  const fs::path log = steps(path);
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

TEST_CASE("a salvage without room for its copies leaves none, changes nothing and works later") {
  const SmallDisk disk("4m");
  if (!disk.is_mounted()) return;
  const std::string path = disk.path("store");
  make_store(path, 5);
  flip_byte(steps(path), "value of 3");
  const auto before = fingerprint(path);
  write_file(disk.path("other"), std::string(disk.room() - fs::file_size(steps(path)) / 2, 'x'));

  const Status failed = LevelDbProcedureStore::salvage(path).status();

  REQUIRE(failed.code() == StatusCode::kStorageFull);
  REQUIRE_THAT(std::string(failed.message()), !ContainsSubstring("copies are in"));
  REQUIRE(fingerprint(path) == before);
  REQUIRE_FALSE(fs::exists(path + ".salvaged-1"));

  fs::remove(disk.path("other"));
  REQUIRE(LevelDbProcedureStore::salvage(path).ok());
  REQUIRE(fs::exists(path + ".salvaged-1/PV2-STEPS-1"));
  REQUIRE(fs::exists(path + ".salvaged-1/PV2-DURABLE"));
}

TEST_CASE("wherever the disk is full, a salvage that fails to lower the marks leaves no copies") {
  const SmallDisk disk("4m");
  if (!disk.is_mounted()) return;
  const std::string path = disk.path("store");
  make_store(path, 5);
  const fs::path log = steps(path);
  fs::resize_file(log, frame_ends(read_file(log)).back() / 2);
  const std::string marks = read_file(path + "/PV2-DURABLE");
  const auto before = fingerprint(path);
  const std::uintmax_t room = disk.room();
  constexpr std::uintmax_t kPage = 4096;
  int failures = 0;
  bool is_salvaged = false;
  for (std::uintmax_t pages = 0; pages < 64 && !is_salvaged; ++pages) {
    write_file(disk.path("other"), std::string(room - pages * kPage, 'x'));
    const Status status = LevelDbProcedureStore::salvage(path).status();
    fs::remove(disk.path("other"));
    // Beyond the marks a failure has changed something, and the copies are of use.
    is_salvaged = read_file(path + "/PV2-DURABLE") != marks;
    if (is_salvaged) continue;
    ++failures;
    REQUIRE(fingerprint(path) == before);
    REQUIRE_FALSE(fs::exists(path + ".salvaged-1"));
    REQUIRE_THAT(std::string(status.message()), !ContainsSubstring("copies are in"));
  }

  REQUIRE(failures > 2);  // for a log, for the copied marks, and for the new ones
  REQUIRE(is_salvaged);
  REQUIRE(fs::exists(path + ".salvaged-1/PV2-DURABLE"));
}

TEST_CASE("the copies of a salvage lie beside the store, however its path ends") {
  const auto end = GENERATE(std::string("/"), std::string("//"), std::string("/."),
                            std::string("/./"), std::string("/below/.."));
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  make_store(path, 5);
  fs::create_directory(path + "/below");
  flip_byte(steps(path), "value of 3");

  const auto salvaged = LevelDbProcedureStore::salvage(path + end);

  INFO(salvaged.status().to_string());
  REQUIRE(salvaged.ok());
  REQUIRE(salvaged.value().changed);
  REQUIRE(fs::equivalent(salvaged.value().copies, path + ".salvaged-1"));
  REQUIRE(fs::is_regular_file(path + ".salvaged-1/PV2-STEPS-1"));
  for (const auto& [file, bytes] : fingerprint(path)) {
    REQUIRE(file.find("salvaged", path.size()) == std::string::npos);
  }
}

TEST_CASE("the directory that holds a path is another one, also if the path ends in dots") {
  CHECK(parent_of("orders") == ".");
  CHECK(parent_of("orders/") == ".");
  CHECK(parent_of("data/orders//") == "data");
  CHECK(parent_of("/orders") == "/");
  CHECK(parent_of(".") == "./..");
  CHECK(parent_of("data/..") == "data/../..");
  CHECK(parent_of("data/./") == "data/.//..");
  CHECK(parent_of("data/..orders") == "data");
}

TEST_CASE("a store that finds no thread keeps nothing, so another one opens at once") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("store");
  for (std::size_t threads = 0; threads < 10; ++threads) {
    RecordingSink sink;
    LevelDbProcedureStore refused(path);
    Status status;
    {
      const NewThreadsLimit limit(threads);
      status = refused.recover_lease(sink);
    }
    INFO(threads << " threads: " << status.to_string());
    if (status.ok()) {
      CHECK(threads >= 3);  // LevelDB's, that of checkpoints, the committer
      return refused.close();
    }
    CHECK(status.code() == StatusCode::kResourceExhausted);
    REQUIRE(open_and_close(path).ok());
  }
  FAIL("it never opened");
}

// Another process is faster whenever a directory is made.
class FasterProcessEnv final : public leveldb::EnvWrapper {
 public:
  explicit FasterProcessEnv(leveldb::Env& env) : EnvWrapper(&env) {}
  leveldb::Status CreateDir(const std::string& path) override {
    const leveldb::Status made = EnvWrapper::CreateDir(path);
    return made.ok() ? leveldb::Status::IOError(path, "File exists") : made;
  }
};

TEST_CASE("whoever finds that another process has just made the directory goes on with it") {
  CrashEnv env;
  FasterProcessEnv faster(env);
  LevelDbOptions options = on_crash_env(env);
  options.env = static_cast<leveldb::Env*>(&faster);
  CHECK(open_and_close("store", std::move(options)).to_string() == "OK");
}

TEST_CASE("salvage leaves stores alone that are sound, in use, or beyond repair") {
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
  commit_once(path);
  commit_once(path);
  flip_byte(file_with(path, ".ldb", "value of 2"), "value of 2");
  const auto before = fingerprint(path);
  const Status beyond = LevelDbProcedureStore::salvage(path).status();

  REQUIRE(beyond.code() == StatusCode::kNotSupported);
  REQUIRE_THAT(std::string(beyond.message()), ContainsSubstring(".ldb"));
  auto after = fingerprint(path);
  after[path + "/PV2-LOCK"] = before.at(path + "/PV2-LOCK");
  REQUIRE(after == before);
}

}  // namespace
}  // namespace pv2::testing::leveldb_directory_test

// SPDX-License-Identifier: Apache-2.0
//
// Where a log ends: the last frame may be there in part in every way, and nothing before it.

#include "log/log_recovery.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "../step_files.h"
#include "../store_fixture.h"
#include "log_fixture.h"
#include "support/catch.h"

namespace pv2::testing::log_recovery_test {
namespace {

constexpr std::size_t kPage = 4096;

std::string file_name(int number) { return "PV2-STEPS-" + std::to_string(number); }

// Files by name, as they are on the disk.
using Files = std::map<std::string, std::string>;

RecoveredLog recover(const Files& files, std::uint64_t first = 5, std::uint64_t after = 100,
                     Checkpointed checkpointed = Checkpointed::kSkip) {
  CrashEnv env;
  REQUIRE(env.CreateDir("store").ok());
  for (const auto& [name, bytes] : files) env.set_contents("store/" + name, bytes);
  env.set_contents("store/PV2-STORE", "is not looked at");
  const LevelDbFiles of(env, env.directory_sync());
  auto log = recover_log(of, "store", {first}, {after}, checkpointed);
  REQUIRE(log.ok());
  return *std::move(log);
}

// A segment's file: the frames from the beginning, over what was there.
std::string file_with(const std::vector<std::string>& frames, std::string below) {
  std::string bytes;
  for (const std::string& frame : frames) bytes += frame;
  if (below.size() < bytes.size()) below.resize(bytes.size());
  return below.replace(0, bytes.size(), bytes);
}

// What an earlier use of a file has left: frames of segment 3 with later commits than it ever had,
// which makes it worse.
std::string stale(std::size_t bytes) {
  std::string all;
  for (std::uint64_t commit = 50; all.size() < bytes; ++commit) {
    all += frame_of(3, commit * 10, 700);
  }
  return all.substr(0, bytes);
}

// Three segments of three frames each, whose commits are 101 to 109. Segment 5 + i is in file 1 +
// i.
struct SmallLog {
  Files files;
  std::vector<std::string> frames;  // in order
  explicit SmallLog(bool over_stale) {
    for (int segment = 0; segment < 3; ++segment) {
      std::vector<std::string> of_file;
      for (int i = 0; i < 3; ++i) {
        frames.push_back(frame_of(5 + segment, 101 + frames.size(), 10 + 90 * i));
        of_file.push_back(frames.back());
      }
      files[file_name(1 + segment)] =
          file_with(of_file, over_stale ? stale(3'000) : std::string(3'000, '\0'));
    }
  }
  [[nodiscard]] std::size_t offset_of(std::size_t frame) const {
    std::size_t offset = 0;
    for (std::size_t i = frame / 3 * 3; i < frame; ++i) offset += frames[i].size();
    return offset;
  }
  std::string& file_of(std::size_t frame) {
    return files[file_name(1 + static_cast<int>(frame / 3))];
  }
};

void must_be_damaged(const RecoveredLog& log, const std::string& file, std::uint64_t missing) {
  REQUIRE(log.damage.has_value());
  INFO(log.damage->file << ": " << log.damage->what);
  // The file that is damaged is named: as the damaged one or, if its first frame is gone, as the
  // one that goes on too late.
  REQUIRE((log.damage->file == file || log.damage->what.find(file) != std::string::npos));
  REQUIRE_THAT(log.damage->what,
               ContainsSubstring("commit " + std::to_string(missing) + " is missing, though "));
  REQUIRE_THAT(log.damage->what, ContainsSubstring(" goes on with commit "));
  REQUIRE(log.last.value == missing - 1);
}

TEST_CASE("a log that is whole is read to its end, and the next segment is a new one") {
  SmallLog small(GENERATE(false, true));
  const RecoveredLog log = recover(small.files);

  REQUIRE_FALSE(log.damage.has_value());
  REQUIRE(log.last.value == 109);
  REQUIRE(log.next.value == 8);
  REQUIRE(log.newest == file_name(3));
  REQUIRE(log.files.size() == 3);
  REQUIRE(log.segments.size() == 3);
  REQUIRE(log.segments[1]->number().value == 6);
  REQUIRE(log.segments[1]->find("H105")->sequence.value == 105);
}

TEST_CASE("a store without a log, and one whose log is in the database, has nothing to read") {
  SmallLog small(true);
  for (const RecoveredLog& log : {recover({}), recover(small.files, 8, 109)}) {
    REQUIRE_FALSE(log.damage.has_value());
    REQUIRE(log.segments.empty());
    REQUIRE(log.newest.empty());
  }
  REQUIRE(recover(small.files, 8, 109).next.value == 8);
  REQUIRE(recover(small.files, 8, 109).last.value == 109);
}

// The write of the last unit was never acknowledged. Each of its pages is lost or not.
TEST_CASE("whichever pages of the last unit are lost, the log opens with all before it") {
  const bool over_stale = GENERATE(false, true);
  const bool first_of_segment = GENERATE(false, true);
  const std::size_t pages = 7;
  const std::string below = over_stale ? stale(pages * kPage) : std::string(pages * kPage, '\0');
  std::vector<std::string> before;
  std::uint64_t commit = 101;
  if (!first_of_segment) {
    before.push_back(frame_of(6, ++commit, 900));
    before.push_back(frame_of(6, ++commit, 2'000));
  }
  const std::string acknowledged = file_with(before, below);
  Unit unit(commit + 1);
  for (char row = 'a'; row < 'z'; ++row) unit.insert(std::string(1, row), std::string(900, row));
  std::vector<std::string> with_last = before;
  with_last.push_back(unit.frame(6));
  const std::string written = file_with(with_last, below);
  REQUIRE(written.size() == pages * kPage);

  int whole = 0;
  for (unsigned lost = 0; lost < 1U << pages; ++lost) {
    INFO("lost pages: " << lost);
    std::string bytes = written;
    for (std::size_t page = 0; page < pages; ++page) {
      if ((lost >> page & 1) == 0) continue;
      bytes.replace(page * kPage, kPage, acknowledged, page * kPage, kPage);
    }
    Files files{{file_name(1), file_with({frame_of(5, 101)}, below)}, {file_name(2), bytes}};

    const RecoveredLog log = recover(files);

    REQUIRE_FALSE(log.damage.has_value());
    REQUIRE(log.last.value == (bytes == written ? commit + 24 + 1 : commit));
    REQUIRE(log.next.value == (first_of_segment && bytes != written ? 6 : 7));
    whole += bytes == written ? 1 : 0;
  }
  REQUIRE(whole >= 1);
}

// After a salvage the numbers of the commits that were given up are used again.
TEST_CASE("a frame of an older segment is not followed, even if its commit is the next one") {
  const std::string bytes = frame_of(5, 101) + frame_of(4, 102) + frame_of(4, 103);
  const RecoveredLog log = recover({{file_name(1), bytes}});
  REQUIRE_FALSE(log.damage.has_value());
  REQUIRE(log.last.value == 101);
  // Nor is one of a later segment, which has a file of its own.
  REQUIRE(recover({{file_name(1), frame_of(5, 101) + frame_of(6, 102)}}).last.value == 101);
}

TEST_CASE("a last unit that makes its file grow may be cut anywhere") {
  const std::string large = frame_of(5, 102, 9'000);
  const std::string whole = file_with({frame_of(5, 101), large}, "");
  for (std::size_t size = whole.size() - large.size(); size < whole.size(); size += 13) {
    for (const std::size_t zeros : {std::size_t{0}, whole.size() - size}) {
      const RecoveredLog log =
          recover({{file_name(1), whole.substr(0, size) + std::string(zeros, '\0')}});
      INFO("cut to " << size << ", then zeros: " << zeros);
      REQUIRE_FALSE(log.damage.has_value());
      REQUIRE(log.last.value == 101);
    }
  }
}

TEST_CASE("a flipped bit in a frame before the last one is damage, with the commits named") {
  const bool over_stale = GENERATE(false, true);
  const SmallLog whole(over_stale);
  for (std::size_t frame = 0; frame < whole.frames.size(); ++frame) {
    const std::size_t bits = whole.frames[frame].size() * 8;
    for (std::size_t bit = 0; bit < bits; bit += bit < 300 ? 1 : 61) {
      SmallLog damaged = whole;
      char& byte = damaged.file_of(frame)[whole.offset_of(frame) + bit / 8];
      byte = static_cast<char>(byte ^ (1 << (bit % 8)));

      const RecoveredLog log = recover(damaged.files);

      INFO("frame " << frame << ", bit " << bit);
      if (frame == 8) {  // nothing tells it from a write that was cut short, but PV2-DURABLE
        REQUIRE_FALSE(log.damage.has_value());
        REQUIRE(log.last.value == 108);
      } else {
        must_be_damaged(log, file_name(1 + static_cast<int>(frame / 3)), 101 + frame);
        REQUIRE(log.next.value == 8);
      }
    }
  }
}

TEST_CASE("frames that are zeros, or what was there before, are damage unless nothing follows") {
  const bool to_stale = GENERATE(false, true);
  const SmallLog whole(true);
  for (std::size_t first = 0; first < 9; ++first) {
    for (std::size_t last = first; last < 9; ++last) {
      SmallLog damaged = whole;
      for (std::size_t frame = first; frame <= last; ++frame) {
        const std::size_t at = whole.offset_of(frame);
        const std::size_t size = whole.frames[frame].size();
        damaged.file_of(frame).replace(
            at, size, to_stale ? stale(3'000).substr(at, size) : std::string(size, '\0'));
      }
      INFO("frames " << first << " to " << last);
      const RecoveredLog log = recover(damaged.files);
      REQUIRE(log.last.value == 100 + first);
      REQUIRE(log.damage.has_value() == (last != 8));
    }
  }
}

TEST_CASE("a file of the log that is missing is noticed by those behind it") {
  for (int gone = 1; gone <= 3; ++gone) {
    SmallLog small(true);
    small.files.erase(file_name(gone));
    const RecoveredLog log = recover(small.files);
    INFO("without " << file_name(gone));
    REQUIRE(log.last.value == 100 + 3 * (static_cast<std::uint64_t>(gone) - 1));
    if (gone == 3) {  // only PV2-DURABLE knows
      REQUIRE_FALSE(log.damage.has_value());
      continue;
    }
    must_be_damaged(log, file_name(gone == 1 ? 2 : gone - 1), log.last.value + 1);
    REQUIRE(log.next.value == 8);
  }
}

TEST_CASE("a file that was copied over another, or beside it, is refused with both names") {
  for (int from = 1; from <= 3; ++from) {
    for (int to = 1; to <= 4; ++to) {
      if (from == to) continue;
      SmallLog small(false);
      small.files[file_name(to)] = small.files[file_name(from)];
      const RecoveredLog log = recover(small.files);
      INFO(file_name(from) << " copied to " << file_name(to));
      REQUIRE(log.damage.has_value());
      REQUIRE(log.damage->file == file_name(std::max(from, to)));
      REQUIRE(log.damage->what == "it has the same segment as " + file_name(std::min(from, to)));
    }
  }
}

TEST_CASE("the names of the files mean nothing, as each segment carries its number") {
  SmallLog small(true);
  std::swap(small.files[file_name(1)], small.files[file_name(3)]);
  small.files["PV2-STEPS-77"] = small.files[file_name(2)];
  small.files.erase(file_name(2));
  const RecoveredLog log = recover(small.files);
  REQUIRE_FALSE(log.damage.has_value());
  REQUIRE(log.last.value == 109);
  REQUIRE(log.newest == file_name(1));
}

TEST_CASE("a log that the database knows nothing of is refused") {
  const std::uint64_t far = 5 + kSegmentsApart;
  const RecoveredLog log = recover({{file_name(1), frame_of(far, 1) + frame_of(far, 2)}}, 5, 0);
  REQUIRE(log.damage.has_value());
  REQUIRE(log.damage->file == file_name(1));
  REQUIRE_THAT(log.damage->what, ContainsSubstring("and the database goes on with 5"));
}

// A client that knows the format may send any bytes, and they are values in frames.
TEST_CASE("a value that looks like a frame is no sign of damage, in the log and in old frames") {
  const std::string forged =
      sealed_frame(1, std::uint64_t{1} << 40, 1'000'000, std::string(4, '\0'));
  const auto frame_with = [&](std::uint64_t segment, std::uint64_t commit) {
    Unit unit(commit);
    unit.insert("a", forged + forged);
    return unit.frame(segment);
  };
  const RecoveredLog log =
      recover({{file_name(1), file_with({frame_with(5, 101), frame_of(5, 102)},
                                        frame_of(3, 11) + frame_with(3, 12) + frame_with(3, 13))},
               {file_name(2), frame_with(4, 80) + frame_with(4, 81)}});
  REQUIRE_FALSE(log.damage.has_value());
  REQUIRE(log.last.value == 102);
  REQUIRE(log.next.value == 6);
}

TEST_CASE("a value that looks like a frame is no sign of damage in a unit that was cut short") {
  const std::string forged =
      sealed_frame(1, std::uint64_t{1} << 40, 1'000'000, std::string(4, '\0'));
  Unit unit(102);
  unit.insert("a", forged + std::string(100, 'v'));
  const std::string last = unit.frame(5);
  const RecoveredLog log =
      recover({{file_name(1), frame_of(5, 101) + last.substr(0, last.size() - 50)}});
  REQUIRE_FALSE(log.damage.has_value());
}

TEST_CASE("a frame with a correct checksum that no store writes ends the log as damage") {
  const std::string row = RowBatch().encoded().empty() ? std::string("\1\0\0\0x", 5) : "";
  const std::vector<std::string> wrong = {
      sealed_frame(1, 5, 102, row),                                 // its batch is no batch
      sealed_frame(2, 5, 102, std::string("\0\0\0\0", 4)),          // one batch is missing
      sealed_frame(1, 5, 102, std::string("\0\0\0\0\0\0\0\0", 8)),  // one is too many
      sealed_frame(1, 5, 102, std::string("\xff\xff\xff\xff", 4)),  // longer than the payload
  };
  for (const std::string& frame : wrong) {
    const RecoveredLog log = recover({{file_name(1), frame_of(5, 101) + frame}});
    REQUIRE(log.damage.has_value());
    REQUIRE(log.damage->file == file_name(1));
    REQUIRE_THAT(log.damage->what, ContainsSubstring("is not what a store writes"));
    REQUIRE(log.segments.empty());
  }
  // One without a batch continues nothing.
  REQUIRE(recover({{file_name(1), frame_of(5, 101) + sealed_frame(0, 5, 102, "")}}).last.value ==
          101);
}

TEST_CASE("a salvage reads the segment that is in the database, if it is whole, and no other") {
  const SmallLog whole(true);
  const auto with = [](const Files& files, std::uint64_t after = 103) {
    return recover(files, 6, after, Checkpointed::kReadIfWhole);
  };
  const RecoveredLog log = with(whole.files);
  REQUIRE(log.with_checkpointed);
  REQUIRE_FALSE(log.damage.has_value());
  REQUIRE(log.segments.size() == 3);
  REQUIRE(log.segments[0]->number().value == 5);
  REQUIRE_FALSE(log.segments[0]->find("H101")->born_here);  // the database has it
  REQUIRE(log.segments[1]->find("H104")->born_here);
  REQUIRE(log.last.value == 109);
  REQUIRE_FALSE(recover(whole.files, 6, 103).with_checkpointed);

  for (std::size_t frame = 0; frame < 3; ++frame) {
    SmallLog damaged = whole;
    damaged.file_of(frame)[whole.offset_of(frame) + 40] ^= 1;
    const RecoveredLog without = with(damaged.files);
    INFO("frame " << frame);
    REQUIRE_FALSE(without.with_checkpointed);
    REQUIRE_FALSE(without.damage.has_value());
    REQUIRE(without.segments.size() == 2);
    REQUIRE(without.last.value == 109);
  }
  SmallLog damaged = whole;
  damaged.file_of(3)[40] ^= 1;  // the first frame behind it
  const RecoveredLog alone = with(damaged.files);
  REQUIRE(alone.with_checkpointed);
  REQUIRE(alone.segments.size() == 1);
  REQUIRE(alone.last.value == 103);
  must_be_damaged(alone, file_name(1), 104);
}

TEST_CASE("a file that cannot be read is a failure of the file system, not the end of the log") {
  SmallLog small(false);
  CrashEnv env;
  for (const auto& [name, bytes] : small.files) env.set_contents("store/" + name, bytes);
  env.crash();
  const LevelDbFiles of(env, env.directory_sync());
  REQUIRE(recover_log(of, "store", {5}, {100}).status().code() == StatusCode::kIoError);
}

TEST_CASE(
    "nobody can foresee the numbers of the segments, and so write a row that looks like one") {
  std::string forged;
  for (std::uint64_t segment = 1; segment < 50; ++segment) {
    forged += sealed_frame(1, segment, 1'000'000, std::string(4, '\0'));
  }
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* const key : {"a", "b"}) {
      REQUIRE(writer.commit([&](RowBatch& batch) { batch.put(Space::kHost, key, forged); }).ok());
    }
    writer.store().close();
  }
  const std::string file = step_files(env).back();
  const std::string whole = env.contents(file);
  REQUIRE(read_frame(whole, 0)->segment.value > kSegmentsApart);
  env.set_contents(file, whole.substr(0, frame_ends(whole).back() - 1));
  env.set_contents("store/PV2-DURABLE", env.contents("store/PV2-DURABLE").substr(0, 12));

  Writer writer(env);
  const Status opened = writer.open();

  INFO(opened.to_string());
  REQUIRE(opened.ok());
  REQUIRE(load_rows(writer.store()).size() == 1);
  writer.store().close();
}

// The whole store, whose mark knows of the last frame too.
TEST_CASE("any flipped bit in a frame of several segments is refused, and none behind them is") {
  CrashEnv env;
  {
    Writer writer(on_crash_env(env, 200, 4));
    REQUIRE(writer.open().ok());
    for (char key = 'a'; key < 'n'; ++key) REQUIRE(writer.write(std::string(1, key)).ok());
    writer.store().close();
  }
  const auto live = step_files(env);
  REQUIRE(live.size() >= 3);
  std::vector<std::string> rows;
  {
    CrashEnv copy;
    copy_files(env, copy);
    Writer writer(copy);
    REQUIRE(writer.open().ok());
    rows = load_rows(writer.store());
    REQUIRE(rows.size() == 13);
    writer.store().close();
  }
  int refused = 0;
  int behind = 0;
  for (const std::string& file : live) {
    const std::string whole = env.contents(file);
    const std::size_t end = frame_ends(whole).back();
    const bool checkpointed = file == live.front();  // it is free, or a segment that is full
    for (std::size_t bit = 0; bit < whole.size() * 8; bit += bit < 8 * end ? 3 : 37) {
      CrashEnv copy;
      copy_files(env, copy);
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      copy.set_contents(file, damaged);
      const std::size_t operations = copy.operations();
      Writer writer(copy);
      const Status opened = writer.open();
      INFO(file << ", bit " << bit << " of " << 8 * end << ": " << opened.to_string());
      if (bit < 8 * end && !(checkpointed && opened.ok())) {
        ++refused;
        REQUIRE(opened.code() == StatusCode::kCorruption);
        REQUIRE_THAT(std::string(opened.message()), ContainsSubstring("damaged: "));
      } else {
        ++behind;
        REQUIRE(opened.ok());
        REQUIRE(load_rows(writer.store()) == rows);
      }
      writer.store().close();
      REQUIRE(copy.operations() == operations);
      REQUIRE(copy.contents(file) == damaged);
    }
  }
  REQUIRE(refused > 100);
  REQUIRE(behind > 0);
}

}  // namespace
}  // namespace pv2::testing::log_recovery_test

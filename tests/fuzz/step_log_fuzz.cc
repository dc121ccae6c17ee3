// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of the step log with any bytes as its files. The input is a list of pieces: raw
// bytes, frames whose checksums are right around any header and payload, well-formed frames, and
// damage of what is there. The reader ends with a log or with a reason, a log has only frames whose
// checksums are right and whose commits have no gap, and a store that is given the same files opens
// or is refused, and can be read.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "log/log_recovery.h"
#include "log/overlay.h"
#include "log/unit_frame.h"
#include "pv2/base/assert.h"
#include "pv2/store/leveldb_procedure_store.h"
#include "store/log/log_fixture.h"
#include "store/store_fixture.h"

namespace {

using namespace pv2;

// Takes numbers off the input; zeros when it has ended.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}
  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const char first = rest_.front();
    rest_.remove_prefix(1);
    return static_cast<std::uint8_t>(first);
  }
  std::string_view bytes(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

std::string well_formed(Input& input, std::uint64_t segment, std::uint64_t first) {
  testing::Unit unit(first);
  unit.add([&](RowBatch& batch) {
    for (int rows = input.byte() % 4; rows > 0; --rows) {
      const auto operation = static_cast<RowOperation>(1 + input.byte() % 4);
      const std::string key(1, static_cast<char>('a' + input.byte() % 4));
      const bool deletes = operation == RowOperation::kDelete;
      batch.add(operation, Space::kHost, key, deletes ? "" : input.bytes(input.byte() % 8));
    }
  });
  return unit.frame(segment);
}

using Files = std::map<std::string, std::string>;

Files files_of(Input& input) {
  Files files;
  std::uint64_t commit = 1;
  std::uint64_t segment = 1;
  while (!input.empty()) {
    std::string& file = files["PV2-STEPS-" + std::to_string(input.byte() % 4)];
    const std::uint8_t kind = input.byte();
    switch (kind % 8) {
      case 0:
        file += input.bytes(input.byte());
        break;
      case 1:
        file += testing::sealed_frame(input.byte() % 4, input.byte() % 8, input.byte(),
                                      input.bytes(input.byte() % 64));
        break;
      case 2:
        file += testing::sealed_frame(1, UINT64_MAX - input.byte(), UINT64_MAX - input.byte(),
                                      "\0\0\0\0");
        break;
      case 3:
        segment += 1;
        file = well_formed(input, segment, commit++) +
               file.substr(std::min<std::size_t>(file.size(), input.byte()));
        break;
      case 4:
        if (!file.empty()) {
          char& byte = file[(input.byte() * 256U + input.byte()) % file.size()];
          byte = static_cast<char>(byte ^ (1 << (kind >> 5)));
        }
        break;
      case 5:
        file.resize(std::min<std::size_t>(file.size(), input.byte() * 4U));
        break;
      default:
        file += well_formed(input, segment, commit++);
    }
  }
  return files;
}

// Whether the whole frame of `segment` that has commit `first` lies in one of the files.
std::size_t whole_frames(const Files& files, SegmentNumber segment, std::string_view bytes) {
  for (const auto& [name, file] : files) {
    if (file.starts_with(bytes)) {
      std::size_t frames = 0;
      for (std::size_t at = 0; at != bytes.size(); ++frames) {
        const auto frame = read_frame(file, at);
        PV2_ASSERT(frame && frame->segment == segment, "a log has only frames that are whole");
        at += frame->bytes();
      }
      return frames;
    }
  }
  PV2_ASSERT(false, "a segment has the bytes of its file");
  return 0;
}

void check(const RecoveredLog& log, const Files& files) {
  CommitSequence last;
  SegmentNumber number;
  for (const auto& segment : log.segments) {
    PV2_ASSERT(number < segment->number() && segment->number() < log.next, "segments go on");
    number = segment->number();
    const std::string_view bytes(segment->data(), segment->capacity());
    PV2_ASSERT(whole_frames(files, number, bytes) > 0, "a segment has a frame");
    for (std::size_t at = 0; at != bytes.size();) {
      const auto frame = read_frame(bytes, at);
      PV2_ASSERT(frame->first.value == last.value + 1, "commits have no gap");
      last = frame->last();
      at += frame->bytes();
    }
    PV2_ASSERT(segment->last() == last, "a segment knows its last commit");
  }
  PV2_ASSERT(log.last == last, "a log knows its last commit");
  PV2_ASSERT(log.files.size() == files.size(), "no file is forgotten");
  PV2_ASSERT(!log.damage || (!log.damage->what.empty() && files.contains(log.damage->file)),
             "damage has a file and a reason");
}

class NoSink final : public CommitSink {
  void on_committed(CommitList) noexcept override {}
};

// A store without rows and without a log.
const testing::CrashEnv& fresh_store() {
  static const auto env = [] {
    auto made = std::make_unique<testing::CrashEnv>();
    NoSink sink;
    LevelDbProcedureStore store("store", testing::on_crash_env(*made));
    PV2_ASSERT(store.recover_lease(sink).ok(), "a store can be made");
    store.close();
    return made;
  }();
  return *env;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({reinterpret_cast<const char*>(data), size});
  const bool with_store = input.byte() % 4 == 0;  // it costs 50 times as much
  const Files files = files_of(input);

  testing::CrashEnv env;
  env.set_contents("store/PV2-STORE", "");
  if (with_store) {
    for (const std::string& file : fresh_store().files()) {
      env.set_contents(file, fresh_store().contents(file));
    }
  }
  for (const auto& [name, bytes] : files) env.set_contents("store/" + name, bytes);
  const LevelDbFiles of(env, env.directory_sync());
  const auto log = recover_log(of, "store", {1}, {0});
  PV2_ASSERT(log.ok(), "the files can be read");
  check(*log, files);

  // Moving the rows into a database works with whatever was read.
  Overlay overlay;
  for (const auto& segment : log->segments) overlay.add(segment);
  static_cast<void>(overlay.collect("H", [] {}));
  while (!overlay.empty()) overlay.end_checkpoint(overlay.begin_checkpoint());

  if (!with_store) return 0;
  NoSink sink;
  LevelDbProcedureStore store("store", testing::on_crash_env(env));
  const Status opened = store.recover_lease(sink);
  PV2_ASSERT(opened.ok() == !log->damage.has_value(), "a damaged log is refused, and no other");
  PV2_ASSERT(opened.ok() || !opened.message().empty(), "a refusal has a reason");
  if (opened.ok()) {
    const Status read = store.scan(Space::kHost, "", [](const StoredRow&) { return Status(); });
    PV2_ASSERT(read.ok(), "a store that opens can be read");
    testing::Request request;
    request.batch.put(Space::kHost, "a", "new");
    store.commit(request);
    store.pump();
    PV2_ASSERT(request.status.ok(), "and takes a commit");
  }
  store.close();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
//
// Opens an executor on a store whose rows were changed in ways that no crash and no checksum
// explains: bytes changed inside proper frames, rows deleted, swapped, copied and invented. The
// executor must refuse with a reason and leave every row as it was, or run. If it runs, it still
// knows every procedure whose rows were left alone, whatever happened to the others.

#include <pv2/engine/async_executor.h>
#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/store/memory_procedure_store.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/base/assert.h"
#include "pv2/base/frame.h"
#include "records/header_codec.h"
#include "records/row_keys.h"
#include "support/all_rows.h"
#include "support/scripted_job.h"

namespace {

using namespace pv2;
using namespace pv2::testing;

using RowKey = std::pair<Space, std::string>;
using Rows = std::map<RowKey, std::string>;

RowKey row_of(std::uint64_t id, RowKind kind) {
  const auto key = procedure_key(ProcedureId{id}, kind);
  return {Space::kProcedure, std::string(std::string_view(key))};
}
RowKey result_of(std::uint64_t id) {
  const auto key = result_key(ProcedureId{id});
  return {Space::kResult, std::string(std::string_view(key))};
}

// Procedures in every condition that a record can be in.
void fill_scripts(World& world) {
  const auto asks = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    run.note = "asked";
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(std::move(c)); });
    return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
  };
  const auto fails_at_3 = [](JobRun& run) {
    return run.step == 3 ? std::optional(Say::fail("as it was told")) : std::nullopt;
  };
  auto& scripts = world.scripts;
  scripts["witness"] = {.steps = 5};
  scripts["holder"] = {.run = asks, .locks = LockSet().table("ns", "t", LockMode::kExclusive)};
  scripts["waiter"] = {.locks = LockSet().table("ns", "t", LockMode::kShared)};
  scripts["parent"] = {.children = {"leaf", "retrying", "asking"},
                       .run = [](JobRun& run) -> std::optional<Outcome> {
                         if (run.step == 2) run.ctx.spawn(FinalJob(run.world, "leaf"));
                         return std::nullopt;
                       }};
  scripts["leaf"] = {.steps = 1};
  scripts["asking"] = {.run = asks};
  scripts["retrying"] = {.run = [](JobRun& run) {
    return run.step == 2 && run.ctx.attempt() < 3 ? std::optional(Say::retry("not yet"))
                                                  : std::nullopt;
  }};
  scripts["timed"] = {.run = [](JobRun& run) {
    return run.step == 2 && !run.ctx.timed_out()
               ? std::optional(Say::wait_for(std::chrono::minutes(5)))
               : std::nullopt;
  }};
  scripts["undoing"] = {.run = fails_at_3, .undo = [](JobRun& run) {
                          return run.step == 1 && run.ctx.attempt() < 4
                                     ? std::optional(Say::retry("undo later"))
                                     : std::nullopt;
                        }};
  scripts["parked"] = {.run = fails_at_3, .undo = [](JobRun&) {
                         return std::optional(Say::fail("cannot be undone"));
                       }};
  scripts["beyond"] = {.steps = 5, .run = [](JobRun& run) {
                         return run.step == 4 ? std::optional(Say::fail("too late")) : std::nullopt;
                       }};
}

std::unique_ptr<ProcedureExecutor> must_open(Result<std::unique_ptr<ProcedureExecutor>> opened) {
  PV2_ASSERT(opened.ok(), "a sound store opens");
  return *std::move(opened);
}

ExecutorOptions options_for(World& world, std::shared_ptr<MemoryDisk> disk,
                            std::shared_ptr<ManualClock> clock) {
  ExecutorOptions options;
  options.store = memory(std::move(disk));
  add_job_types(options.registry, world);
  options.workers = 0;
  options.clock = std::move(clock);
  options.log = {};
  return options;
}

// What a first life leaves: the rows, and the roots that they belong to.
struct Template {
  Rows rows;
  std::vector<RowKey> keys;
  std::set<std::uint64_t> roots;

  Template() {
    World world;
    fill_scripts(world);
    const auto disk = std::make_shared<MemoryDisk>();
    auto executor = must_open(
        ProcedureExecutor::open(options_for(world, disk, std::make_shared<ManualClock>())));
    (void)executor->operate().set_type_limit(Job::kType, 50);
    std::uint64_t nonce = 0;
    const auto submit = [&](auto job) {
      (void)executor->submit(std::move(job), {.nonce = {1, ++nonce}, .owner = "fuzz"});
    };
    submit(Job(world, "leaf"));  // ends
    for (const char* name : {"holder", "waiter", "parent", "timed", "undoing", "parked"}) {
      submit(Job(world, name));
    }
    submit(CommittingJob(world, "beyond"));
    executor->run_until_idle();
    submit(Job(world, "witness"));
    executor->run_until_idle(1);
    submit(Job(world, "witness"));
    // The abort is durable, but its tree is not undone yet, so its message is still there.
    executor->async().abort(ProcedureId{2}, {.reason = "to have one", .who = "fuzz"},
                            [](const auto&) {});
    executor->run_until_idle(1);

    class NoSink final : public CommitSink {
      void on_committed(CommitList) noexcept override {}
    } sink;
    MemoryProcedureStore reader(disk->clone());
    (void)reader.recover_lease(sink);
    (void)testing::visit_all(reader, [this](const StoredRow& row) {
      rows[{row.space, std::string(row.key)}] = row.value;
      return Status();
    });
    for (const auto& [key, value] : rows) keys.push_back(key);
    for (std::uint64_t id = 1; id < 100; ++id) {
      if (rows.contains(result_of(id))) roots.insert(id);
      const auto at = rows.find(row_of(id, RowKind::kHeader));
      if (at == rows.end()) continue;
      Execution header;
      HeaderFacts facts;
      (void)decode_header(at->second, header, facts);
      if (facts.root.value == id) roots.insert(id);
    }
    PV2_ASSERT(roots.size() == 10, "the template has every kind of root");
  }
};

// Reads the input as instructions.
class Script {
 public:
  Script(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  [[nodiscard]] bool empty() const { return at_ == end_; }
  std::uint8_t byte() { return empty() ? 0 : *at_++; }
  std::string bytes() {
    const std::size_t wanted = byte();
    const std::size_t size = std::min(wanted, static_cast<std::size_t>(end_ - at_));
    std::string taken(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    return taken;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

// Changes the content of one of the frames of a row and frames it again.
template <class Change>
void change_frame(std::string& row, std::size_t index, const Change& change) {
  std::vector<std::string> frames;
  std::string_view rest = row;
  while (const auto frame = read_frame(rest)) frames.emplace_back(*frame);
  if (frames.empty()) return;
  change(frames[index % frames.size()]);
  std::string changed;
  for (const std::string& frame : frames) append_frame(changed, frame);
  row = changed + std::string(rest);
}

void mutate(Rows& rows, const Template& sound, Script& script) {
  const std::uint8_t verb = script.byte() % 10;
  const RowKey& key = sound.keys[script.byte() % sound.keys.size()];
  const auto at = rows.find(key);
  if (at == rows.end()) return;
  std::string& row = at->second;
  const std::size_t place = script.byte();
  const std::uint8_t value = script.byte();
  switch (verb) {
    case 0:
    case 1:  // a byte of the engine's part, or of the user's
      return change_frame(row, verb, [&](std::string& frame) {
        if (!frame.empty()) frame[place % frame.size()] = static_cast<char>(value);
      });
    case 2:
      return change_frame(row, 0, [&](std::string& frame) {
        frame.insert(place % (frame.size() + 1), 1, static_cast<char>(value));
      });
    case 3:  // fields added: the last of several counts
      return change_frame(row, value % 2, [&](std::string& frame) { frame += script.bytes(); });
    case 4:
      return change_frame(row, value % 2, [&](std::string& frame) { frame = script.bytes(); });
    case 5:
      if (!row.empty()) row[place % row.size()] = static_cast<char>(value);
      return;
    case 6:
      row.resize(place % (row.size() + 1));
      return;
    case 7:
      rows.erase(at);
      return;
    case 8:
      row = sound.rows.at(sound.keys[value % sound.keys.size()]);
      return;
    case 9: {
      constexpr Space kSpaces[] = {Space::kEngine, Space::kNonce, Space::kProcedure, Space::kResult,
                                   Space::kHost};
      rows[{kSpaces[value % std::size(kSpaces)], script.bytes()}] = script.bytes();
      return;
    }
    default:
      return;
  }
}

bool untouched(const Rows& rows, const Template& sound, std::uint64_t id) {
  for (const RowKey& key :
       {row_of(id, RowKind::kHeader), row_of(id, RowKind::kState), result_of(id)}) {
    const auto before = sound.rows.find(key);
    const auto now = rows.find(key);
    if ((before == sound.rows.end()) != (now == rows.end())) return false;
    if (now != rows.end() && now->second != before->second) return false;
  }
  return true;
}

void run_all(ProcedureExecutor& executor, World& world, ManualClock& clock) {
  for (int round = 0; round < 3; ++round) {
    executor.run_until_idle(100);
    for (int i = 0; i < 10 && world.answer_one("answer"); ++i) executor.run_until_idle(20);
    clock.advance(std::chrono::minutes(20));
  }
  executor.run_until_idle(100);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Template sound;
  Rows rows = sound.rows;
  Script script(data, size);
  while (!script.empty()) mutate(rows, sound, script);

  World world;
  fill_scripts(world);
  const auto clock = std::make_shared<ManualClock>();
  const auto disk = std::make_shared<MemoryDisk>();
  for (const auto& [key, value] : rows) disk->put(key.first, key.second, value);
  auto opened = ProcedureExecutor::open(options_for(world, disk, clock));
  if (!opened.ok()) {
    PV2_ASSERT(!opened.status().message().empty(), "a refusal has a reason");
    PV2_ASSERT(disk->rows() == rows.size(), "a refusal adds and deletes nothing");
    for (const auto& [key, value] : rows) {
      PV2_ASSERT(disk->get(key.first, key.second) == value, "a refusal changes nothing");
    }
    return 0;
  }
  ProcedureExecutor& executor = **opened;
  run_all(executor, world, *clock);

  for (const std::uint64_t id : sound.roots) {
    if (!untouched(rows, sound, id)) continue;
    bool known = executor.inspect().describe(ProcedureId{id}).ok();
    if (!known) {
      executor.async().wait(ProcedureId{id},
                            [&](const Result<ProcedureResult>& result) { known = result.ok(); });
      executor.run_until_idle(1);
    }
    PV2_ASSERT(known || !executor.health().ok(), "a procedure whose rows were left alone is there");
  }
  if (executor.health().ok()) {
    const auto fresh = executor.submit(Job(world, "leaf"));
    if (fresh.ok()) {
      const RowKey header = row_of(fresh->id.value, RowKind::kHeader);
      PV2_ASSERT(!rows.contains(header), "an id is issued once");
    }
  }
  return 0;
}

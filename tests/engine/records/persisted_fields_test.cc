// SPDX-License-Identifier: Apache-2.0
//
// crash_everywhere compares every persisted field over every restart. Here the store spoils one
// field of the rows that it returns, one field per play, and the campaign has to name that field.
// Then the store leaves out a procedure.

#include "records/header_codec.h"
#include "records/inbox_codec.h"
#include "records/row_keys.h"
#include "records/row_parts.h"
#include "records/state_codec.h"
#include "support/job_story.h"
#include "support/wrapped_store.h"

namespace pv2::testing::persisted_fields_test {
namespace {

using namespace std::chrono_literals;

/// A record that is taken to pieces, changed, and put together again with a right checksum.
struct Opened {
  Execution root;  ///< What is encoded belongs to its tree.
  Execution execution;
  HeaderFacts header;
  Transition state;  ///< What the state row says.
  bool changed = false;
};
using ChangeRecord = std::function<void(Opened&)>;
using ChangeMessage = std::function<void(InboxMessage&)>;

std::string header_row(Opened& opened) {
  Execution parent;
  parent.id = opened.header.parent;
  opened.root.id = opened.header.root;
  Execution& execution = opened.execution;
  if (parent.id) execution.set_parent(&parent);
  execution.edit_place().root = &opened.root;
  execution.names.edit().type = opened.header.type_name;
  std::string bytes;
  encode_header(execution, bytes);
  execution.set_parent(nullptr);
  return bytes;
}

void open_state(const StoredRow& row, Opened& opened) {
  Execution& execution = opened.execution;
  execution.edit_place().root = &opened.root;
  PartStatus user = PartStatus::kIntact;
  Transition& state = opened.state;
  REQUIRE(decode_state(row.value, row.sequence, execution, user).ok());
  const Record& record = execution.record;
  static_cast<Progress&>(state) = record;
  state.set_result(std::string(record.result()));
  if (record.failure() != nullptr) state.set_error(record.failure()->error);
  if (record.failure() != nullptr) state.set_undo_error(record.failure()->undo);
}

/// A store that changes or leaves out rows in a scan.
class SpoiledStore final : public WrappedStore {
 public:
  struct Spoil {
    ChangeRecord header{};
    ChangeRecord state{};
    ChangeMessage message{};
    bool drops_second = false;  ///< Leaves out the rows of procedure 2.
  };
  SpoiledStore(std::unique_ptr<ProcedureStore> inner, const Spoil& spoil)
      : WrappedStore(std::move(inner)), spoil_(spoil) {}

  Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
    return WrappedStore::scan(space, prefix, [&](const StoredRow& row) {
      const auto key = row.space == Space::kProcedure ? parse_procedure_key(row.key) : std::nullopt;
      if (!key) return visit(row);
      if (spoil_.drops_second && key->id == ProcedureId{2}) return Status();
      const std::string value = spoiled(row, key->kind);
      StoredRow copy = row;
      copy.value = value;
      return visit(copy);
    });
  }

 private:
  [[nodiscard]] std::string spoiled(const StoredRow& row, RowKind kind) const {
    std::string bytes(row.value);
    Opened opened;
    if (kind == RowKind::kHeader && spoil_.header) {
      REQUIRE(decode_header(row.value, opened.execution, opened.header).ok());
      spoil_.header(opened);
      if (opened.changed) bytes = header_row(opened);
    } else if (kind == RowKind::kState && spoil_.state) {
      open_state(row, opened);
      spoil_.state(opened);
      if (!opened.changed) return bytes;
      bytes.clear();
      encode_state(opened.execution, opened.state, 0, bytes);
    } else if (kind == RowKind::kInbox && spoil_.message) {
      auto message = decode_message(row.value);
      REQUIRE(message.ok());
      spoil_.message(*message);
      bytes.clear();
      encode_message(*message, bytes);
    }
    return bytes;
  }

  const Spoil& spoil_;
};

class SpoiledGround final : public Ground {
 public:
  explicit SpoiledGround(const SpoiledStore::Spoil& spoil) : spoil_(spoil) {}
  [[nodiscard]] std::string name() const override { return "spoiled store"; }
  std::unique_ptr<ProcedureStore> open_store() override {
    return std::make_unique<SpoiledStore>(memory(disk_), spoil_);
  }

 private:
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  const SpoiledStore::Spoil& spoil_;
};

/// Two trees that between them have a value in every field: "a" has a child, is retried, waits for
/// a deadline and a signal, fails and is undone; "b" goes through its point of no return.
JobPlot busy_plot() {
  JobPlot plot;
  plot.scripts["a"] = {.children = {"c"},
                       .run = [](JobRun& run) -> std::optional<Outcome> {
                         if (run.step == 1 && run.ctx.attempt() == 1)
                           return Say::unsure(Status(StatusCode::kUnavailable, "the line was cut"));
                         if (run.step != 3) return std::nullopt;
                         const auto* value =
                             run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
                         const std::string* const said = run.ctx.signal("go");
                         if (said == nullptr || value == nullptr) return Say::wait_for(1h);
                         run.world.journal.note("got " + *said);
                         return Say::fail("no");
                       },
                       .locks = LockSet().table("shop", "orders", LockMode::kExclusive),
                       .priority = Priority::kHigh};
  plot.scripts["c"] = {.steps = 2};
  plot.scripts["b"] = {.steps = 4};
  plot.roots = {{.name = "a", .succeeds = false, .signals = {"now"}},
                {.name = "b", .type = JobRoot::Type::kCommittingJob}};
  return plot;
}

/// The failure that a campaign finds with a store that spoils its rows this way.
std::string found(const SpoiledStore::Spoil& spoil) {
  const JobPlot plot = busy_plot();
  CrashPlan plan;
  plan.grounds.emplace_back([&spoil] { return std::make_unique<SpoiledGround>(spoil); });
  plan.around = [](const std::string& words, const std::function<void()>& play) {
    const bool before_a_commit = words.find("the machine crashed before") != std::string::npos;
    const bool undisturbed = words.ends_with("nothing crashed");
    if (words.starts_with("spoiled store") && (before_a_commit || undisturbed)) play();
  };
  return crash_everywhere([&plot] { return std::make_unique<JobStory>(plot); }, plan).failure;
}

struct SpoiledField {
  std::string field;
  SpoiledStore::Spoil spoil;
};

SpoiledField in_state(std::string field, const std::function<bool(Opened&)>& change) {
  return {std::move(field),
          {.state = [change](Opened& opened) { opened.changed = change(opened); }}};
}
SpoiledField in_header(std::string field, const std::function<bool(Opened&)>& change) {
  return {std::move(field),
          {.header = [change](Opened& opened) { opened.changed = change(opened); }}};
}
SpoiledField in_message(const ChangeMessage& change) { return {"messages", {.message = change}}; }

std::vector<SpoiledField> every_field() {
  using Record = Opened;
  return {
      in_state("attempt", [](Record& r) { return r.state.attempt == 2 && ++r.state.attempt != 0; }),
      in_state("visits", [](Record& r) { return ++r.state.visits != 0; }),
      in_state("step", [](Record& r) { return r.state.step == 2 && ++r.state.step != 0; }),
      in_state("state",
               [](Record& r) {
                 if (r.state.state != ProcedureState::kWaitingTimeout) return false;
                 r.state.state = ProcedureState::kRunnable;
                 return true;
               }),
      in_state("holds its locks",
               [](Record& r) {
                 const bool was = r.state.holds_locks;
                 r.state.holds_locks = false;
                 return was;
               }),
      in_state("past its point of no return",
               [](Record& r) {
                 const bool was = r.state.no_return;
                 r.state.no_return = false;
                 return was;
               }),
      in_state("an attempt may have had its effect",
               [](Record& r) {
                 const bool was = r.state.unsure;
                 r.state.unsure = false;
                 return was;
               }),
      in_state("awaits beside its deadline",
               [](Record& r) {
                 const bool was = r.state.awaits;
                 r.state.awaits = false;
                 return was;
               }),
      in_state("deadline",
               [](Record& r) {
                 if (r.state.deadline) r.state.deadline = *r.state.deadline + 1us;
                 return r.state.deadline.has_value();
               }),
      in_state("patience",
               [](Record& r) {
                 r.state.patience += 1us;
                 return r.state.deadline.has_value();
               }),
      in_state("undo list",
               [](Record& r) {
                 if (r.execution.record.undo.empty()) return false;
                 ++r.execution.record.undo.back().sequence.value;
                 return true;
               }),
      in_state("undo list",
               [](Record& r) {
                 if (r.execution.record.undo.empty()) return false;
                 r.execution.record.undo.pop_back();
                 return true;
               }),
      in_state("history",
               [](Record& r) {
                 r.execution.record.history.add(
                     {1, 1, Outcome::Kind::kAgain, r.execution.record.updated});
                 return true;
               }),
      in_state("error",
               [](Record& r) {
                 if (r.state.error().ok() || r.state.state == ProcedureState::kFailed) return false;
                 r.state.set_error(Status(r.state.error().code(), "another one"));
                 return true;
               }),
      in_state("commit of its failure",
               [](Record& r) {
                 if (r.state.state != ProcedureState::kFailed) return false;
                 auto failure = r.execution.record.take_failure();
                 if (failure) ++failure->sequence.value;
                 const bool changed = failure != nullptr;
                 r.execution.record.set_failure(std::move(failure));
                 return changed;
               }),
      in_state("time of its record",
               [](Record& r) {
                 r.state.updated += 1us;
                 return true;
               }),
      in_state("result",
               [](Record& r) {
                 if (r.state.result() != "c done") return false;
                 r.state.set_result("d");
                 return true;
               }),
      in_state("fields",
               [](Record& r) {
                 r.state.new_image = true;
                 r.state.image = std::string_view("\x12\x01x", 3);  // a note
                 return true;
               }),
      in_header("owner",
                [](Record& r) {
                  r.execution.set_owner("somebody else");
                  return true;
                }),
      in_header("priority",
                [](Record& r) {
                  return std::exchange(r.execution.priority, Priority::kLow) == Priority::kHigh;
                }),
      in_header("lock set",
                [](Record& r) {
                  if (r.execution.locks().empty()) return false;
                  r.execution.edit_locks().peer("p", LockMode::kShared);
                  return true;
                }),
      in_header("lock set",
                [](Record& r) {
                  if (r.execution.locks().empty()) return false;
                  r.execution.edit_locks().scope(LockScope::kStep);
                  return true;
                }),
      in_header("nonce",
                [](Record& r) {
                  if (!r.execution.nonce()) return false;
                  ++r.execution.nonce_use.edit().nonce.value;
                  return true;
                }),
      in_header("fingerprint",
                [](Record& r) {
                  if (!r.execution.nonce()) return false;
                  ++r.execution.nonce_use.edit().fingerprint.low;
                  return true;
                }),
      in_header("time of submission",
                [](Record& r) {
                  r.execution.submitted += 1us;
                  return true;
                }),
      in_header(
          "visit of the parent that spawned it",
          [](Record& r) { return r.header.parent && ++r.execution.edit_place().spawned_at != 0; }),
      in_header("failure is reported",
                [](Record& r) {
                  return r.header.parent &&
                         ((r.execution.on_failure = OnFailure::kReport) != OnFailure::kFailTree);
                }),
      in_header("undone beside its siblings",
                [](Record& r) {
                  return r.header.parent &&
                         ((r.execution.undo_order = UndoOrder::kConcurrent) != UndoOrder::kReverse);
                }),
      in_message([](InboxMessage& message) { message.payload = "never"; }),
      in_message([](InboxMessage& message) { message.name = "stop"; }),
      in_message([](InboxMessage& message) { message.at += 1us; }),
      in_message([](InboxMessage& message) { message.to_undo = !message.to_undo; }),
  };
}

}  // namespace

TEST_CASE("over a restart every persisted field is compared, and the one that differs is named") {
  CHECK(found({}) == "");
  for (const SpoiledField& each : every_field()) {
    const std::string words = found(each.spoil);
    INFO("spoiled: " << each.field << "\nfound: " << words);
    CHECK(words.starts_with("spoiled store"));
    CHECK_THAT(words, ContainsSubstring("a restart finds of procedure "));
    CHECK_THAT(words, ContainsSubstring("\n      " + each.field + ": "));
  }
}

TEST_CASE("a procedure that a restart does not find is named") {
  const std::string words = found({.drops_second = true});
  CHECK_THAT(words, ContainsSubstring("a restart does not find procedure 2 (test."));
}

TEST_CASE("a field that is different after a restart is reported with both values") {
  const std::string words = found(in_state("attempt", [](Opened& opened) {
                                    return opened.state.attempt == 2 && ++opened.state.attempt != 0;
                                  }).spoil);
  CHECK_THAT(words, ContainsSubstring("a restart finds of procedure 1 (test.Job)\n"
                                      "      attempt: 3\n"
                                      "    where it was\n"
                                      "      attempt: 2"));
}

}  // namespace pv2::testing::persisted_fields_test

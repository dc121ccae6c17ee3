// SPDX-License-Identifier: Apache-2.0
//
// Fingerprints: a nonce stands for a type, an owner and arguments, each of which may hold any byte.
// Fingerprints that older programs have recorded still count.

#include <pv2/base/hash128.h>

#include "records/header_codec.h"
#include "records/nonce_record.h"
#include "records/row_keys.h"
#include "support/engine_world.h"
#include "support/older_rows.h"

namespace pv2::testing::fingerprint_test {
namespace {

using namespace std::string_literals;

std::string arguments_of(const std::string& name) {
  return "\x0a"s + static_cast<char>(name.size()) + name;
}

// The fingerprint that an older program has recorded for a job.
Fingerprint joined(const std::string& owner, const std::string& name) {
  const Hash128 hash = hash128("test.Job\0"s + owner + '\0' + arguments_of(name));
  return {hash.first, hash.second, Fingerprint::Form::kJoined};
}

}  // namespace

TEST_CASE("an owner with a zero byte does not pass for another owner with other arguments") {
  // Joined by zero bytes, both are "test.Job", 0, "anna", 0, 0a 04, 0, 0a 01 "a".
  const std::string name = "a";
  const std::string other_name = '\0' + arguments_of(name);
  const std::string owner = "anna\0\x0a"s + static_cast<char>(other_name.size());
  REQUIRE(joined(owner, name) == joined("anna", other_name));
  EngineWorld engine;
  engine.world.scripts[name] = engine.world.scripts[other_name] = {.steps = 1};
  engine.open();
  engine.submit(name, {.nonce = {1, 1}, .owner = owner});
  const bool restart = GENERATE(false, true);
  if (restart) engine.open();

  CHECK(engine.executor()
            .submit(Job(engine.world, name), {.nonce = {1, 1}, .owner = owner})
            ->replayed);
  const auto other =
      engine.executor().submit(Job(engine.world, other_name), {.nonce = {1, 1}, .owner = "anna"});
  CHECK(other.status().code() == StatusCode::kKeyReused);
}

TEST_CASE("a nonce that an older program has recorded still names its submission") {
  const bool live = GENERATE(false, true);
  const std::string owner = GENERATE("anna"s, "an\0na"s);
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}, .owner = owner});
  if (!live) engine.run();
  engine.close();
  if (!live) leave_among_live_ones(*engine.disk, id);
  // Leaves the rows as that program would have. The nonce row counts once the procedure has ended,
  // the header while it is live.
  std::string row;
  encode_nonce_record({id, joined(owner, "a")}, row);
  engine.disk->put(Space::kNonce, nonce_key({1, 1}), row);
  const std::string header =
      *engine.disk->get(Space::kProcedure, procedure_key(id, RowKind::kHeader));
  Execution execution;
  HeaderFacts facts;
  REQUIRE(decode_header(header, execution, facts).ok());
  CHECK(execution.fingerprint().form == Fingerprint::Form::kExact);
  ProcedureType type;
  type.name = std::string(facts.type_name);
  execution.type = &type;
  execution.nonce_use.edit().fingerprint = joined(owner, "a");
  row.clear();
  encode_header(execution, row);
  engine.disk->put(Space::kProcedure, procedure_key(id, RowKind::kHeader), row);
  engine.open();

  const auto again =
      engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}, .owner = owner});
  REQUIRE(again.status().to_string() == "OK");
  CHECK(again->replayed);
  CHECK(again->id == id);
  const auto other =
      engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}, .owner = "bert"});
  CHECK(other.status().code() == StatusCode::kKeyReused);
}

}  // namespace pv2::testing::fingerprint_test

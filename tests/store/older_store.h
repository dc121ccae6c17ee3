// SPDX-License-Identifier: Apache-2.0
//
// A store as a version without a step log has left it.

#pragma once

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <cstdint>
#include <memory>
#include <string>

#include "little_endian.h"
#include "store_fixture.h"

namespace pv2::testing {

/// Makes "store" a store of format 2 with one row of each of `commits` commits. All of them are in
/// LevelDB's log.
inline void write_older_store(CrashEnv& env, int commits) {
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    writer.store().close();
  }
  leveldb::Options options;
  options.env = env.as_env();
  leveldb::DB* opened = nullptr;
  REQUIRE(leveldb::DB::Open(options, "store", &opened).ok());
  const std::unique_ptr<leveldb::DB> db(opened);
  leveldb::WriteOptions durable;
  durable.sync = true;
  for (int commit = 1; commit <= commits; ++commit) {
    std::string sequence;
    append_fixed64(sequence, static_cast<std::uint64_t>(commit));
    leveldb::WriteBatch batch;
    batch.Put("H" + std::to_string(commit), sequence + "value");
    batch.Put("!sequence", sequence);
    REQUIRE(db->Write(durable, &batch).ok());
  }
  env.set_contents("store/PV2-STORE", "pv2 store\nformat 2\ncomplete\n");
}

}  // namespace pv2::testing

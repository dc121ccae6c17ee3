// SPDX-License-Identifier: Apache-2.0
//
// LevelDbGround: a LevelDB store on a file system that loses what was not synced, as a ground for
// crash_everywhere. It is here and not in pv2::testing, because a subclass of leveldb::Env needs a
// LevelDB that was built with the same settings.

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "pv2/store/leveldb_procedure_store.h"
#include "pv2/testing/ground.h"
#include "support/crash_env.h"

namespace pv2::testing {

/// Owned by one thread.
class LevelDbGround final : public Ground {
 public:
  [[nodiscard]] std::string name() const override { return "LevelDB"; }
  std::unique_ptr<ProcedureStore> open_store() override {
    env_.reboot();
    if (cut_before_) env_.crash_before_operation(*cut_before_, CrashEnv::TornTail::kRandom);
    cut_before_.reset();
    return leveldb("store", {.committer = LevelDbOptions::Committer::kPump,
                             .env = env_.as_env(),
                             .segment_files = env_.as_segment_files(),
                             .sync_directory = env_.directory_sync()});
  }
  void crash() override { env_.crash(CrashEnv::TornTail::kRandom); }
  [[nodiscard]] std::size_t operations() const override { return env_.operations(); }
  void crash_before_operation(std::size_t operation) override { cut_before_ = operation; }

 private:
  CrashEnv env_;
  std::optional<std::size_t> cut_before_;
};

}  // namespace pv2::testing

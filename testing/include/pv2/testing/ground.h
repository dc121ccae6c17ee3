// SPDX-License-Identifier: Apache-2.0
//
// Ground: where a store lies, over all the lives of a machine that crashes. A harness opens a store
// on it, ends the life somewhere, and opens the next one on what was durable. MemoryGround is fast;
// with a ground of their own, users put another store through the same test.

#pragma once

#include <pv2/store/memory_procedure_store.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace pv2::testing {

/// Owned by one thread.
class Ground {
 public:
  virtual ~Ground() = default;
  /// A name for people: "memory store".
  [[nodiscard]] virtual std::string name() const = 0;
  /// A life begins on what is durable. The store has no thread of its own: the executor pumps it.
  virtual std::unique_ptr<ProcedureStore> open_store() = 0;
  /// A life that was opened here was interrupted; its store may still be open.
  virtual void crash() {}

  /// How many operations the store has done beneath its commits (in a file system), over all lives;
  /// 0 when these cannot be interrupted.
  [[nodiscard]] virtual std::size_t operations() const { return 0; }
  /// The next life that is opened ends before its n-th operation (from 0).
  virtual void crash_before_operation(std::size_t /*operation*/) {}

  /// The disk, for comparing its content with what the executor lists; nullptr when it cannot be
  /// copied.
  [[nodiscard]] virtual std::shared_ptr<MemoryDisk> disk() const { return nullptr; }
};

using MakeGround = std::function<std::unique_ptr<Ground>()>;

/// A memory store on a disk in memory. Owned by one thread.
class MemoryGround final : public Ground {
 public:
  [[nodiscard]] std::string name() const override { return "memory store"; }
  std::unique_ptr<ProcedureStore> open_store() override { return memory(disk_); }
  [[nodiscard]] std::shared_ptr<MemoryDisk> disk() const override { return disk_; }

 private:
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
};

}  // namespace pv2::testing

// SPDX-License-Identifier: Apache-2.0
//
// RegionMethods: what clients ask of the regions on a server (wire/methods.h).
//
// Invariants:
// - A write is answered when it is durable and the server was not fenced; its nonce is in the same
//   entry of the log. Copies of a write wait for the one that runs, and get its answer.
// - A read is answered only if the server was not fenced after it: so it was not stale.
// - A region is closed only when no call uses it: so no answer comes from a region after it may
// have
//   been opened elsewhere, and a nonce that runs has ended.

#pragma once

#include <pv2/rpc/rpc_server.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/region_nonces.h"
#include "server/region_table.h"
#include "server/region_upkeep.h"
#include "server/server_context.h"
#include "wire/region_messages.h"

namespace pv2::cluster {

/// Used on the loop only.
class RegionMethods {
 public:
  RegionMethods(ServerContext& context, RegionTable& table, RegionUpkeep& upkeep,
                const RegionNonces& nonces)
      : context_(context), table_(table), upkeep_(upkeep), nonces_(nonces) {}

  /// This object outlives the server that has the methods.
  void add_to(RpcMethods& methods);

 private:
  struct Write;
  using WritePointer = std::shared_ptr<Write>;

  void write(IncomingCall call);
  void ask_nonce(const WritePointer& write);
  void take_answer(const WritePointer& write, Result<NonceAnswer> answer);
  void run_write(const WritePointer& write);
  void end_write(const WritePointer& write, const Result<WriteResult>& result, bool was_begun);
  void scan(IncomingCall call);
  void flush(IncomingCall call);
  void compact(IncomingCall call);
  void split_point(IncomingCall call);

  /// Checks what only the region of the catalogue asks for.
  [[nodiscard]] Status check_epoch(const RegionInfo& region, std::uint64_t epoch, bool writes);

  ServerContext& context_;
  RegionTable& table_;
  RegionUpkeep& upkeep_;
  const RegionNonces& nonces_;
};

}  // namespace pv2::cluster

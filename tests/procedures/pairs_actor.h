// SPDX-License-Identifier: Apache-2.0
//
// Actor: one kind of procedure that somebody submits, as the simulation of pairs lets it meet every
// other kind. The list of actors is the list of procedures: a test compares it with what a host
// registers, so a new procedure cannot be forgotten.

#pragma once

#include <pv2/procedures/memory_cluster.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "pv2/testing/keyed_client.h"

namespace pv2::testing {

enum class Actor {
  kCreateTable,
  kDeleteTable,
  kEnableTable,
  kDisableTable,
  kModifyTable,
  kTruncateTable,
  kCreateNamespace,
  kModifyNamespace,
  kDeleteNamespace,
  kAddPeer,
  kRemovePeer,
  kEnablePeer,
  kDisablePeer,
  kUpdatePeerConfig,
  kLock,
  kAssign,
  kUnassign,
  kMove,
  kReopen,
  kSplit,
  kMerge,
  kServerCrash,
  kInitMeta,
};

/// A plain value.
struct ActorKind {
  Actor actor;
  std::string_view type;   ///< Of the procedure.
  std::string_view words;  ///< What the actor does.
};
[[nodiscard]] std::span<const ActorKind> all_actors();
[[nodiscard]] std::string_view words_of(Actor actor);

/// A procedure that nobody submits. It meets others when an actor runs it. A plain value.
struct ChildKind {
  std::string_view type;
  Actor run_by;  ///< An actor that runs it; others may run it too.
};
[[nodiscard]] std::span<const ChildKind> all_children();

using ActorPair = std::array<Actor, 2>;
/// Each actor with each actor, itself too.
[[nodiscard]] const std::vector<ActorPair>& all_pairs();

/// The things that actors act on: namespaces "n" and "m", table "n:t" with family "f", and tables
/// "n:u", "n:v" and "m:u", which only kCreateTable makes; peer "p".
[[nodiscard]] TableName stage_table();

/// Submits one procedure; the same one each time.
using Send = std::function<void(KeyedClient&, ProcedureExecutor&)>;

/// What the actor submits to the cluster as it is now, which `choice` chooses. Nullopt: there is
/// nothing that the actor could act on. Not for kServerCrash, because which servers die is part of
/// a story.
[[nodiscard]] std::optional<Send> choose_act(Actor actor, MemoryCluster& cluster,
                                             const std::vector<ServerName>& servers,
                                             std::uint64_t choice);

}  // namespace pv2::testing

// SPDX-License-Identifier: Apache-2.0
//
// ModifyPeer: what all changes of a replication peer have in common. A derived class says what its
// change is; this class makes it durable first and tells the servers after, so that a server which
// starts meanwhile has read what is stored.
//
//     PRE_PEER_MODIFICATION -> UPDATE_PEER_STORAGE -> REFRESH_PEER_ON_RS -> POST_PEER_MODIFICATION
//
//     step                    reads and writes                    runs again after a crash
//     PRE_PEER_MODIFICATION   what is stored; decides what is     has changed nothing
//                             to be stored
//     UPDATE_PEER_STORAGE     writes or removes the peer          same effect key
//     REFRESH_PEER_ON_RS      all servers that may be alive; a    its children are part of its
//                             RefreshPeer for each                record
//     POST_PEER_MODIFICATION  as the derived class says           as the derived class says
//
// How it fails: in the first step only, as the derived class says. UPDATE_PEER_STORAGE is the point
// of no return. Its result is the peer's id. It is not a procedure itself.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/procedures/cluster_ports.h"

namespace pv2 {

/// Persisted.
enum class ModifyPeerStep {
  kPrePeerModification = 1,
  kUpdatePeerStorage = 2,
  kRefreshPeerOnRs = 3,
  kPostPeerModification = 4,
};

/// Threads: as Procedure. Lock: the peer, exclusively, until it ends.
class ModifyPeer : public StateMachineProcedure<ModifyPeerStep> {
 public:
  static constexpr auto kSteps =
      steps(step(ModifyPeerStep::kPrePeerModification, "PRE_PEER_MODIFICATION", kNoUndo).must_run(),
            step(ModifyPeerStep::kUpdatePeerStorage, "UPDATE_PEER_STORAGE", kPointOfNoReturn),
            step(ModifyPeerStep::kRefreshPeerOnRs, "REFRESH_PEER_ON_RS", kNoUndo),
            step(ModifyPeerStep::kPostPeerModification, "POST_PEER_MODIFICATION", kNoUndo));

  [[nodiscard]] LockSet locks() const final;
  Flow execute_from_state(ModifyPeerStep step, StepContext& ctx) final;

 protected:
  ModifyPeer(ClusterPorts& ports, std::string peer) : ports_(&ports), peer_(std::move(peer)) {}

  /// For fields(): the id is argument 1, what was decided is field 2; derived classes begin at 3.
  void peer_fields(auto& f) {
    f.arg(1, "peer", peer_);
    f(2, "decided", decided_);
  }

  /// Looks at what is stored and decides what is to be stored instead; nullopt removes the peer.
  /// An error is how the procedure fails.
  [[nodiscard]] virtual Result<std::optional<PeerRow>> decide(
      const std::optional<PeerRow>& stored) const = 0;
  /// What decide() would say if what is stored cannot be read: `damage` says why. As a rule that is
  /// how the procedure fails, because asking again mends nothing.
  [[nodiscard]] virtual Result<std::optional<PeerRow>> decide_damaged(const Status& damage) const {
    return damage.with_context("peer " + peer_ + " cannot be read; remove it, and add it again");
  }
  /// Looks at anything else, after decide(); nullopt: nothing speaks against the change.
  virtual std::optional<Flow> look_around(StepContext& /*ctx*/) { return std::nullopt; }
  /// Cleans up; nullopt: done.
  virtual std::optional<Flow> clean_up(StepContext& /*ctx*/) { return std::nullopt; }

  [[nodiscard]] ClusterPorts& ports() const { return *ports_; }
  [[nodiscard]] const std::string& peer() const { return peer_; }
  /// For look_around(): what speaks against a peer in the cluster that `config` names is that it is
  /// this one. Its own edits would come back to it over newer writes.
  std::optional<Flow> refuse_own_cluster(StepContext& ctx, const PeerConfig& config);
  /// kNotFound: the peer is not stored.
  [[nodiscard]] Status check_exists(const std::optional<PeerRow>& stored) const;

 private:
  Flow pre_peer_modification(StepContext& ctx);
  Flow update_peer_storage(StepContext& ctx);
  Flow refresh_peer_on_rs(StepContext& ctx);

  ClusterPorts* ports_;
  std::string peer_;
  std::optional<PeerRow> decided_;  ///< In PRE_PEER_MODIFICATION; empty: the peer is removed.
};

/// kInvalidArgument: the path of the other cluster is not absolute, or a table's name is bad.
[[nodiscard]] Status check_peer_config(const std::string& peer, const PeerConfig& config);

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// The requests that the engine sends to its store, one struct per kind. Each carries what has to be
// published when it is durable. A request is owned by the code that makes it until it is committed,
// and by the publisher afterwards.

#pragma once

#include <pv2/store/commit_request.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/inbox.h"
#include "model/on_demand.h"
#include "model/record.h"
#include "model/reply.h"
#include "pv2/engine/procedure_result.h"

namespace pv2 {

struct EngineCore;
struct Effects;
struct Execution;

/// Why a request was not published.
struct RequestFailure {
  Status unknown;      ///< For callers whose change is in its batch: it may be durable.
  Status not_written;  ///< For callers whose change was to be written after it.
};

/// Base of the engine's requests. published() does what follows when the request is durable,
/// failed() what follows when the store has failed; both are defined in the room that knows what
/// follows. The publisher calls one of the two, once, under the state mutex, in the order in which
/// requests became durable. There the request deletes itself, gives itself back or sends itself
/// again.
struct EngineRequest : CommitRequest {
  virtual void published(EngineCore& core, Effects& effects) = 0;
  virtual void failed(EngineCore& core, const RequestFailure& why, Effects& effects) = 0;
  /// Whether published() may be called in a narrow section (core/state_lock.h). Asked under the
  /// state mutex.
  [[nodiscard]] virtual bool is_narrow() const noexcept { return false; }

 protected:
  ~EngineRequest() = default;
};

/// A root's first record.
struct InsertCommit final : EngineRequest {
  void published(EngineCore& core, Effects& effects) override;
  void failed(EngineCore& core, const RequestFailure& why, Effects& effects) override;
  [[nodiscard]] bool is_narrow() const noexcept override { return true; }

  Execution* execution = nullptr;
  bool holds_locks = false;  ///< The root's lock grant is part of this record.
  /// A submitter: the first one, or a duplicate that came while the record was on the way.
  struct Submitter {
    Reply<Result<Submitted>> reply{};
    bool replayed = false;
    const Execution* step = nullptr;  ///< The procedure whose step submits; nullptr: a caller.
    /// Set: the submitter is told the result instead of the id, and the result is then forgotten.
    Reply<Result<ProcedureResult>> taker{};
  };
  std::vector<Submitter> submitters;  ///< The first one made this insert.
  /// A step that backs off because this insert is submitting the nonce that it wants to use.
  struct PutOff {
    ProcedureId id;
    std::uint32_t epoch = 0;
  };
  std::vector<PutOff> put_off;  ///< Run again when this insert has ended.

  /// Ready for the next submission; buffers keep their memory.
  void reset() {
    batch.clear();
    sequence = {};
    status = {};
    execution = nullptr;
    holds_locks = false;
    submitters.clear();
    put_off.clear();
  }
};

/// What the records of few steps bring with them.
struct RareOfStep {
  std::vector<Execution*> children;
  std::size_t reserved = 0;  ///< How much of EngineState::spawning it has reserved.
  /// Roots that the step submitted; their rows are in this batch. Owned, as the children are.
  std::vector<InsertCommit*> roots;
  std::optional<InboxUse> inbox_use;
  Reply<Status> reply;  ///< To an operator's order.
};

/// The record of a step, of the undoing of one, or of a lock grant. Thousands may be on the way,
/// and each is written by a worker and read by the publisher: so it is small.
struct alignas(64) StepCommit final : EngineRequest {
  void published(EngineCore& core, Effects& effects) override;
  void failed(EngineCore& core, const RequestFailure& why, Effects& effects) override;
  /// It touches the tree of its procedure, in which no worker goes on with another one.
  [[nodiscard]] bool is_narrow() const noexcept override { return true; }

  /// What it is the record of.
  enum class Kind : std::uint8_t {
    kStep,      ///< A run of a step, or a record that took its place.
    kUndo,      ///< Like kStep, of the undoing of a step.
    kGrant,     ///< Only that the locks are held. The step follows.
    kGiveBack,  ///< Only that the locks are given back.
  };
  Execution* execution = nullptr;
  Kind kind = Kind::kStep;
  bool needs_record = true;  ///< False: a wait that changes nothing durable.
  bool was_parked = false;   ///< Set on publication: whether the last record says so.
  Transition next;
  ProcedureId producer;  ///< Completes what the step awaits, if the step named it.
  OnDemand<RareOfStep> rare;

  [[nodiscard]] bool is_undo() const noexcept { return kind == Kind::kUndo; }
  [[nodiscard]] bool spawns() const noexcept { return rare.is_made() && !rare->children.empty(); }
  /// Whether it changes the locks and nothing else.
  [[nodiscard]] bool is_only_locks() const noexcept {
    return kind == Kind::kGrant || kind == Kind::kGiveBack;
  }

  /// Ready for the next step; buffers keep their memory.
  void reset() {
    batch.clear();
    sequence = {};
    status = {};
    execution = nullptr;
    kind = Kind::kStep;
    needs_record = true;
    next.reset();
    producer = {};
    rare.reset();
  }
};
static_assert(sizeof(StepCommit) == 256, "thousands may be on the way");

/// Deletes the rows of an ended root's descendants and messages that no step will consume, and
/// corrects the dates of results, a bounded chunk at a time.
struct GarbageCommit final : EngineRequest {
  void published(EngineCore& core, Effects& effects) override;
  void failed(EngineCore& core, const RequestFailure& why, Effects& effects) override;

  ProcedureId root;  ///< 0: no acknowledgement waits for it.
  /// Deleted in this order: children before their parents, unless their root has ended.
  std::vector<ProcedureId> left;
  std::size_t next = 0;           ///< Index into `left`.
  std::vector<std::string> rows;  ///< Keys of messages that are not deleted yet.
  /// Rows of Space::kEngine that are not written yet. An empty value deletes the row.
  std::vector<std::pair<std::string, std::string>> engine_rows;
  /// Inboxes of members that left. fill() turns their messages into keys of `rows`, without the
  /// mutex.
  std::vector<std::pair<ProcedureId, std::unique_ptr<Inbox>>> inboxes;

  /// Fills its batch with the next chunk: at most `chunk` procedures, messages and rows.
  void fill(std::size_t chunk);
};

/// A message on its way into the inbox of a procedure.
struct MessageCommit final : EngineRequest {
  void published(EngineCore& core, Effects& effects) override;
  void failed(EngineCore& core, const RequestFailure& why, Effects& effects) override;

  ProcedureId to;
  std::unique_ptr<InboxMessage> message;
  std::uint64_t audit = 0;  ///< Not 0: the number of the audit entry in its batch.
  ProcedureId audited;      ///< The procedure that the audit entry is about.
  std::vector<Reply<Status>> replies;
};

/// Deletes the rows and the nonce of a finished root whose result was received.
struct AcknowledgeCommit final : EngineRequest {
  void published(EngineCore& core, Effects& effects) override;
  void failed(EngineCore& core, const RequestFailure& why, Effects& effects) override;
  [[nodiscard]] bool is_narrow() const noexcept override { return true; }

  ProcedureId id;
  Nonce nonce;
  Duration age = Progress::kNotDated;  ///< The age of the store at its end, if that is dated.
  std::uint64_t bytes = 0;             ///< How many bytes are freed.
  std::vector<Reply<Status>> replies;  ///< To the first caller and to those that joined.
  /// Keys of audit rows that do not fit into the batch; they are deleted after it. A tree to which
  /// an operator's program gives orders for months has so many.
  std::vector<std::string> later;

  /// Ready for the next acknowledgement; buffers keep their memory.
  void reset() {
    batch.clear();
    sequence = {};
    status = {};
    nonce = {};
    age = Progress::kNotDated;
    bytes = 0;
    replies.clear();
    later = {};
  }
};

/// Raises the durable bound of the ids that may be issued. At most one is on the way.
struct WatermarkCommit final : EngineRequest {
  void published(EngineCore& core, Effects& effects) override;
  void failed(EngineCore& core, const RequestFailure& why, Effects& effects) override;

  std::uint64_t next_id = 0;
  Reply<Status> reply;
};

/// Makes a limit, or the end of one, durable.
struct LimitCommit final : EngineRequest {
  void published(EngineCore& core, Effects& effects) override;
  void failed(EngineCore& core, const RequestFailure& why, Effects& effects) override;

  ResourceKey key;
  std::optional<std::uint32_t> limit;
  Reply<Status> reply;
};

}  // namespace pv2

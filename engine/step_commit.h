// SPDX-License-Identifier: Apache-2.0
//
// The requests that the engine sends to its store, one struct per kind, each carrying what has to
// be published when it is durable. Owned by the code that makes them until commit, by the publisher
// afterwards.

#pragma once

#include <pv2/store/commit_request.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execution.h"

namespace pv2 {

/// Base of the engine's requests.
struct EngineRequest : CommitRequest {
  enum class Kind : std::uint8_t {
    kInsert,
    kStep,
    kGarbage,
    kAcknowledge,
    kWatermark,
    kLimit,
    kMessage
  };
  explicit EngineRequest(Kind request_kind) : kind(request_kind) {}
  const Kind kind;

 protected:
  ~EngineRequest() = default;
};

/// A root's first record.
struct InsertCommit final : EngineRequest {
  InsertCommit() : EngineRequest(Kind::kInsert) {}
  Execution* execution = nullptr;
  bool holds_locks = false;  ///< The grant rides on the insert.
  /// The submitter, and duplicates that arrived meanwhile.
  struct Submitter {
    std::function<void(Result<Submitted>)> answer;
    bool on_pool = true;
    bool replayed = false;
    const Execution* step = nullptr;  ///< Whose step submits, in its own record; or a caller does.
  };
  std::vector<Submitter> submitters;  ///< The first one made it.
  /// A step that backs off because its nonce is just being submitted, here.
  struct PutOff {
    ProcedureId id;
    std::uint32_t epoch = 0;
  };
  std::vector<PutOff> put_off;  ///< They run again when it is known what becomes of this.

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

/// The record of a step, of the undoing of one, or of a lock grant.
struct StepCommit final : EngineRequest {
  StepCommit() : EngineRequest(Kind::kStep) {}
  Execution* execution = nullptr;
  bool is_grant = false;     ///< Only makes a lock grant durable; the step follows.
  bool gives_back = false;   ///< Only makes it durable that the locks are given back.
  bool needs_record = true;  ///< False: a wait that changes nothing durable.
  bool was_undo = false;
  bool was_parked = false;  ///< Set when it is published: before this record.
  Transition next;
  ProcedureId producer;  ///< Of what the step awaits, if it said so.
  std::vector<Execution*> children;
  std::size_t reserved = 0;  ///< Of EngineState::spawning.
  /// Roots that the step submitted; their rows are in this batch. Owned, as the children are.
  std::vector<InsertCommit*> roots;
  std::unique_ptr<InboxUse> inbox_use;  ///< Most have none.
  std::string scratch;  ///< For fields of children; keeps its memory from step to step.

  /// Ready for the next step; buffers keep their memory.
  void reset() {
    std::string image = std::move(next.image);
    image.clear();
    batch.clear();
    sequence = {};
    status = {};
    execution = nullptr;
    is_grant = gives_back = was_undo = false;
    needs_record = true;
    std::destroy_at(&next);  // made anew in its place: assigning to it costs three times as much
    std::construct_at(&next);
    next.image = std::move(image);
    producer = {};
    children.clear();
    roots.clear();
    inbox_use.reset();
  }
};

/// Deletes the rows of an ended root's descendants, and messages that nobody will consume, and puts
/// right the dates of results, a bounded chunk at a time.
struct GarbageCommit final : EngineRequest {
  GarbageCommit() : EngineRequest(Kind::kGarbage) {}
  ProcedureId root;               ///< 0: no acknowledgement waits for it.
  std::vector<ProcedureId> left;  ///< Deleted in this order, children before their parents.
  std::size_t next = 0;           ///< Of `left`.
  std::vector<std::string> rows;  ///< Keys of messages that are not deleted yet.
  /// Rows of Space::kEngine that are not written yet; an empty value deletes one.
  std::vector<std::pair<std::string, std::string>> engine_rows;
  /// Of members that left; their messages become rows outside the mutex.
  std::vector<std::pair<ProcedureId, std::unique_ptr<Inbox>>> inboxes;
};

/// A message on its way into the inbox of a procedure.
struct MessageCommit final : EngineRequest {
  MessageCommit() : EngineRequest(Kind::kMessage) {}
  ProcedureId to;
  std::unique_ptr<InboxMessage> message;
  std::uint64_t audit = 0;  ///< Not 0: the number of the audit entry in its batch.
  ProcedureId audited;      ///< Whom that is about.
  std::vector<std::function<void(Status)>> answers;  ///< Engine code.
};

/// Who acknowledged a result, and how he is told.
struct Acknowledger {
  std::function<void(Status)> answer;
  bool on_pool = true;
};

/// Deletes everything of a finished root whose result was received.
struct AcknowledgeCommit final : EngineRequest {
  AcknowledgeCommit() : EngineRequest(Kind::kAcknowledge) {}
  ProcedureId id;
  Nonce nonce;
  Duration age = Progress::kNotDated;  ///< When it ended, if it is dated.
  std::uint64_t bytes = 0;             ///< What is free with it.
  std::vector<Acknowledger> answers;   ///< The first who asked, and those who joined.

  /// Ready for the next acknowledgement; buffers keep their memory.
  void reset() {
    batch.clear();
    sequence = {};
    status = {};
    nonce = {};
    age = Progress::kNotDated;
    bytes = 0;
    answers.clear();
  }
};

/// Raises the durable bound of the ids that may be issued. At most one is on the way.
struct WatermarkCommit final : EngineRequest {
  WatermarkCommit() : EngineRequest(Kind::kWatermark) {}
  std::uint64_t next_id = 0;
  std::function<void(Status)> answer;  ///< Engine code; may be empty.
};

/// Makes a limit durable, or its end.
struct LimitCommit final : EngineRequest {
  LimitCommit() : EngineRequest(Kind::kLimit) {}
  ResourceKey key;
  std::optional<std::uint32_t> limit;
  std::function<void(Status)> answer;  ///< Engine code.
};

/// Requests that came back, to be filled again. Guarded by whoever owns it.
template <class Commit>
class SpareCommits {
 public:
  std::unique_ptr<Commit> take() {
    if (spare_.empty()) return std::make_unique<Commit>();
    auto commit = std::move(spare_.back());
    spare_.pop_back();
    return commit;
  }
  void give_back(std::unique_ptr<Commit> commit) {
    PV2_ASSERT(commit != nullptr, "a request that is given back was taken");
    if (spare_.size() >= kSpareMax || commit->batch.bytes() > kBytesMax) return;
    commit->reset();
    spare_.push_back(std::move(commit));
  }

 private:
  static constexpr std::size_t kSpareMax = 4096;  // as many as are usually on the way at once
  static constexpr std::size_t kBytesMax = 4096;  // what grew beyond a page is not kept
  std::vector<std::unique_ptr<Commit>> spare_;
};

}  // namespace pv2

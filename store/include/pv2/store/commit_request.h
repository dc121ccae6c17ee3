// SPDX-License-Identifier: Apache-2.0
//
// What the engine hands to a store: a batch of row operations inside a request that the store
// links, stamps and gives back. A request belongs to its maker, except between commit() and the
// moment the sink gets it back; passing it along allocates nothing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/base/ids.h"
#include "pv2/base/status.h"

namespace pv2 {

/// The tables of a store. One byte each in the key on disk; persisted, never reused.
enum class Space : std::uint8_t {
  kEngine = 'E',     ///< The engine's own facts: the highest procedure id.
  kHost = 'H',       ///< Rows of the host, committed together with a step.
  kNonce = 'N',      ///< Nonce -> procedure.
  kProcedure = 'P',  ///< Live procedures: every row of one procedure lies together.
  kResult = 'R',     ///< Roots that have ended, one row each; a start need not read them.
};

/// One operation on one row.
enum class RowOperation : std::uint8_t {
  kInsert = 1,  ///< The row does not exist yet (the memory store checks it).
  kUpdate = 2,  ///< The row exists (the memory store checks it).
  kPut = 3,     ///< The row may or may not exist.
  kDelete = 4,  ///< The row may or may not exist; afterwards it does not.
};

/// A sequence of row operations that becomes durable whole or not at all. Owned by one thread.
class RowBatch {
 public:
  void insert(Space space, std::string_view key, std::string_view value) {
    add(RowOperation::kInsert, space, key, value);
  }
  void update(Space space, std::string_view key, std::string_view value) {
    add(RowOperation::kUpdate, space, key, value);
  }
  void put(Space space, std::string_view key, std::string_view value) {
    add(RowOperation::kPut, space, key, value);
  }
  void erase(Space space, std::string_view key) { add(RowOperation::kDelete, space, key, {}); }

  /// Like insert(), with a value built in place: `write(std::string& out)` appends the value to
  /// `out`, changes nothing that is already in it, and does not throw.
  template <class Write>
  void insert_with(Space space, std::string_view key, Write&& write) {
    add_with(RowOperation::kInsert, space, key, write);
  }
  template <class Write>
  void put_with(Space space, std::string_view key, Write&& write) {
    add_with(RowOperation::kPut, space, key, write);
  }
  template <class Write>
  void update_with(Space space, std::string_view key, Write&& write) {
    add_with(RowOperation::kUpdate, space, key, write);
  }

  /// Adds one operation, as for_each() passes it.
  void add(RowOperation operation, Space space, std::string_view key, std::string_view value);

  /// Makes room for a batch of `bytes`, as bytes() counts them.
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  void clear() noexcept {
    bytes_.clear();
    operations_ = 0;
    host_operations_ = 0;
  }
  [[nodiscard]] bool empty() const noexcept { return operations_ == 0; }
  [[nodiscard]] std::size_t operations() const noexcept { return operations_; }
  /// How many of the operations are on rows of the host: a store that keeps only those can skip a
  /// batch without any.
  [[nodiscard]] std::size_t host_operations() const noexcept { return host_operations_; }
  /// The size of keys and values with their framing, in bytes.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }
  /// The operations one after another, as a store writes them into its log: 1 byte operation, 4
  /// bytes length of the full key, the full key (1 byte space, then the key), 4 bytes length of the
  /// value, the value. Lengths are little-endian. Persisted.
  [[nodiscard]] std::string_view encoded() const noexcept { return bytes_; }

  /// One operation as it lies in encoded(). The views are valid as long as those bytes.
  struct EncodedRow {
    RowOperation operation = RowOperation::kPut;
    std::string_view full_key;  ///< The space, then the key; never empty.
    std::string_view value;
  };
  /// Reads the operation at the beginning of `bytes` and removes it from there; false, and nothing
  /// is removed: it is not well-formed.
  static bool take_row(std::string_view& bytes, EncodedRow& row) noexcept;

  /// The full key, of `bytes` bytes, of the operation whose value begins at `value` in encoded().
  static std::string_view key_before(const char* value, std::size_t bytes) noexcept {
    return {value - sizeof(std::uint32_t) - bytes, bytes};
  }

  /// Calls visit(RowOperation, Space, key, value) for each operation in order.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    const char* at = bytes_.data();
    const char* const end = at + bytes_.size();
    while (at != end) {
      const auto operation = static_cast<RowOperation>(*at++);
      const std::string_view full_key = read_string(at);
      const std::string_view value = read_string(at);
      visit(operation, static_cast<Space>(full_key.front()), full_key.substr(1), value);
    }
  }

 private:
  template <class Write>
  void add_with(RowOperation operation, Space space, std::string_view key, Write& write) {
    add(operation, space, key, {});
    const std::size_t value = bytes_.size();
    write(bytes_);
    set_last_length(value);
  }
  void set_last_length(std::size_t value);
  static std::string_view read_string(const char*& at) noexcept;

  std::string bytes_;  // see encoded()
  std::size_t operations_ = 0;
  std::size_t host_operations_ = 0;
};

/// A batch on its way to stable storage. Derive from it, or embed it. Owned by its maker, but by
/// the store from commit() until it comes back (through the sink, or because commit() answered
/// kDurable).
class CommitRequest {
 public:
  CommitRequest() = default;
  CommitRequest(const CommitRequest&) = delete;
  CommitRequest& operator=(const CommitRequest&) = delete;

  RowBatch batch;

  /// Stamped by the store; increasing in the order in which batches become durable.
  CommitSequence sequence;
  /// Set when the request comes back. A failure is an unknown outcome: the batch may or may not be
  /// on disk, and the store accepts nothing after it.
  Status status;

 protected:
  ~CommitRequest() = default;  // never deleted through this type

 private:
  friend class CommitList;
  CommitRequest* next_ = nullptr;
};

/// A singly linked list of requests in commit order, whose batches do not change while they are in
/// it. Owns nothing. Owned by one thread.
class CommitList {
 public:
  CommitList() = default;
  CommitList(CommitList&& other) noexcept { *this = static_cast<CommitList&&>(other); }
  CommitList& operator=(CommitList&& other) noexcept {
    head_ = std::exchange(other.head_, nullptr);
    tail_ = std::exchange(other.tail_, nullptr);
    size_ = std::exchange(other.size_, 0);
    operations_ = std::exchange(other.operations_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] CommitRequest* front() const noexcept { return head_; }
  /// Of all batches together.
  [[nodiscard]] std::size_t operations() const noexcept { return operations_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  void push_back(CommitRequest& request) noexcept {
    request.next_ = nullptr;
    (tail_ ? tail_->next_ : head_) = &request;
    tail_ = &request;
    ++size_;
    operations_ += request.batch.operations();
    bytes_ += request.batch.bytes();
  }
  /// Removes and returns the first request, or nullptr.
  CommitRequest* pop_front() noexcept {
    CommitRequest* const request = head_;
    if (request == nullptr) return nullptr;
    head_ = request->next_;
    if (head_ == nullptr) tail_ = nullptr;
    request->next_ = nullptr;
    --size_;
    operations_ -= request->batch.operations();
    bytes_ -= request->batch.bytes();
    return request;
  }
  /// Calls visit(CommitRequest&) for each request in order; `visit` must not give the request away.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (CommitRequest* request = head_; request != nullptr; request = request->next_) {
      visit(*request);
    }
  }
  /// Moves all of `other` behind this list's last request.
  void splice_back(CommitList&& other) noexcept;

 private:
  CommitRequest* head_ = nullptr;
  CommitRequest* tail_ = nullptr;
  std::size_t size_ = 0;
  std::size_t operations_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace pv2

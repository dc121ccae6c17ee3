// SPDX-License-Identifier: Apache-2.0
//
// Writers: the clients of a campaign. Each has a thread and a ClusterClient of its own; it
// increments counters and appends to texts that all share, and puts values into rows of its own. A
// write whose outcome it does not know is kept, and sent again under its nonce later, until it is
// known.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/rpc/transport.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer_ledger.h"

namespace campaign {

inline const pv2::TableName kTable{"default", "campaign"};

struct WriterCounts {
  std::uint64_t increments = 0;
  std::uint64_t appends = 0;
  std::uint64_t puts = 0;
  std::uint64_t failed = 0;
  std::uint64_t unknown = 0;
  std::uint64_t resumed = 0;
};

/// Owned by one thread; its own threads meet at a mutex.
class Writers {
 public:
  struct Options {
    std::shared_ptr<pv2::Transport> transport;
    std::function<pv2::Result<std::string>()> find_master;
    std::size_t writers = 1;
    std::uint64_t seed = 1;
    bool forgets_nonces = false;
  };

  explicit Writers(Options options);
  /// Ends the threads, and drops what is unknown.
  ~Writers();
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;

  pv2::Status start();
  /// Nothing new is begun, and what is unknown is sent again until it is known. Blocks, for `most`
  /// at most: kDeadlineExceeded says how many writes are unknown still.
  pv2::Status finish(pv2::Duration most);
  [[nodiscard]] WriterCounts counts() const PV2_EXCLUDES(told_mutex_);

  /// After finish(): compares what there is with what was told. The first contradiction; empty:
  /// there is none.
  [[nodiscard]] pv2::Result<std::string> compare(pv2::cluster::ClusterClient& client)
      PV2_EXCLUDES(told_mutex_);

 private:
  struct Write {
    enum class Kind { kIncrement, kAppend, kPut };
    Kind kind = Kind::kIncrement;
    std::string row;
    std::string name;  ///< Of the counter or text, in the ledger.
    std::vector<pv2::cluster::Mutation> mutations;
    pv2::Nonce nonce{};
    std::optional<pv2::WallTime> expires_at{};
    bool was_sent = false;
  };
  struct Writer;

  void run(Writer& writer);
  Write choose(Writer& writer);
  /// Whether its outcome is known now.
  bool send(Writer& writer, Write& write);
  void told(const Write& write, const pv2::cluster::WriteResult& result) PV2_EXCLUDES(told_mutex_);

  const Options options_;
  std::atomic<bool> is_finishing_ = false;
  std::atomic<bool> is_over_ = false;
  std::atomic<std::size_t> working_ = 0;
  std::vector<std::unique_ptr<Writer>> writers_;

  mutable pv2::Mutex told_mutex_;
  counter::AnswerLedger ledger_ PV2_GUARDED_BY(told_mutex_);
  std::map<std::string, std::string> values_ PV2_GUARDED_BY(told_mutex_);  // of rows that were put
  std::map<std::string, std::string> rows_ PV2_GUARDED_BY(told_mutex_);    // name -> row
  WriterCounts counts_ PV2_GUARDED_BY(told_mutex_);
};

}  // namespace campaign

// SPDX-License-Identifier: Apache-2.0
//
// ServerConnection: one client of a server: its stream, the calls of it that are not answered, and
// the answers that are on their way. The stream belongs to the loop's thread. Answers may come from
// any thread: they are written into `out_`, and the first of a batch posts one flush.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "id_table.h"
#include "id_window.h"
#include "pv2/rpc/frame_reader.h"
#include "pv2/rpc/incoming_call.h"
#include "pv2/rpc/rpc_frame.h"
#include "pv2/rpc/rpc_server.h"
#include "pv2/rpc/transport.h"

namespace pv2 {

class ServerCore;

/// Shared by the server and by the calls, each until it is destroyed: either may be gone first.
class ServerConnection final : public StreamListener,
                               public std::enable_shared_from_this<ServerConnection> {
 public:
  /// `number`: of the connection at its server.
  ServerConnection(std::shared_ptr<ServerCore> core, std::unique_ptr<Stream> stream,
                   std::uint64_t number);
  ~ServerConnection() override;

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  // The rest up to the next remark: on the loop's thread.
  void start();
  void on_bytes(std::string_view bytes) override;
  void on_drained() override;
  void on_closed(const Status& why) override;
  /// Calls `work`; if that throws, there is no memory, and the connection is closed.
  void guarded(const std::function<void()>& work);
  /// Holds the connection against its time limits.
  void look(SteadyTime now);
  /// Tells the client that no more calls are taken, and ends when the calls are answered.
  void finish(const Status& why);
  /// Ends at once; nobody is told.
  void close(const Status& why);

  // From any thread.
  using Cancelled = std::function<void(const Status&)>;
  /// Returns the function of the host that was to be told of a cancel. The caller destroys it when
  /// it has noted the answer, for that function may own the call.
  [[nodiscard]] Cancelled answer(const RpcFrame& reply);
  /// There is no memory for the answer to `id`. Counts the call no more, and ends the connection
  /// soon, so that the client asks again.
  void forget(std::uint64_t id) noexcept;
  bool note(std::uint64_t id, std::string_view body);
  void on_cancel(std::uint64_t id, std::optional<SteadyTime> deadline, Cancelled cancelled);

 private:
  enum class Phase : std::uint8_t {
    kHello,    ///< Nothing but a hello is taken.
    kOpen,     ///< Calls are taken.
    kClosing,  ///< Ends when all calls are answered and all answers sent. Reads on, for cancels.
    kBroken,   ///< Ends when the reason is sent. Reads no more.
    kClosed,
  };
  struct Watched {
    std::optional<SteadyTime> deadline{};
    Cancelled cancelled{};
    Status why{};  // not OK: it was cancelled
  };

  void read(std::string_view bytes);
  void count_kept();
  void take(const RpcFrame& frame);
  void take_hello(const RpcFrame& hello);
  void take_call(const RpcFrame& call);
  void take_cancel(std::uint64_t id);
  void break_off(Status why);
  [[nodiscard]] Status admit(const RpcFrame& call, const RpcMethods::value_type*& method,
                             std::string& body);
  void send_frame(const RpcFrame& frame);
  void refuse(std::uint64_t id, const Status& why);

  void flush();
  void count_unsent();
  void end_if_done();
  bool end_if_too_much();
  void give_up(const Cancelled& cancelled, const Status& why);
  void cancel_one(std::uint64_t id, const Status& why);
  void cancel_all(const Status& why);
  std::optional<Watched> take_watched();
  void cancel_late(SteadyTime now);
  void look_at_frame(SteadyTime now);
  void look_at_unsent(SteadyTime now);
  bool append(const RpcFrame& frame, std::size_t freed = 0) PV2_REQUIRES(answers_mutex_);
  void give_up_answers() noexcept PV2_REQUIRES(answers_mutex_);
  Cancelled remove(std::uint64_t id) noexcept PV2_REQUIRES(answers_mutex_);

  const std::shared_ptr<ServerCore> core_;
  const std::uint64_t number_;

  // Of the loop's thread.
  std::unique_ptr<Stream> stream_;  // nullptr: closed
  Phase phase_ = Phase::kHello;
  FrameReader reader_;
  std::size_t kept_counted_ = 0;  // what it keeps, as counted by the server
  IdWindow ids_;
  std::string owner_;
  std::string spare_;  // memory for the next batch of answers
  bool is_paused_ = false;
  SteadyTime opened_at_;
  SteadyTime heard_at_;
  std::optional<SteadyTime> frame_since_;  // of a frame that has not arrived whole
  SteadyTime unsent_since_;                // since when the network has taken nothing
  std::uint64_t given_ = 0;                // bytes given to the stream
  std::uint64_t taken_seen_ = 0;           // of those, what the network had taken at the last look
  std::optional<SteadyTime> done_at_;      // in kClosing: since when there is nothing left to say

  Mutex answers_mutex_;
  std::string out_ PV2_GUARDED_BY(answers_mutex_);
  // Maps the id of each unanswered call to what it counts for the server's memory.
  IdTable<std::size_t> in_flight_ PV2_GUARDED_BY(answers_mutex_);
  // Holds those of them that were cancelled or want to hear of it.
  boost::unordered_flat_map<std::uint64_t, Watched> watched_ PV2_GUARDED_BY(answers_mutex_);
  // It is not OK when all calls are cancelled, and says why.
  Status all_cancelled_ PV2_GUARDED_BY(answers_mutex_);
  // Bytes in `out_` and in the stream, as counted by the server.
  std::size_t counted_ PV2_GUARDED_BY(answers_mutex_) = 0;
  // Somebody will call flush(): a task that is posted, or on_bytes() at its end.
  bool flush_is_due_ PV2_GUARDED_BY(answers_mutex_) = false;
  bool is_closed_ PV2_GUARDED_BY(answers_mutex_) = false;
  // There is no memory for its answers, and it ends at the next flush or look.
  bool is_too_much_ PV2_GUARDED_BY(answers_mutex_) = false;
  // No watched call with a function to cancel has an earlier deadline.
  SteadyTime deadline_min_ PV2_GUARDED_BY(answers_mutex_) = SteadyTime::max();
};

}  // namespace pv2

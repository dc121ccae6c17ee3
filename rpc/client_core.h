// SPDX-License-Identifier: Apache-2.0
//
// ClientCore: the calls of one client and the connection that they go through: sends them in
// order, decides what becomes of an attempt without an outcome, and when to give up.
//
// The rule that everything here serves: a call ends as kFailed only if no attempt of it can have
// been run. `OutgoingCall::may_be_done` says whether one can.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/random.h>
#include <pv2/base/status.h>

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "client_link.h"
#include "id_table.h"
#include "outgoing_call.h"
#include "pv2/rpc/rpc_client.h"

namespace pv2 {

/// add(), cancel() and counts() may be called by any thread; the rest is the loop's thread's.
/// Shared by the client and by the tasks that it has posted.
class ClientCore final : public ClientLinkOwner, public std::enable_shared_from_this<ClientCore> {
 public:
  ClientCore(Transport& transport, RpcClientOptions options);
  ~ClientCore() override;

  CallTicket add(std::unique_ptr<OutgoingCall> call);
  void cancel(CallTicket ticket);
  [[nodiscard]] RpcClientCounts counts() const;
  /// Gives each call its outcome, and ends the connection. The transport is not used after it.
  void shut();

  void on_open(ClientLink& link) override;
  void on_room(ClientLink& link) override;
  void on_reply(ClientLink& link, OutgoingCall& call, const RpcFrame& reply) override;
  void on_note(OutgoingCall& call, std::string_view body) override;
  void on_go_away(ClientLink& link, const Status& why) override;
  void on_end(ClientLink& link, const Status& why, std::vector<OutgoingCall*> unanswered) override;

 private:
  using Queue = boost::intrusive::list<OutgoingCall>;
  using DueTimes = boost::intrusive::multiset<OutgoingCall, boost::intrusive::compare<EarlierDue>>;

  [[nodiscard]] SteadyTime now() const { return transport_->clock().steady_now(); }
  [[nodiscard]] Duration attempt_timeout(const OutgoingCall& call) const;
  [[nodiscard]] Duration pause_after(std::uint32_t failures);

  void take_added();
  void begin(std::unique_ptr<OutgoingCall> call, SteadyTime start);
  /// Sends what waits, as far as there is room, and connects if need be.
  void pump();
  void send(OutgoingCall& call, SteadyTime now);
  void queue_again(OutgoingCall& call);
  void pause(OutgoingCall& call);
  void set_due(OutgoingCall& call, SteadyTime due);
  void arm();
  void look_at_due();
  void attempt_is_late(OutgoingCall& call, SteadyTime now);
  void take_reply(OutgoingCall& call, const RpcFrame& reply);
  void take_refusal(OutgoingCall& call, Status why);
  void end_if_unused(ClientLink& link);
  [[nodiscard]] bool is_too_late(const OutgoingCall& call, SteadyTime now) const;
  void give_up(OutgoingCall& call, const Status& why);
  void finish(OutgoingCall& call, CallOutcome outcome);

  void connect();
  void connected(Result<std::unique_ptr<Stream>> stream);
  void connect_later(const Status& why);
  void next_address() noexcept;
  void rejected(const Status& why);
  void bury(ClientLink& link);

  const RpcClientOptions options_;  // without the transport
  // Owned by the client. Not used after shut(), for then it may be gone.
  Transport* const transport_;

  mutable Mutex added_mutex_;
  std::vector<std::unique_ptr<OutgoingCall>> added_ PV2_GUARDED_BY(added_mutex_);
  bool is_closed_ PV2_GUARDED_BY(added_mutex_) = false;

  // Written under added_mutex_, read by anybody; the bound of bytes may be exceeded by what is
  // added at the same time.
  std::atomic<std::uint64_t> tickets_{0};  // as many as calls were added
  std::atomic<std::uint64_t> added_bytes_{0};
  // Written by the loop's thread, read by anybody.
  std::atomic<std::uint64_t> ended_bytes_{0};
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> answered_{0};
  std::atomic<std::uint64_t> connections_{0};

  // Of the loop's thread.
  std::vector<std::unique_ptr<OutgoingCall>> spare_;   // memory for the next round of added_
  IdTable<std::unique_ptr<OutgoingCall>> open_calls_;  // by their tickets
  Queue queue_;
  DueTimes due_;
  TimerId due_timer_;
  SteadyTime due_timer_at_ = SteadyTime::max();
  enum class Connecting : std::uint8_t { kNo, kYes, kPausing };
  Connecting connecting_ = Connecting::kNo;
  TimerId connect_timer_;
  std::unique_ptr<ClientLink> link_;                // the one that calls are sent on
  std::vector<std::unique_ptr<ClientLink>> going_;  // take no more calls, or have ended
  std::size_t address_ = 0;
  std::uint32_t failures_ = 0;    // of connections, since the last answer
  std::uint32_t rejections_ = 0;  // servers in a row that will not let this client in
  Status last_failure_;
  Random random_;
  bool is_shut_ = false;
};

}  // namespace pv2

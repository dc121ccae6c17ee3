// SPDX-License-Identifier: Apache-2.0
//
// ServerCore: what the connections of one server share: its options, its counts, the list of
// connections, and the timer that holds them against their time limits.

#pragma once

#include <pv2/base/status.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/rpc/rpc_server.h"

namespace pv2 {

class ServerConnection;

/// Shared by the server and its connections, which calls may keep alive for longer. Counts may be
/// changed by any thread; the rest is the loop's thread's.
class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  explicit ServerCore(RpcServerOptions options);

  [[nodiscard]] Status listen();
  void remove(ServerConnection& connection);
  void stop(Duration grace, std::function<void()> stopped);
  /// Ends everything at once. The transport is not used any more after it.
  void close_all();

  /// The owner of `token`; none: nobody has it. Takes the same time for each wrong token.
  [[nodiscard]] std::optional<std::string_view> owner_of(std::string_view token) const noexcept;
  /// Returns nullptr if there is none. The pointer is valid as long as the core.
  [[nodiscard]] const RpcMethods::value_type* find(std::string_view method) const;
  [[nodiscard]] bool is_stopping() const noexcept { return is_stopping_; }
  [[nodiscard]] const RpcLimits& limits() const noexcept { return limits_; }
  [[nodiscard]] Transport& transport() const noexcept { return *transport_; }
  [[nodiscard]] SteadyTime now() const { return transport_->clock().steady_now(); }
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// Why a connection is closed for which there is no memory. It is made before that is so.
  [[nodiscard]] const Status& no_memory() const noexcept { return no_memory_; }
  [[nodiscard]] RpcServerCounts counts() const;
  /// Nobody but the loop's thread writes it, so a plain addition will do.
  static void count(std::atomic<std::uint64_t>& counter) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Calls code of the host. What that throws is logged, with `what`.
  template <class Work>
  void guard(std::string_view what, const Work& work) const noexcept {
    try {
      work();
    } catch (const std::exception& error) {
      log_thrown(what, text_of(error));
    } catch (...) {
      log_thrown(what, "something that is no std::exception");
    }
  }

  // Relaxed: they are counts, and nothing is concluded from two of them. Changed by any thread:
  std::atomic<std::size_t> memory{0};
  std::atomic<std::size_t> calls_in_flight{0};
  // Changed by the loop's thread, with count().
  std::atomic<std::uint64_t> turned_away{0};
  std::atomic<std::uint64_t> broken{0};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> repeated{0};

 private:
  void accept(std::unique_ptr<Stream> stream);
  void look();
  void look_later();
  void tell_if_stopped();
  void log_thrown(std::string_view what, std::string_view thrown) const noexcept;
  template <class Visit>
  void for_each_connection(const Visit& visit);

  // Owned by the server. Not used after close_all(), for then it may be gone.
  Transport* const transport_;
  const RpcMethods methods_;
  const std::vector<BearerToken> tokens_;
  const RpcLimits limits_;
  const LogSink log_;
  const Status no_memory_{StatusCode::kUnavailable, "there is no memory for the connection"};
  std::string address_;
  std::unique_ptr<StreamAcceptor> acceptor_;
  /// By number, in the order in which they came: a run of a simulation is always the same.
  std::map<std::uint64_t, std::shared_ptr<ServerConnection>> connections_;
  std::atomic<std::size_t> connections_now_{0};
  std::atomic<std::uint64_t> accepted_{0};
  TimerId look_timer_;
  TimerId grace_timer_;
  bool is_stopping_ = false;
  std::vector<std::function<void()>> stopped_;
};

}  // namespace pv2

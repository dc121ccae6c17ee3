// SPDX-License-Identifier: Apache-2.0
//
// Shell: answers statements. It has what commands need: the client of a cluster, the processes if
// they are its own, nonces, and a wait that Ctrl-C ends. It neither reads lines nor prints answers.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/cluster/cluster_processes.h>
#include <pv2/rpc/nonce_source.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "output/answer.h"
#include "session/interrupts.h"
#include "session/progress_line.h"

namespace pv2::shell {

/// Owned by one thread, the one that started the processes.
class Shell {
 public:
  /// How long statements wait unless they say otherwise. A procedure may move a thousand regions.
  static constexpr Duration kCallTime = std::chrono::seconds(60);
  static constexpr Duration kProcedureTime = std::chrono::minutes(10);
  /// No statement waits longer, whatever it says.
  static constexpr Duration kTimeMax = std::chrono::hours(7 * 24);

  /// All of them outlive the shell. `processes`: nullptr if the cluster is not the shell's own.
  /// `progress`: the terminal that shows how far a procedure is; nullptr: none.
  Shell(cluster::ClusterClient& client, std::string root, cluster::ClusterProcesses* processes,
        std::FILE* progress = nullptr)
      : client_(client), root_(std::move(root)), processes_(processes), progress_(progress) {}

  /// Answers one line, whatever it is. A blank line has an empty answer.
  Answer answer(std::string_view line);

  [[nodiscard]] cluster::ClusterClient& client() noexcept { return client_; }
  [[nodiscard]] RemoteExecutor& executor() noexcept { return client_.executor(); }
  [[nodiscard]] const std::string& root() const noexcept { return root_; }
  /// kFailedPrecondition: the shell has joined a cluster that others started.
  [[nodiscard]] Result<cluster::ClusterProcesses*> processes() const;
  [[nodiscard]] ProgressLine& progress() noexcept { return progress_; }

  [[nodiscard]] Nonce next_nonce() { return nonces_.next(); }
  [[nodiscard]] WallTime wall_now() const { return clock_.wall_now(); }
  [[nodiscard]] SteadyTime now() const { return clock_.steady_now(); }

  void end() noexcept { ended_ = true; }
  [[nodiscard]] bool has_ended() const noexcept { return ended_ || Interrupts::must_end(); }

  /// Begins something that calls back once, from any thread, and waits for that. `meanwhile` is
  /// called about ten times a second. kAborted: Ctrl-C was typed, or the shell is to end; if that
  /// is known before, nothing is begun. kDeadlineExceeded: the time is over.
  ///
  /// Nobody hears the answer of what was given up. If `begin` returns the ticket of a call of
  /// executor(), that call is cancelled, so that it is not sent when the statement is over. Else
  /// what was begun goes on, and has to have a time limit of its own.
  template <class T, class Begin>
  Result<T> wait_for(const Begin& begin, Duration timeout,
                     const std::function<void()>& meanwhile = {});
  /// The same for what calls back with a Result.
  template <class T, class Begin>
  Result<T> ask(const Begin& begin, Duration timeout = kCallTime) {
    Result<Result<T>> answer = wait_for<Result<T>>(begin, timeout);
    return answer.ok() ? *std::move(answer) : Result<T>(answer.status());
  }
  /// The time limit of a verb that nothing cancels, for a wait of `timeout`. It is longer, so that
  /// it is the shell that says that the time is over, and not the last refusal.
  [[nodiscard]] static constexpr Duration beyond(Duration timeout) {
    return timeout + std::chrono::seconds(5);
  }

 private:
  // SIGTERM comes once, and somebody else may have taken it as Ctrl-C.
  [[nodiscard]] static bool is_interrupted() {
    return Interrupts::take() || Interrupts::must_end();
  }

  cluster::ClusterClient& client_;
  const std::string root_;
  cluster::ClusterProcesses* const processes_;
  ProgressLine progress_;
  NonceSource nonces_;
  SystemClock clock_;
  bool ended_ = false;
};

template <class T, class Begin>
Result<T> Shell::wait_for(const Begin& begin, Duration timeout,
                          const std::function<void()>& meanwhile) {
  using namespace std::chrono_literals;
  using Callback = std::function<void(T)>;
  // A statement of many questions that are answered at once never waits below.
  if (is_interrupted()) return Status(StatusCode::kAborted, "interrupted");
  // Shared with the callback, which may come when nobody waits any more.
  const auto promise = std::make_shared<std::promise<T>>();
  std::future<T> future = promise->get_future();
  const Callback answer = [promise](T value) { promise->set_value(std::move(value)); };
  CallTicket ticket;  // none
  if constexpr (std::is_void_v<std::invoke_result_t<const Begin&, Callback>>) {
    begin(answer);
  } else {
    ticket = begin(answer);
  }
  const auto give_up = [&](StatusCode code, std::string why) {
    executor().cancel(ticket);
    return Status(code, std::move(why));
  };
  const SteadyTime end = later(now(), timeout);
  // The answer ends the wait at once; a key, at the next look.
  while (future.wait_for(50ms) != std::future_status::ready) {
    if (is_interrupted()) return give_up(StatusCode::kAborted, "interrupted");
    if (now() >= end) return give_up(StatusCode::kDeadlineExceeded, "no answer in time");
    if (meanwhile) meanwhile();
  }
  return future.get();
}

}  // namespace pv2::shell

// SPDX-License-Identifier: Apache-2.0
//
// MasterTransport: a transport on which the address kMasterAddress is wherever the master is now. A
// client of that one address follows the master through its restarts. Everything else goes to the
// transport below.
//
// How it fails: while nobody can say where the master is, connecting fails as kUnavailable, and the
// client tries again after its pause.

#pragma once

#include <pv2/base/status.h>
#include <pv2/rpc/transport.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "storage/work_queue.h"

namespace pv2::cluster {

inline constexpr std::string_view kMasterAddress = "master";

/// Thread-safe as the transport below.
class MasterTransport final : public Transport {
 public:
  /// Says where the master is: it may read a file, on a disk that hangs. Called at each connect()
  /// and look_again(), one call at a time.
  using FindMaster = std::function<Result<std::string>()>;

  /// `find` is called in `looks`, which outlives the streams and what is put into it; without one,
  /// on the loop.
  MasterTransport(std::shared_ptr<Transport> below, FindMaster find, WorkQueue* looks = nullptr);
  ~MasterTransport() override;

  /// Closes the connections to a master that is not where the master is now, soon. On the loop.
  void look_again();

  void post(std::function<void()> task) override { below_->post(std::move(task)); }
  [[nodiscard]] bool on_loop() const noexcept override { return below_->on_loop(); }
  [[nodiscard]] bool has_own_thread() const noexcept override { return below_->has_own_thread(); }
  [[nodiscard]] Clock& clock() const noexcept override { return below_->clock(); }
  TimerId call_at(SteadyTime when, std::function<void()> task) override {
    return below_->call_at(when, std::move(task));
  }
  void cancel(TimerId timer) override { below_->cancel(timer); }
  [[nodiscard]] Result<std::unique_ptr<StreamAcceptor>> listen(std::string_view address,
                                                               Accept accept) override {
    return below_->listen(address, std::move(accept));
  }
  void connect(std::string_view address, Duration timeout, Connected connected) override;

 private:
  class Followed;
  struct Streams;

  void look(std::function<void(const Result<std::string>&)> found) const;

  const std::shared_ptr<Transport> below_;
  const FindMaster find_;
  WorkQueue* const looks_;
  // Shared with the streams, which may outlive this object.
  const std::shared_ptr<Streams> streams_;
};

}  // namespace pv2::cluster

// SPDX-License-Identifier: Apache-2.0
//
// Registration: stands for a function of the host that an executor calls. When the Registration is
// destroyed, the calls end. Subscription and Chore contain one. It refers to the executor's list
// weakly, so neither has to outlive the other.

#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace pv2::internal {

/// The functions of one kind that an executor calls for its host. Thread-safe.
class Registrations {
 public:
  /// After this `id` is not called any more; on a thread of the executor a call that is under way
  /// may still be running. Does nothing for an id that is not there.
  virtual void remove(std::uint64_t id) = 0;

 protected:
  ~Registrations() = default;
};

/// Owned by one thread at a time.
class Registration {
 public:
  Registration() = default;
  Registration(std::weak_ptr<Registrations> where, std::uint64_t id)
      : where_(std::move(where)), id_(id) {}
  Registration(Registration&&) noexcept = default;
  Registration& operator=(Registration&& other) noexcept {
    if (this == &other) return *this;
    end();
    where_ = std::move(other.where_);
    id_ = other.id_;
    return *this;
  }
  ~Registration() { end(); }

 private:
  void end() noexcept {
    if (const auto where = std::exchange(where_, {}).lock()) where->remove(id_);
  }

  std::weak_ptr<Registrations> where_;  // expires with the executor
  std::uint64_t id_ = 0;
};

}  // namespace pv2::internal

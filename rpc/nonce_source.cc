// SPDX-License-Identifier: Apache-2.0
//
// Counts forks, so that a child does not go on where its parent does.

#include "pv2/rpc/nonce_source.h"

#include <pthread.h>

#include <atomic>
#include <random>

namespace pv2 {
namespace {

// Relaxed: after a fork() the child has one thread, which has written it itself.
std::atomic<std::uint64_t> forks_of_process{0};

void count_forks() {
  static const int registered = pthread_atfork(
      nullptr, nullptr, [] { forks_of_process.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
}

}  // namespace

NonceSource::NonceSource() {
  count_forks();
  const MutexLock lock(next_mutex_);
  begin_anew();
}

void NonceSource::begin_anew() {
  forks_ = forks_of_process.load(std::memory_order_relaxed);
  std::random_device system;  // getrandom(2), or the processor's generator
  const auto word = [&system] { return (std::uint64_t{system()} << 32) | system(); };
  last_ = {.group = word(), .value = word()};
}

Nonce NonceSource::next() {
  const MutexLock lock(next_mutex_);
  if (forks_ != forks_of_process.load(std::memory_order_relaxed)) begin_anew();
  if (++last_.value == 0) ++last_.value;
  return last_;
}

}  // namespace pv2

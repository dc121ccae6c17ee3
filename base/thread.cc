// SPDX-License-Identifier: Apache-2.0
//
// std::thread throws when the machine can start no more threads; start_thread() catches that and
// returns a Status. It first checks the limit that a test may have set.

#include "pv2/base/thread.h"

#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <string>
#include <system_error>
#include <utility>

namespace pv2 {
namespace {

constexpr std::size_t kNoLimit = SIZE_MAX;
std::atomic<std::size_t> left_for_tests{kNoLimit};

bool take_one() noexcept {
  std::size_t left = left_for_tests.load();
  while (left != kNoLimit && left != 0 && !left_for_tests.compare_exchange_weak(left, left - 1)) {
  }
  return left != 0;
}

Status none_left(std::string_view what, std::string_view why) {
  return Status(StatusCode::kResourceExhausted,
                "no thread can be started for " + std::string(what) + ": " + std::string(why) +
                    "; raise the limit of threads of the process, or ask for fewer");
}

}  // namespace

void limit_new_threads_for_tests(std::optional<std::size_t> left) noexcept {
  left_for_tests.store(left.value_or(kNoLimit));
}

// On Linux a nice value is that of a thread, and 0 stands for the calling one. A thread may always
// raise its own. A value of 10 made submissions 3 % faster than 5, but on a machine that is busy
// with other programs the thread would get a tenth of what each of theirs gets (decision 37).
void let_others_go_first() noexcept {
  constexpr int kNicer = 5;
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kNicer);
}

Result<std::thread> start_thread(std::string_view name, std::string_view what,
                                 std::function<void()> work) {
  if (!take_one()) return none_left(what, "a test allows no more");
  try {
    return std::thread(
        [name = std::string(name.substr(0, kThreadNameBytes)), work = std::move(work)] {
          pthread_setname_np(pthread_self(), name.c_str());
          work();
        });
  } catch (const std::system_error& error) {
    return none_left(what, error.what());
  }
}

}  // namespace pv2

// SPDX-License-Identifier: Apache-2.0
//
// Nothing in here is about crashes: it opens, listens and waits.

#include "serve.h"

#include <fmt/format.h>
#include <poll.h>
#include <pv2/rpc/tcp_transport.h>
#include <pv2/store/leveldb_procedure_store.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

namespace counter {
namespace {

constexpr pv2::Duration kTellPeriod = std::chrono::milliseconds(10);

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

int fail(const pv2::Status& why) {
  std::fprintf(stderr, "counter_service: %s\n", why.to_string().c_str());
  return 1;
}

/// Says the counts whenever they have changed. Lives on the loop's thread.
class Teller : public std::enable_shared_from_this<Teller> {
 public:
  Teller(pv2::Transport& loop, CounterService& service) : loop_(loop), service_(service) {}
  void tell() {
    const ServiceCounts counts = service_.counts();
    if (counts.calls != told_) say(fmt::format("counts {} {}", counts.calls, counts.runs));
    told_ = counts.calls;
    const auto due = pv2::later(loop_.clock().steady_now(), kTellPeriod);
    timer_ = loop_.call_at(due, [self = shared_from_this()] { self->tell(); });
  }
  void end() { loop_.cancel(timer_); }

 private:
  pv2::Transport& loop_;
  CounterService& service_;
  std::uint64_t told_ = 0;
  pv2::TimerId timer_;
};

void wait_for_end_of_input() {
  char block[256];
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (true) {
    static_cast<void>(::poll(&input, 1, -1));  // the input may be one that does not block
    const ssize_t got = ::read(STDIN_FILENO, block, sizeof block);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return;
  }
}

}  // namespace

int serve(const ServeOptions& options) {
  // When the campaign's own process is killed, this one ends too.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);

  std::error_code error;
  std::filesystem::create_directories(options.store, error);  // opening the stores says why not
  auto transport = pv2::tcp_transport();
  if (!transport.ok()) return fail(transport.status());
  auto service = CounterService::open({
      .transport = *transport,
      .listen = options.listen,
      .store = pv2::leveldb(options.store + "/rows"),
      .engine_store = pv2::leveldb(options.store + "/engine"),
      .dedup = options.dedup,
      .on_failure =
          [](const pv2::Status& why) {
            fail(why);
            std::_Exit(1);  // what is in memory is not what is on the disk
          },
  });
  if (!service.ok()) return fail(service.status());

  say("listening " + (*service)->address());
  const auto teller = std::make_shared<Teller>(**transport, **service);
  pv2::run_on_loop(**transport, [&] { teller->tell(); });
  wait_for_end_of_input();
  pv2::run_on_loop(**transport, [&] { teller->end(); });
  return 0;
}

}  // namespace counter

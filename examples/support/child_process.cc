// SPDX-License-Identifier: Apache-2.0
//
// Starts this program again, with pipes to its stdin and stdout.

#include "child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace example {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  int to_child[2], from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) {
    std::perror("cannot make a pipe to a child process");
    std::exit(1);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  std::string name = program_invocation_short_name;
  std::vector<char*> argv{name.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int error = ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(to_child[0]);
  ::close(from_child[1]);
  if (error != 0) {
    std::fprintf(stderr, "%s: cannot start itself again: %s\n", program_invocation_short_name,
                 std::strerror(error));
    std::exit(1);
  }
  input_ = to_child[1];
  output_ = from_child[0];
}

ChildProcess::~ChildProcess() {
  kill();
  if (input_ >= 0) ::close(input_);
  ::close(output_);
}

void ChildProcess::tell(const std::string& line) {
  const std::string bytes = line + '\n';
  // A pipe takes a short line whole, or has no reader any more (SIGPIPE is ignored).
  [[maybe_unused]] const ssize_t written = ::write(input_, bytes.data(), bytes.size());
}

std::optional<std::string> ChildProcess::hear(std::chrono::microseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    if (const std::size_t end = heard_.find('\n'); end != std::string::npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    const timespec timeout{static_cast<time_t>(left.count() / 1'000'000'000),
                           static_cast<long>(left.count() % 1'000'000'000)};
    pollfd readable{output_, POLLIN, 0};
    if (::ppoll(&readable, 1, &timeout, nullptr) <= 0) continue;
    char block[4096];
    const ssize_t got = ::read(output_, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      ended_ = true;
      return std::nullopt;
    }
    heard_.append(block, static_cast<std::size_t>(got));
  }
}

void ChildProcess::kill() {
  if (gone_) return;
  ::kill(pid_, SIGKILL);
  reap();
}

void ChildProcess::finish() {
  if (gone_) return;
  ::close(input_);
  input_ = -1;
  reap();
}

void ChildProcess::reap() {
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  gone_ = true;
}

}  // namespace example

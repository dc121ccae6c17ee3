// SPDX-License-Identifier: Apache-2.0
//
// Starts this program again, with pipes to its stdin and stdout.

#include "pv2/cluster/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pv2/base/standard_files.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "wire/process_life.h"

extern char** environ;

namespace pv2::cluster {

namespace {

/// A pipe. Its ends are not inherited by programs that this one starts.
struct Pipe {
  int read_end = -1;
  int write_end = -1;

  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  void close() const {
    if (read_end >= 0) ::close(read_end);
    if (write_end >= 0) ::close(write_end);
  }
};

Status cannot_start(int error) {
  return {StatusCode::kIoError, std::string("cannot start ") + program_invocation_short_name +
                                    " again: " + std::strerror(error)};
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::vector<std::string>& arguments,
                                                          const std::string& messages) {
  // An end of a pipe must not get the number of a file that both programs print into.
  reserve_standard_files();
  Pipe to_child;
  Pipe from_child;
  if (!to_child.open() || !from_child.open()) {
    const Status why = cannot_start(errno);
    to_child.close();
    return why;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child.read_end, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child.write_end, STDOUT_FILENO);
  if (!messages.empty()) {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::string name = program_invocation_short_name;
  std::vector<char*> argv{name.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  // The child finds out by it whether this process lives when it looks (die_with_parent()).
  std::string parent = std::string(kParentVariable) + "=" + std::to_string(::getpid());
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(std::string(kParentVariable) + "=")) {
      environment.push_back(*variable);
    }
  }
  environment.push_back(parent.data());
  environment.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    to_child.close();
    from_child.close();
    return cannot_start(error);
  }
  ::close(to_child.read_end);
  ::close(from_child.write_end);
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(pid, to_child.write_end, from_child.read_end));
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

void ChildProcess::pause() {
  if (!gone_) ::kill(pid_, SIGSTOP);
}

void ChildProcess::resume() {
  if (!gone_) ::kill(pid_, SIGCONT);
}

bool ChildProcess::is_gone() {
  if (gone_) return true;
  const pid_t ended = ::waitpid(pid_, nullptr, WNOHANG);
  // In a program that ignores SIGCHLD nobody can wait for a child that has ended.
  gone_ = ended == pid_ || (ended < 0 && errno == ECHILD);
  return gone_;
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

}  // namespace pv2::cluster

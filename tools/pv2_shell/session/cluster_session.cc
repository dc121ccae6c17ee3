// SPDX-License-Identifier: Apache-2.0
//
// The processes write their messages into a file of the cluster's directory: between the lines of a
// prompt nobody could read them.

#include "session/cluster_session.h"

#include <pv2/rpc/tcp_transport.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "session/known_servers.h"
#include "session/shell.h"

namespace pv2::shell {
namespace {

namespace fs = std::filesystem;

Result<std::string> make_directory(const std::string& root) {
  std::error_code error;
  if (root.empty()) {
    std::string name = (fs::temp_directory_path(error) / "pv2-shell.XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) return name;
    return Status(StatusCode::kIoError, "cannot make a directory like " + name);
  }
  fs::create_directories(root, error);
  if (error) {
    return Status(StatusCode::kInvalidArgument,
                  "cannot make the directory " + root + ": " + error.message());
  }
  return fs::absolute(root).string();
}

// Adds the last message of the processes, whose file is removed with its directory.
Status with_last_message(const Status& failure, const std::string& messages) {
  std::ifstream file(messages);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  if (last.empty()) return failure;
  return {failure.code(), std::string(failure.message()) + "; the last one is: " + last};
}

}  // namespace

Result<std::unique_ptr<ClusterSession>> ClusterSession::open(const SessionOptions& options) {
  const bool joins = !options.connect.empty();
  std::string root = joins ? fs::absolute(options.connect).string() : std::string();
  if (!joins) {
    auto made = make_directory(options.root);
    if (!made.ok()) return made.status();
    root = *std::move(made);
  }
  std::unique_ptr<ClusterSession> session(
      new ClusterSession(std::move(root), !joins && options.root.empty()));
  Status ready = joins ? Status() : session->start(options);
  if (ready.ok()) ready = session->connect();
  if (ready.ok()) return session;
  if (!session->temporary_) return ready;
  return with_last_message(ready, session->messages());
}

Status ClusterSession::start(const SessionOptions& options) {
  processes_ = std::make_unique<cluster::ClusterProcesses>(
      cluster::ClusterProcessesOptions{.root = root_, .messages = messages()});
  return processes_->start(options.servers);
}

Status ClusterSession::connect() {
  auto transport = tcp_transport();
  if (!transport.ok()) return transport.status();
  transport_ = *std::move(transport);
  cluster::ClusterClientOptions options{.find_master = cluster::master_of_root(root_),
                                        .transport = transport_};
  // The first master of a directory makes the catalogue; only then there is a cluster. This client
  // looks for it as long as a client does.
  auto first = cluster::ClusterClient::open(options);
  if (!first.ok()) return first.status();
  if (Status none = (*first)->tables().status(); !none.ok()) return none;
  // A statement has a time of its own: it cancels its calls of the executor when that is over, and
  // gives it to all others.
  options.timeout = Shell::kTimeMax;
  auto client = cluster::ClusterClient::open(std::move(options));
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  // If the master does not know all of them in time, the session is there nevertheless.
  if (processes_) wait_until_known(*client_, processes_->servers());
  return {};
}

ClusterSession::~ClusterSession() {
  client_.reset();
  processes_.reset();
  std::error_code ignored;
  if (temporary_) fs::remove_all(root_, ignored);
}

}  // namespace pv2::shell

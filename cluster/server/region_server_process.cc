// SPDX-License-Identifier: Apache-2.0
//
// A process has one server, one thread for the network, one for each queue, several for operations,
// and one for each peer, besides that of its client.

#include <pv2/rpc/tcp_transport.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <string_view>
#include <utility>

#include "server/region_server.h"
#include "wire/process_life.h"

namespace pv2::cluster {
namespace {

// Openings wait for syncs most of the time, and syncs of several threads share the disk's.
constexpr std::size_t kOperationThreads = 4;

int cannot_start(const Status& why) {
  std::fprintf(stderr, "region server: %s\n", why.to_string().c_str());
  return 1;
}

Result<std::unique_ptr<WorkQueue>> make_peer_queue(const std::string& peer) {
  auto started = ThreadWorkQueue::start("looks at peer " + peer);
  if (!started.ok()) return started.status();
  return Result<std::unique_ptr<WorkQueue>>(*std::move(started));
}

/// The threads of a server. They live until the process ends.
struct Threads {
  std::unique_ptr<ThreadWorkQueue> log;
  std::unique_ptr<ThreadWorkQueue> calls;
  std::unique_ptr<ThreadWorkQueue> operations;
  std::unique_ptr<ThreadWorkQueue> regions;
  std::unique_ptr<ThreadWorkQueue> replication;
  std::unique_ptr<ThreadWorkQueue> peer_ends;
  std::unique_ptr<ThreadWorkQueue> looks;
  std::unique_ptr<ThreadWorkQueue> meta_log;
  std::unique_ptr<ThreadWorkQueue> meta_calls;
  std::unique_ptr<ThreadWorkQueue> meta_regions;

  Status start() {
    struct Kind {
      std::unique_ptr<ThreadWorkQueue>* queue;
      std::string_view name;
      std::size_t threads = 1;
    };
    for (const Kind& kind :
         {Kind{&log, "log"}, Kind{&calls, "calls"},
          Kind{&operations, "operations", kOperationThreads}, Kind{&regions, "regions"},
          Kind{&replication, "replication"}, Kind{&peer_ends, "ends of peers"},
          Kind{&looks, "looks for the master"}, Kind{&meta_log, "meta log"},
          Kind{&meta_calls, "meta calls"}, Kind{&meta_regions, "meta regions"}}) {
      auto started = ThreadWorkQueue::start(kind.name, kind.threads);
      if (!started.ok()) return started.status();
      *kind.queue = *std::move(started);
    }
    return {};
  }
};

}  // namespace

int run_region_server(const RegionServerOptions& options, MakeReplicationHost make_replication) {
  die_with_parent();
  EndRequest end_request;
  auto transport = tcp_transport({.log = options.log ? options.log : default_log_sink()});
  if (!transport.ok()) return cannot_start(transport.status());
  const ClusterLayout layout(options.root);
  const FileTree files = FileTree::real(options.host + "-" + std::to_string(::getpid()),
                                        TreeWitness{layout.root(), layout.cluster_id()});
  Threads threads;
  if (Status bad = threads.start(); !bad.ok()) return cannot_start(bad);

  auto server = RegionServer::start(
      options, {.transport = *transport,
                .clock = std::make_shared<SystemClock>(),
                .files = files,
                .queues = {*threads.log, *threads.calls, *threads.operations, *threads.regions,
                           *threads.meta_log, *threads.meta_calls, *threads.meta_regions},
                .on_end =
                    [](const Status& why) {
                      std::fprintf(stderr, "region server ends: %s\n", why.to_string().c_str());
                      std::_Exit(kFatalExit);  // no other thread may acknowledge anything
                    },
                .make_replication = std::move(make_replication),
                .replication_work = threads.replication.get(),
                .make_peer_queue = make_peer_queue,
                .peer_ends = threads.peer_ends.get(),
                .looks = threads.looks.get()});
  if (!server.ok()) return cannot_start(server.status());
  std::printf("ready %s %s\n", to_string((*server)->name()).c_str(), (*server)->address().c_str());
  std::fflush(stdout);
  end_request.wait();
  std::promise<void> stopped;
  (*server)->stop([&stopped] { stopped.set_value(); });
  stopped.get_future().wait();
  std::_Exit(0);  // nobody has to join the threads
}

}  // namespace pv2::cluster

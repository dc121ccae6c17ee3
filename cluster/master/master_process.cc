// SPDX-License-Identifier: Apache-2.0
//
// A process has one master, one thread for the network, one for each queue of work on files, some
// for looks at peers, and the executor's.

#include <pv2/rpc/tcp_transport.h>
#include <pv2/store/leveldb_procedure_store.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "master/master.h"
#include "master/master_lock.h"
#include "pv2/cluster/region_server.h"
#include "wire/process_life.h"

namespace pv2::cluster {
namespace {

// So many peers may be on file systems that hang before changes of other peers wait for them.
constexpr std::size_t kPeerLookThreads = 4;

int cannot_start(const Status& why) {
  std::fprintf(stderr, "master: %s\n", why.to_string().c_str());
  return 1;
}

}  // namespace

int run_master(const MasterOptions& options) {
  die_with_parent();
  const ClusterLayout layout(options.root);
  const FileTree files = FileTree::real("master-" + std::to_string(::getpid()),
                                        TreeWitness{layout.root(), layout.cluster_id()});
  auto lock = MasterLock::take(files, layout);
  if (!lock.ok()) return cannot_start(lock.status());

  auto transport = tcp_transport({.log = options.log ? options.log : default_log_sink()});
  if (!transport.ok()) return cannot_start(transport.status());
  auto table_work = ThreadWorkQueue::start("tables");
  if (!table_work.ok()) return cannot_start(table_work.status());
  auto recovery_work = ThreadWorkQueue::start("recovery");
  if (!recovery_work.ok()) return cannot_start(recovery_work.status());
  auto link_work = ThreadWorkQueue::start("connections");
  if (!link_work.ok()) return cannot_start(link_work.status());
  auto peer_looks = ThreadWorkQueue::start("looks at peers", kPeerLookThreads);
  if (!peer_looks.ok()) return cannot_start(peer_looks.status());

  const std::string procedures = layout.master() + "/procedures";
  auto master = Master::start(
      options, {.transport = *transport,
                .clock = std::make_shared<SystemClock>(),
                .files = files,
                .table_work = **table_work,
                .recovery_work = **recovery_work,
                .link_work = **link_work,
                .peer_looks = **peer_looks,
                .store = options.make_store ? options.make_store(procedures) : leveldb(procedures),
                .on_end = [](const Status& why) {
                  std::fprintf(stderr, "master ends: %s\n", why.to_string().c_str());
                  std::_Exit(kFatalExit);  // a successor may be at work
                }});
  if (!master.ok()) return cannot_start(master.status());
  std::printf("ready %s\n", (*master)->address().c_str());
  std::fflush(stdout);
  wait_for_end_of_input();
  // Like a crash: whatever was acknowledged is durable.
  std::_Exit(0);
}

}  // namespace pv2::cluster

// SPDX-License-Identifier: Apache-2.0
//
// The names of the methods that the programs of a cluster call at each other, and what each takes
// and returns. A method that changes something is called with a nonce, unless the table says that
// twice is the same as once.
//
//     method               at      body               answer
//     region.write         server  WriteRequest       WriteResult
//     region.scan          server  ScanRequest        ScanPage
//     region.flush         server  RegionRequest      (empty)            twice is once
//     region.compact       server  RegionRequest      (empty)            twice is once
//     region.split_point   server  RegionRequest      SplitPoint
//     server.dispatch      server  DispatchRequest    DispatchReply      once by effect key
//     server.status        server  StatusRequest      ServerStatus
//     master.heartbeat     master  Heartbeat          HeartbeatReply     twice is once
//     master.report        master  ReportRequest      ReportReply        twice is once
//     master.servers       master  (empty)            ServerList
//     master.descriptors   master  DescriptorRequest  DescriptorList
//     pv2.*                master  those of ExecutorService (remote/)
//
// A server refuses calls for a region that it does not have, or is closing, with kNotFound: the
// caller looks for the region again. While it is opening the region it refuses them with
// kUnavailable: the caller asks it again.

#pragma once

#include <string_view>

namespace pv2::cluster {

inline constexpr std::string_view kRegionWrite = "region.write";
inline constexpr std::string_view kRegionScan = "region.scan";
inline constexpr std::string_view kRegionFlush = "region.flush";
inline constexpr std::string_view kRegionCompact = "region.compact";
inline constexpr std::string_view kRegionSplitPoint = "region.split_point";
inline constexpr std::string_view kServerDispatch = "server.dispatch";
inline constexpr std::string_view kServerStatus = "server.status";
inline constexpr std::string_view kMasterHeartbeat = "master.heartbeat";
inline constexpr std::string_view kMasterReport = "master.report";
inline constexpr std::string_view kMasterServers = "master.servers";
inline constexpr std::string_view kMasterDescriptors = "master.descriptors";

}  // namespace pv2::cluster

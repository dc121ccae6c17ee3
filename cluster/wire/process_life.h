// SPDX-License-Identifier: Apache-2.0
//
// How long a process of a cluster lives: as long as whoever started it holds its standard input
// open, or until it is asked to end by a signal.

#pragma once

namespace pv2::cluster {

/// From now on this process is killed when its parent ends: the whole process, and not only the
/// thread that has started this one. At once if the parent has ended already, which ChildProcess
/// lets it know by kParentVariable. Starts a thread.
void die_with_parent();
/// In the environment of a process: the id of the process that has started it.
inline constexpr const char* kParentVariable = "PV2_PARENT_PID";
/// Reads standard input until it ends.
void wait_for_end_of_input();

/// Notices SIGTERM and SIGINT instead of dying of them. To be made while the process has one
/// thread: the threads that it starts later leave the signals to this object.
class EndRequest {
 public:
  EndRequest();
  ~EndRequest();
  EndRequest(const EndRequest&) = delete;
  EndRequest& operator=(const EndRequest&) = delete;

  /// Returns at the first of these signals or at the end of standard input. From then on another
  /// signal kills the process, as it would without this object.
  void wait();

 private:
  int signals_ = -1;
};

}  // namespace pv2::cluster

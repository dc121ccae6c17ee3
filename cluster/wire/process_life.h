// SPDX-License-Identifier: Apache-2.0
//
// How long a process of a cluster lives: as long as whoever started it holds its standard input
// open, or until it is asked to end by a signal.

#pragma once

namespace pv2::cluster {

/// From now on the system kills this process when its parent ends.
void die_with_parent();
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

// SPDX-License-Identifier: Apache-2.0
//
// Standard files: descriptors 0, 1 and 2 are open, whatever the program was started with. A shell
// may start it with one of them closed (`program <&-`). The next file or socket that is opened then
// gets that number, and what is printed goes into it.

#pragma once

namespace pv2 {

/// Opens /dev/null on each of the standard descriptors that is closed. Reading from such an input
/// finds its end. Writing to such an output fails (EBADF), as it would if it were closed; what goes
/// to such a stderr is lost. The first call of a main(), before anything else is opened. If
/// /dev/null cannot be opened, the descriptors stay as they are.
///
/// For programs with one thread, because the test and the opening are two steps.
void reserve_standard_files() noexcept;

}  // namespace pv2

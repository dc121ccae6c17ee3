// SPDX-License-Identifier: Apache-2.0
//
// A benchmark that starts itself again: memory, and the loading of a store, are measured in a
// process that has done nothing else. The child reports its figures through its standard output,
// one "name value" per line.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pv2::bench {

/// What a child reported. A value.
using ChildReport = std::map<std::string, double, std::less<>>;

/// Runs this program again with `arguments` and waits for it; ends this one too when the child
/// fails.
ChildReport run_child(const std::vector<std::string>& arguments);

/// In the child: one line of the report.
void report_to_parent(std::string_view name, double value);

/// In the child: ends like a crash, but with exit code 0. Nothing is closed, no destructor runs.
[[noreturn]] void end_abruptly();

}  // namespace pv2::bench

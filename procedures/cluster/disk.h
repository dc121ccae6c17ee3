// SPDX-License-Identifier: Apache-2.0
//
// The few file operations of the small cluster, each with a Status that names the file and the act.
// What is durable when is said at each; none of them retries.

#pragma once

#include <pv2/base/status.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace pv2::internal {

/// kIoError with the operating system's words: "cannot <act> <path>: <errno>".
Status io_error(std::string_view act, const std::filesystem::path& path);

/// Makes a directory's entries durable.
Status sync_directory(const std::filesystem::path& path);

/// Creates the directory (its parent exists), durably; it may exist already.
Status make_directory(const std::filesystem::path& path);

/// Writes a file whole or not at all: a temporary file, synced, then renamed, then the directory
/// synced.
Status write_file(const std::filesystem::path& path, std::string_view bytes);

/// The bytes of a file; kNotFound when there is none.
Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace pv2::internal

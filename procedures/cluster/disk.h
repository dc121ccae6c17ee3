// SPDX-License-Identifier: Apache-2.0
//
// The few file operations of the small cluster, each with a Status that names the file and the act.
// Each says what is durable when it returns; none retries.

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

/// Creates the directory, durably; it may exist already. Its parent must exist.
Status make_directory(const std::filesystem::path& path);

/// Writes a file completely or not at all: writes a temporary file, syncs it, renames it, then
/// syncs the directory.
Status write_file(const std::filesystem::path& path, std::string_view bytes);

/// The bytes of a file; kNotFound when there is none.
Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace pv2::internal

// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the documentation know about a page: the snippets it shows and where each
// claims to come from, the links it follows and the files it names. It understands just as much
// Markdown as these pages use, and no C++. It reads what it is given and touches no file.
//
// A snippet is a block fenced as ```cpp below a comment that says where its text lives:
//
//     <!-- from tests/engine/executor/life_of_a_procedure_test.cc region submit -->
//     <!-- from examples/hello_job.cc -->                    the whole file below its first comment
//     <!-- not compiled: why -->
//
// A region of a source file stands between two comment lines, `[region submit]` and `[/region]`.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pv2::docs {

/// One fenced block of C++.
struct Snippet {
  std::size_t line = 0;  ///< Of the opening fence, from 1.
  bool compiled = true;  ///< False: the page says why it is no part of a program.
  std::string path{};    ///< Empty: the page does not say where it comes from.
  std::string region{};  ///< Empty: the whole file.
  std::string text{};
};

/// A place in a page that points at a file: relative to the page for links, to the root for names.
struct Pointer {
  std::size_t line = 0;
  std::string target;
};

[[nodiscard]] std::vector<Snippet> find_snippets(std::string_view page);

/// The targets of links into the tree, without their anchors. Links to the web are left out.
[[nodiscard]] std::vector<Pointer> find_links(std::string_view page);

/// Files named in `back quotes`: a path with a folder and the ending of a source, script or page.
[[nodiscard]] std::vector<Pointer> find_named_files(std::string_view page);

/// The text of a region, without the indentation that all its lines share; nullopt when there is
/// none, or more than one of that name.
[[nodiscard]] std::optional<std::string> find_region(std::string_view source,
                                                     std::string_view name);

/// A source without its first comment and the empty lines around it.
[[nodiscard]] std::string without_first_comment(std::string_view source);

}  // namespace pv2::docs

// SPDX-License-Identifier: Apache-2.0
//
// Catch2 under one name, whichever of its two major versions is installed: 3.x when its headers are
// there, else 2.13. Tests include this and never a Catch2 header. It is no place for helpers of our
// own, and it offers only what both versions have: TEST_CASE, SECTION, GENERATE, REQUIRE and
// related macros, TEMPLATE_TEST_CASE, fixtures, and `ContainsSubstring` (called Contains in 2.13).
// No custom reporters or listeners: their interfaces differ. Does not compile when neither version
// is there.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
#else
#include <catch2/catch.hpp>

/// Matches a string that contains `part`; the name is that of Catch2 3.
inline auto ContainsSubstring(const std::string& part) { return Catch::Matchers::Contains(part); }

using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
#endif

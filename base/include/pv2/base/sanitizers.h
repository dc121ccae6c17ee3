// SPDX-License-Identifier: Apache-2.0
//
// Which sanitizers this file is compiled with. Memory that is kept to be used again hides from them
// that somebody still uses what was in it.

#pragma once

namespace pv2 {

#if defined(__has_feature)
#define PV2_HAS_FEATURE(feature) __has_feature(feature)
#else
#define PV2_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || PV2_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || PV2_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#undef PV2_HAS_FEATURE

}  // namespace pv2

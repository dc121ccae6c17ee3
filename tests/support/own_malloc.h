// SPDX-License-Identifier: Apache-2.0
//
// PV2_HAS_OWN_MALLOC: this program is built with a sanitizer that brings malloc, operator new and
// operator delete of its own. So bytes that the C library counts say nothing, and a test must not
// bring operators of its own.

#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PV2_HAS_OWN_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PV2_HAS_OWN_MALLOC 1
#endif
#endif
#ifndef PV2_HAS_OWN_MALLOC
#define PV2_HAS_OWN_MALLOC 0
#endif

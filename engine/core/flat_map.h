// SPDX-License-Identifier: Apache-2.0
//
// FlatMap: the hash table of the engine's state.

#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>

namespace pv2 {

template <class Key, class Value>
using FlatMap = boost::unordered_flat_map<Key, Value, std::hash<Key>>;

}  // namespace pv2

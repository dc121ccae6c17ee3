// SPDX-License-Identifier: Apache-2.0
//
// The names under which the transport uses Asio. All objects have the executor of one io_context in
// their type: a type-erased executor would cost an indirect call for each read and write.

#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>

namespace pv2 {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

using LoopExecutor = asio::io_context::executor_type;
using LoopSocket = asio::basic_stream_socket<tcp, LoopExecutor>;
using LoopAcceptor = asio::basic_socket_acceptor<tcp, LoopExecutor>;
using LoopResolver = asio::ip::basic_resolver<tcp, LoopExecutor>;
using LoopTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, LoopExecutor>;

/// A coroutine on the loop.
template <class T>
using Story = asio::awaitable<T, LoopExecutor>;
/// `co_await operation(..., kAwait)` gives the error as a value, and does not throw it.
inline constexpr auto kAwait = asio::as_tuple(asio::use_awaitable_t<LoopExecutor>());

}  // namespace pv2

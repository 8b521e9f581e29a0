//! What a server knows of the connection that a request came on, to report it to the client (CMSD).

use std::os::fd::AsFd;

use hyper::http::request::Parts;
use moq_noq::{Connection, PathId};
use suiro_serving::Socket;
use suiro_tcp::socket_info;
use suiro_units::to_i64;

use crate::cmsd::Cmsd;

/// What the kernel or QUIC knows; nothing of a TCP connection whose requests do not bring their socket.
pub(crate) fn connection(request: &Parts) -> Cmsd {
    let socket = request.extensions.get::<Socket>();
    if let Some(info) = socket.and_then(|socket| socket_info(socket.as_fd()).ok()) {
        let rate = info.delivery_rate.map(|bytes| to_i64(bytes.saturating_mul(8)));
        let rtt = i64::from(info.rtt_us.div_ceil(1000));
        return Cmsd { throughput_bps: rate, rtt_ms: Some(rtt), ..Cmsd::default() };
    }
    let quic = request.extensions.get::<Connection>();
    let path = quic.and_then(|connection| connection.path_stats(PathId::ZERO));
    let rtt = path
        .map(|path| to_i64(u64::try_from(path.rtt.as_micros()).unwrap_or(u64::MAX).div_ceil(1000)));
    Cmsd { rtt_ms: rtt, ..Cmsd::default() }
}

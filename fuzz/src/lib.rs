//! Fuzz targets: every parser of what comes from outside, as a function of bytes that must return.
//!
//! `make fuzz` lets libfuzzer drive each of them; `tests/seeds.rs` runs each on its seeds and on damaged
//! copies of them, so that a stable compiler keeps them working too.

/// A target: its name, which is that of its program and of its folder in `seeds/`, and itself.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[("sock_diag", sock_diag)];

/// The kernel's answers about sockets.
pub fn sock_diag(data: &[u8]) {
    for message in suiro_tcp::diag::messages(data) {
        let Ok(message) = message else { return };
        if let suiro_tcp::diag::Body::Socket(sample) = message.body {
            let _ = (sample.id.local(), sample.id.remote(), sample.id.cookie());
            let _ = sample.info.map(|info| (info.in_flight(), info.congestion_state()));
        }
    }
}

//! Ports for the ends of a test.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU16, Ordering};

/// A free port, another one each time. It is below those that the kernel chooses itself (from 32768 on): nothing else gets it
/// before the test uses it.
pub async fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time begin elsewhere.
    let first = (std::process::id() % 400) as u16 * 50;
    for _ in 0..1000 {
        let port = 10_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
        if suiro_webrtc::net::listen(IpAddr::V4(Ipv4Addr::LOCALHOST), port).await.is_ok() {
            return port;
        }
    }
    panic!("no free ports");
}

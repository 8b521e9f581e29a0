//! A relay and its clients on loopback.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use moq_noq::{ClientConfig, Endpoint};
use suiro_clock::Clock;
use suiro_endpoint::net::udp_towards;
use suiro_media::Ffmpeg;
use suiro_media::live::FootageSpec;
use suiro_media::spec::Source;
use suiro_moq::PublisherJob;
use suiro_moq::ViewerJob;
use suiro_moq::net::{self, Behaviour};
use suiro_moq::relay::{self as relaying, RelayJob};
use suiro_moq::{Common, Summary, tls};
use suiro_scenario::{MoqStreams, QuicCongestion};
use suiro_units::{BitRate, Bytes, Duration, Time};

pub const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub const FPS: u32 = 12;

pub fn has_ffmpeg() -> bool {
    Ffmpeg::locate().inspect_err(suiro_units::skipped).is_ok()
}

pub fn behaviour(congestion: QuicCongestion) -> Behaviour {
    Behaviour {
        congestion,
        delta: 0.5,
        streams: 1000,
        send_window: 64_000_000,
        receive_window: 64_000_000,
        fair: false,
        offload: false,
        ecn: true,
        qlog: None,
    }
}

/// A client of the relay whose certificate is in `dir`, and the configuration of its connections.
pub fn quic(
    dir: &Path,
    protocols: Vec<Vec<u8>>,
    behaviour: &Behaviour,
) -> (Endpoint, ClientConfig) {
    let tls = tls::client(&tls::file(dir, "relay"), protocols).unwrap();
    net::client(udp_towards(LOCALHOST).unwrap(), tls, behaviour).unwrap()
}

pub fn relay(dir: &Path, port: u16, token: Option<&str>) -> RelayJob {
    RelayJob {
        name: "relay".to_owned(),
        hosts: vec!["127.0.0.1".to_owned()],
        address: Some(LOCALHOST),
        port,
        token: token.map(str::to_owned),
        deadline: None,
        cache: Bytes::new(10_000_000),
        sessions: 10,
        behaviour: behaviour(QuicCongestion::Cubic),
        known_clients: true,
        dir: dir.to_owned(),
    }
}

pub fn client(name: &str, dir: &Path, port: u16, token: Option<&str>, draft: u8) -> Common {
    Common {
        name: name.to_owned(),
        relay: ("relay".to_owned(), "127.0.0.1".to_owned(), port),
        broadcast: "yard/camera".to_owned(),
        token: token.map(str::to_owned),
        draft,
        behaviour: behaviour(QuicCongestion::Bbr),
        dir: dir.to_owned(),
        start: Time::ZERO,
    }
}

/// A viewer that plays the highest quality.
pub fn viewer(common: Common) -> ViewerJob {
    let (viewer, switches) = (Default::default(), false);
    ViewerJob { common, viewer, lip_sync: true, switches, save: true }
}

pub fn publisher(common: Common, streams: MoqStreams) -> PublisherJob {
    let length = Duration::from_secs(1);
    let source = FootageSpec::new(Source::Synthetic);
    let camera = FootageSpec { width: 320, height: 240, fps: FPS, length, ..source };
    PublisherJob {
        common,
        camera,
        rates: vec![BitRate::from_kbps(400)],
        streams,
        key_every: Duration::from_millis(500),
        follows: true,
        audio: None,
        data: None,
        deadline: None,
        pauses: Vec::new(),
    }
}

/// Runs a relay until `others`, which begin when it can be connected to, have ended. Returns what the relay did.
pub async fn beside<F: Future<Output = ()>>(
    job: &RelayJob,
    clock: Clock,
    others: impl FnOnce() -> F,
) -> Summary {
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (done, stop) = tokio::sync::oneshot::channel::<()>();
    let serves =
        relaying::run(job, clock, move || ready.send(()).unwrap(), async { drop(stop.await) });
    let others = async {
        is_ready.await.unwrap();
        others().await;
        drop(done);
    };
    let (served, ()) = tokio::join!(serves, others);
    served.unwrap()
}

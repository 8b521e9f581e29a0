//! The links that have names.

use suiro_units::{BitRate, Duration, Ratio};

use super::Preset;
use crate::medium::quantity::{Decibels, Metres};
use crate::medium::wifi::{WifiChangeSpec, WifiSpec};
use crate::spec::{LimitSpec, LinkSpec, LossSpec, PathSpec, QueueSpec, ServiceSpec};

impl Preset {
    /// The link as a user could have written it.
    pub fn spec(self) -> LinkSpec {
        use ServiceSpec::{Poisson, Steady};
        match self {
            Self::Nepal => measured(570, Poisson, 28, 0.0477, 14),
            Self::MexicoCellular => measured(2_640, Poisson, 88, 0.0, 130),
            Self::BrazilColombia => measured(3_040, Poisson, 130, 0.0, 426),
            Self::India => measured(100_420, Steady, 27, 0.0, 173),
            Self::KoreaChina => measured(77_720, Steady, 51, 0.0006, 94),
            Self::CaliforniaMexico => measured(114_680, Steady, 45, 0.0, 450),
            Self::Dsl => access([16_000, 1_000], Steady, 15, 200),
            Self::Cable => access([100_000, 10_000], Steady, 10, 100),
            Self::Fibre => access([1_000_000, 1_000_000], Steady, 3, 50),
            Self::ThreeG => access([1_600, 768], Steady, 150, 500),
            Self::FourG => access([20_000, 8_000], Poisson, 35, 300),
            Self::SlowFourG => access([1_600, 750], Steady, 75, 200),
            Self::Satellite => access([25_000, 3_000], Steady, 280, 500),
            Self::WifiClear => wifi_clear(),
            Self::WifiObstacle => wifi_obstacle(),
        }
    }
}

/// Packets in the queue of a measured path's way back, where Pantheon sets no bound.
const DEEP: u32 = 10_000;

fn measured(kbps: u64, service: ServiceSpec, ms: u64, loss: f64, packets: u32) -> LinkSpec {
    let loss = Ratio::new(loss).expect("a preset's loss is a ratio");
    let limit =
        |packets| QueueSpec { limit: Some(LimitSpec::Packets(packets)), ..QueueSpec::default() };
    LinkSpec {
        rate: Some(BitRate::from_kbps(kbps)),
        service: Some(service),
        delay: Some(Duration::from_millis(ms)),
        down: Some(PathSpec {
            loss: Some(LossSpec::Ratio(loss)),
            queue: Some(limit(packets)),
            ..PathSpec::default()
        }),
        up: Some(PathSpec { queue: Some(limit(DEEP)), ..PathSpec::default() }),
        ..LinkSpec::default()
    }
}

fn access(down_up_kbps: [u64; 2], service: ServiceSpec, ms: u64, queue_ms: u64) -> LinkSpec {
    let [down, up] = down_up_kbps
        .map(|kbps| Some(PathSpec { rate: Some(BitRate::from_kbps(kbps)), ..PathSpec::default() }));
    LinkSpec {
        service: Some(service),
        delay: Some(Duration::from_millis(ms)),
        queue: Some(QueueSpec {
            limit: Some(LimitSpec::Time(Duration::from_millis(queue_ms))),
            ..QueueSpec::default()
        }),
        down,
        up,
        ..LinkSpec::default()
    }
}

/// A link over Wi-Fi as in study S0, with this many packets in the access point's queue.
///
/// The study printed windows, round trips and what throughput did, not its radio. Each value below has a meaning of its
/// own, and was chosen so that TCP finds those figures:
///
/// - 30 dB: what antennas that face away, the cases and people take. 25 dB of SNR are left in sight, enough for MCS 6 to 7.
/// - Three frames at once: well below the 8191 octets of A-MPDU that every 802.11n station takes (five frames). With more,
///   packets leave the queue in longer bursts, the first of which have waited little: Vegas finds the path less full than it
///   is, and its window doubles. With one, it stays below its initial window behind the wall.
/// - 1.5 ms in each direction: the server, too, was connected over 802.11n. That hop is a delay here, not a second
///   link.
fn wifi(wifi: WifiSpec, packets: u32) -> LinkSpec {
    LinkSpec {
        wifi: Some(WifiSpec {
            distance: Some(Metres(5.0)),
            attenuation: Some(Decibels(30.0)),
            aggregate: Some(3),
            ..wifi
        }),
        delay: Some(Duration::from_micros(1_500)),
        queue: Some(QueueSpec { limit: Some(LimitSpec::Packets(packets)), ..QueueSpec::default() }),
        ..LinkSpec::default()
    }
}

/// About 20 Mbit/s. The queue is what lets CUBIC have 88 segments in flight and 52 ms.
fn wifi_clear() -> LinkSpec {
    wifi(WifiSpec { busy: Some(ratio(0.38)), ..WifiSpec::default() }, 75)
}

/// About 3 Mbit/s, and 2 in the dips.
///
/// - A wall of 14 dB, brick or thin concrete, leaves 11 dB of SNR: MCS 0 to 2. A third of what arrives came by reflections.
///   Nobody walks between the two, so shadowing is less than in a room.
/// - About 0.1 % of the packets are lost at the standard's own retry limit.
/// - The neighbour takes 64 % of the air, and 76 % when the study saw the round trip rise. Its stations belong to the same
///   access point: 37 places of the queue are left. A dip of the signal instead would lose packets by the dozen.
fn wifi_obstacle() -> LinkSpec {
    let change = |s, busy| WifiChangeSpec {
        at: Duration::from_secs(s),
        attenuation: None,
        busy: Some(ratio(busy)),
    };
    let (usual, dip) = (0.64, 0.76);
    let dips = [(10, 20), (40, 50), (100, 120)];
    let changes = dips.map(|(from, to)| [change(from, dip), change(to, usual)]);
    wifi(
        WifiSpec {
            walls: Some(1),
            wall_loss: Some(Decibels(14.0)),
            shadowing: Some(Decibels(2.0)),
            rice_k: Some(Decibels(3.0)),
            busy: Some(ratio(usual)),
            changes: Some(changes.concat()),
            ..WifiSpec::default()
        },
        37,
    )
}

fn ratio(value: f64) -> Ratio {
    Ratio::new(value).expect("a preset's ratio is a ratio")
}

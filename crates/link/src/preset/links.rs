//! The links that have names.

use suiro_units::{BitRate, Duration, Ratio};

use super::Preset;
use crate::medium::wifi::{Decibels, Metres, WifiChangeSpec, WifiSpec};
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

/// A link over Wi-Fi as in study S0: 5 m, and 1 ms for what lies behind the access point.
///
/// The study printed mean round trips and windows, not its radio. The attenuations below (antennas,
/// bodies, interference) and the queue were chosen once so that TCP finds those means.
fn wifi(wifi: WifiSpec) -> LinkSpec {
    LinkSpec {
        wifi: Some(WifiSpec { distance: Some(Metres(5.0)), ..wifi }),
        delay: Some(Duration::from_millis(1)),
        queue: Some(QueueSpec { limit: Some(LimitSpec::Packets(50)), ..QueueSpec::default() }),
        ..LinkSpec::default()
    }
}

fn wifi_clear() -> LinkSpec {
    wifi(WifiSpec {
        attenuation: Some(Decibels(39.0)),
        busy: Some(ratio(0.25)),
        ..WifiSpec::default()
    })
}

fn wifi_obstacle() -> LinkSpec {
    let (usual, dip) = (Decibels(35.0), Decibels(38.5));
    let change = |s, attenuation| WifiChangeSpec {
        at: Duration::from_secs(s),
        attenuation: Some(attenuation),
        busy: None,
    };
    let dips = [(10, 20), (40, 50), (100, 120)];
    let changes = dips.map(|(from, to)| [change(from, dip), change(to, usual)]);
    wifi(WifiSpec {
        walls: Some(1),
        attenuation: Some(usual),
        busy: Some(ratio(0.5)),
        rice_k: Some(Decibels(0.0)),
        retries: Some(8),
        changes: Some(changes.concat()),
        ..WifiSpec::default()
    })
}

fn ratio(value: f64) -> Ratio {
    Ratio::new(value).expect("a preset's ratio is a ratio")
}

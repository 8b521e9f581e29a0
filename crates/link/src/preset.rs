//! Links by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_units::{BitRate, Duration, Ratio};

use crate::spec::{LimitSpec, LinkSpec, LossSpec, PathSpec, QueueSpec, ServiceSpec};
use crate::wifi::{Decibels, Metres, WifiChangeSpec, WifiSpec};

/// A link by name.
///
/// The first six are measured paths: emulator settings that Yan et al. calibrated against them
/// ("Pantheon: the training ground for Internet congestion-control research", USENIX ATC 2018).
/// As there, loss and the short queue apply to the direction that carries the data, here down; the
/// return path has the same rate and delay, a deep queue and no loss.
///
/// The others are illustrative: round figures for a type of access, not from a single measurement,
/// except where a source is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Pantheon: Nepal to India over Wi-Fi. 0.57 Mbit/s (Poisson), 28 ms, loss 4.77 %, 14 packets.
    Nepal,
    /// Pantheon: Mexico, cellular. 2.64 Mbit/s (Poisson), 88 ms, 130 packets.
    MexicoCellular,
    /// Pantheon: Brazil to Colombia, cellular. 3.04 Mbit/s (Poisson), 130 ms, 426 packets.
    BrazilColombia,
    /// Pantheon: within India, wired. 100.42 Mbit/s, 27 ms, 173 packets.
    India,
    /// Pantheon: Korea to China, wired. 77.72 Mbit/s, 51 ms, loss 0.06 %, 94 packets.
    KoreaChina,
    /// Pantheon: California to Mexico, wired. 114.68 Mbit/s, 45 ms, 450 packets.
    CaliforniaMexico,
    /// Illustrative: 16 Mbit/s down, 1 Mbit/s up, 15 ms, 200 ms of queue.
    Dsl,
    /// Illustrative: 100 Mbit/s down, 10 Mbit/s up, 10 ms, 100 ms of queue.
    Cable,
    /// Illustrative: 1 Gbit/s both ways, 3 ms, 50 ms of queue.
    Fibre,
    /// Illustrative: 1.6 Mbit/s down, 768 kbit/s up, 150 ms, 500 ms of queue.
    #[serde(rename = "3g")]
    ThreeG,
    /// Illustrative: 20 Mbit/s (Poisson) down, 8 Mbit/s (Poisson) up, 35 ms, 300 ms of queue.
    #[serde(rename = "4g")]
    FourG,
    /// The slow mobile link that Lighthouse emulates: 1.6 Mbit/s down, 750 kbit/s up, a round trip
    /// of 150 ms. The queue, 200 ms, is ours.
    #[serde(rename = "slow-4g")]
    SlowFourG,
    /// Illustrative: geostationary. 25 Mbit/s down, 3 Mbit/s up, 280 ms (up and down 36,000 km take
    /// 240 ms), 500 ms of queue.
    Satellite,
    /// 802.11n at 5 m in sight of the access point, with other stations using a quarter of the air
    /// time: about 13 Mbit/s for one TCP, a queue of 50 packets, 1 ms each way behind the access
    /// point. Calibrated to the mean round trips of study S0.
    WifiClear,
    /// The same behind a wall, with fading without a direct path and a busier neighbour: about 3
    /// Mbit/s, and less than 1 Mbit/s at 10 to 20 s, 40 to 50 s and 100 to 120 s. Calibrated to
    /// study S0.
    WifiObstacle,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 15] = [
        Self::Nepal,
        Self::MexicoCellular,
        Self::BrazilColombia,
        Self::India,
        Self::KoreaChina,
        Self::CaliforniaMexico,
        Self::Dsl,
        Self::Cable,
        Self::Fibre,
        Self::ThreeG,
        Self::FourG,
        Self::SlowFourG,
        Self::Satellite,
        Self::WifiClear,
        Self::WifiObstacle,
    ];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nepal => "nepal",
            Self::MexicoCellular => "mexico-cellular",
            Self::BrazilColombia => "brazil-colombia",
            Self::India => "india",
            Self::KoreaChina => "korea-china",
            Self::CaliforniaMexico => "california-mexico",
            Self::Dsl => "dsl",
            Self::Cable => "cable",
            Self::Fibre => "fibre",
            Self::ThreeG => "3g",
            Self::FourG => "4g",
            Self::SlowFourG => "slow-4g",
            Self::Satellite => "satellite",
            Self::WifiClear => "wifi-clear",
            Self::WifiObstacle => "wifi-obstacle",
        }
    }

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

//! The names of links.

mod links;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Illustrative: 1 Gbit/s in both directions, 3 ms, 50 ms of queue.
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
    /// 802.11n at 5 m in sight of the access point, with other stations using 38 % of the air time: about 20 Mbit/s, a
    /// queue of 75 packets, and another 1.5 ms in each direction. Calibrated to the mean windows and round trips of
    /// study S0.
    WifiClear,
    /// The same behind a wall of 14 dB and next to a busier neighbour: about 3 Mbit/s. At 10 to 20 s, 40 to 50 s and
    /// 100 to 120 s, when the neighbour sends more, it is about 2 Mbit/s. About 0.1 % of the packets are lost, and the
    /// queue is 37 packets. Calibrated to study S0.
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
}

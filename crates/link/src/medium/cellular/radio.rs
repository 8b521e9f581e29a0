//! What a distance means for the rate: path loss, interference, power control, the rate of a signal. Pure formulas.
//!
//! Powers are in mW, and those of a resource block if nothing else is said.

use suiro_units::Duration;

use crate::medium::quantity::{Decibels, Metres};

/// Least distance of a user (TR 36.814, table A.2.1.1-1).
pub(crate) const NEAREST: Metres = Metres(35.0);
/// A site and the six around it.
pub(crate) const SITES: usize = 7;
/// The time for which the band is given away (transmission time interval).
pub(crate) const SUBFRAME: Duration = Duration::from_millis(1);
/// Bits that a resource block (180 kHz) carries in a subframe, for 1 bit/s/Hz.
pub(crate) const BLOCK_BITS: f64 = 180.0;

/// The base station's power, of 10 MHz (TR 36.814, table A.2.1.1-1): the blocks of other bands have the same.
const SITE_DBM: f64 = 46.0;
const SITE_BLOCKS: f64 = 50.0;
/// Gain of its antenna, cables included (TR 36.814, table A.2.1.1-2).
const SITE_GAIN_DB: f64 = 14.0;
const USER_DBM: f64 = 23.0;
/// Thermal noise in 180 kHz: −174 dBm/Hz.
const THERMAL_DBM: f64 = -121.4;
const USER_NOISE_DB: f64 = 9.0;
const SITE_NOISE_DB: f64 = 5.0;
/// Open-loop power control (TS 36.213, §5.1.1.1) compensates the whole path loss (α = 1), up to this much power received
/// in a block (TR 36.814, table A.2.2-1).
const TARGET_DBM: f64 = -106.0;
/// Radius of a circle as large as a site's hexagon, by the distance of sites: √(√3 / 2π).
pub(crate) const SITE_RADIUS: f64 = 0.525;

pub(crate) fn mw(dbm: f64) -> f64 {
    10f64.powf(dbm / 10.0)
}

/// Macro cells at 2 GHz (TR 36.814, table A.2.1.1-1; TR 25.814, table A.2.1.1-3).
pub(crate) fn path_loss_db(metres: f64) -> f64 {
    128.1 + 37.6 * (metres.max(NEAREST.0) / 1000.0).log10()
}

/// What antennas and walls leave of a path's loss.
fn coupling_db(metres: f64, penetration: Decibels) -> f64 {
    path_loss_db(metres) + penetration.0 - SITE_GAIN_DB
}

/// Loss from the site and its six neighbours to a user, in decibels. The neighbours are `spacing` metres away; the user
/// is in the direction of the corner between two of them.
pub(crate) fn couplings_db(metres: f64, spacing: f64, penetration: Decibels) -> [f64; SITES] {
    std::array::from_fn(|site| {
        let angle = 60f64 * site as f64 - 30.0;
        let away = if site == 0 { metres } else { apart(metres, spacing, angle) };
        coupling_db(away, penetration)
    })
}

/// How far from one another the ends are of two lines of these lengths with this angle between them.
fn apart(a: f64, b: f64, degrees: f64) -> f64 {
    (a * a + b * b - 2.0 * a * b * degrees.to_radians().cos()).max(0.0).sqrt()
}

/// Signal-to-interference-and-noise ratio down, if the site with the least loss serves: the others send during a share of
/// the time.
pub(crate) fn down_sinr(losses_db: &[f64; SITES], load: f64) -> f64 {
    let sent = SITE_DBM - 10.0 * SITE_BLOCKS.log10();
    let received = losses_db.map(|loss| mw(sent - loss));
    let best = received.iter().copied().fold(0.0, f64::max);
    let others = received.iter().sum::<f64>() - best;
    best / (load * others + mw(THERMAL_DBM + USER_NOISE_DB))
}

/// How a user is heard at its site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Up {
    /// Over noise and interference, at all its power in one block.
    full: f64,
    /// The same where power control limits it.
    target: f64,
    /// As many blocks as are received at the level of the noise: more of them would add little.
    blocks: u32,
}

impl Up {
    pub fn new(loss_db: f64, band: u32, noise_rise: f64) -> Self {
        let noise = mw(THERMAL_DBM + SITE_NOISE_DB);
        let full = mw(USER_DBM - loss_db);
        let blocks = ((full / noise) as u32).clamp(1, band);
        let rise = noise * noise_rise;
        Self { full: full / rise, target: mw(TARGET_DBM) / rise, blocks }
    }

    /// The ratio in each of so many blocks.
    pub fn sinr(&self, blocks: u32) -> f64 {
        self.target.min(self.full / f64::from(blocks))
    }

    /// How many blocks can carry something, with this gain of fading.
    pub fn most(&self, gain: f64) -> u32 {
        let enough = self.full * gain / LEAST_SINR;
        if self.target * gain < LEAST_SINR { 0 } else { self.blocks.min(enough as u32) }
    }
}

/// Interference over thermal noise at a site (and the noise itself): the users of the six neighbouring cells control their
/// power likewise, and are anywhere in their cells with the same probability.
pub(crate) fn noise_rise(spacing: f64, penetration: Decibels, band: u32, load: f64) -> f64 {
    const RADII: u32 = 12;
    const ANGLES: u32 = 24;
    let received = |radius: u32, angle: u32| {
        let share = (f64::from(radius) + 0.5) / f64::from(RADII);
        let own = SITE_RADIUS * spacing * share.sqrt();
        let degrees = 360.0 * (f64::from(angle) + 0.5) / f64::from(ANGLES);
        let own_loss = coupling_db(own, penetration);
        let loss = coupling_db(apart(own, spacing, degrees), penetration);
        let up = Up::new(own_loss, band, 1.0);
        up.sinr(up.blocks) * mw(own_loss - loss)
    };
    let all = (0..RADII).flat_map(|radius| (0..ANGLES).map(move |angle| (radius, angle)));
    let sum: f64 = all.map(|(radius, angle)| received(radius, angle)).sum();
    1.0 + load * (SITES - 1) as f64 * sum / f64::from(RADII * ANGLES)
}

/// Below it nothing arrives: −10 dB (TR 36.942, table A.2).
const LEAST_SINR: f64 = 0.1;

/// Bits per second and hertz (TR 36.942, equation A.1 and table A.2): a share of Shannon's capacity, up to that of the
/// highest modulation. The share has coding, link adaptation, two receiving antennas and retransmissions in it.
fn efficiency(sinr: f64, share: f64, most: f64) -> f64 {
    if sinr < LEAST_SINR { 0.0 } else { (share * sinr.ln_1p() / std::f64::consts::LN_2).min(most) }
}

pub(crate) fn down_efficiency(sinr: f64) -> f64 {
    efficiency(sinr, 0.6, 4.4)
}

pub(crate) fn up_efficiency(sinr: f64) -> f64 {
    efficiency(sinr, 0.4, 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: Decibels = Decibels(20.0);

    fn db(ratio: f64) -> f64 {
        10.0 * ratio.log10()
    }

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() < tolerance, "{found} for {expected}");
    }

    #[test]
    fn path_loss_is_that_of_the_macro_cells() {
        close(path_loss_db(1000.0), 128.1, 1e-9);
        close(path_loss_db(100.0), 90.5, 1e-9);
        // Ten times as near as the least distance is no nearer.
        close(path_loss_db(3.5), path_loss_db(35.0), 1e-9);
        close(coupling_db(1000.0, WALL), 134.1, 1e-9);
    }

    #[test]
    fn neighbours_are_where_the_grid_has_them() {
        // At 100 m towards the corner, with 500 m from site to site: 416, 416, 510, 589, 589 and 510 m.
        let found = couplings_db(100.0, 500.0, WALL);
        let expected = [100.0, 416.4, 416.4, 509.9, 588.7, 588.7, 509.9];
        let mut found: Vec<f64> = found.into();
        let mut expected = expected.map(|metres| coupling_db(metres, WALL));
        found.sort_by(f64::total_cmp);
        expected.sort_by(f64::total_cmp);
        found.iter().zip(expected).for_each(|(found, expected)| close(*found, expected, 0.01));
    }

    #[test]
    fn sinr_down_by_hand() {
        // Alone, 1 km away: 46 − 17 − 134.1 dBm in a block, over −121.4 + 9.
        let mut losses = [1000.0; SITES];
        losses[0] = 134.1;
        close(db(down_sinr(&losses, 1.0)), 46.0 - 16.99 - 134.1 + 112.4, 0.01);
        // One neighbour as strong, half of the time, and no noise to speak of.
        losses[..2].copy_from_slice(&[60.0, 60.0]);
        close(db(down_sinr(&losses, 0.5)), 3.01, 0.01);
        // The stronger one serves.
        losses[1] = 50.0;
        close(db(down_sinr(&losses, 1.0)), 10.0, 0.01);
    }

    /// Three sites are equally near the corner: −3 dB, and less for what the other four add.
    #[test]
    fn the_edge_of_a_cell_is_where_neighbours_are_as_strong() {
        let sinr = |metres, load| db(down_sinr(&couplings_db(metres, 500.0, WALL), load));
        // The corner of the hexagon, 289 m from three sites.
        let corner = sinr(500.0 / 3f64.sqrt(), 1.0);
        assert!((-4.5..-3.0).contains(&corner), "{corner}");
        // 100 m: two neighbours 23.3 dB weaker, two 26.6 dB, two 29.0 dB.
        close(sinr(100.0, 1.0), 17.9, 0.1);
        close(sinr(150.0, 0.5) - sinr(150.0, 1.0), 3.0, 0.1);
    }

    #[test]
    fn power_control_keeps_the_target_until_the_power_is_used_up() {
        // 100 dB: 23 dBm would be −77 dBm in one block, and −94 dBm in fifty: the target is kept in all.
        let near = Up::new(100.0, 50, 1.0);
        assert_eq!(near.blocks, 50);
        close(db(near.sinr(50)), -106.0 + 116.4, 0.01);
        // 130 dB: −107 dBm in one block, 9.4 dB above the noise, so eight blocks are at its level or above.
        let far = Up::new(130.0, 50, 1.0);
        assert_eq!(far.blocks, 8);
        close(db(far.sinr(1)), 9.4, 0.01);
        close(db(far.sinr(8)), 9.4 - 9.03, 0.01);
        // A fade of 15 dB leaves three blocks above −10 dB: 9.4 − 15 + 10 = 4.4 dB.
        assert_eq!((far.most(1.0), far.most(mw(-15.0)), far.most(mw(-25.0))), (8, 2, 0));
    }

    #[test]
    fn neighbours_raise_the_noise_with_their_load() {
        let rise = |spacing, load| db(noise_rise(spacing, WALL, 50, load));
        close(rise(500.0, 0.0), 0.0, 1e-9);
        let [half, full] = [0.5, 1.0].map(|load| rise(500.0, load));
        assert!(half < full && (5.0..11.0).contains(&full), "{half} {full}");
        // In case 3, users have not the power to be heard so strongly.
        assert!(rise(1732.0, 1.0) < full - 2.0, "{}", rise(1732.0, 1.0));
    }

    #[test]
    fn efficiency_is_a_share_of_shannons() {
        close(down_efficiency(1.0), 0.6, 1e-9);
        close(up_efficiency(3.0), 0.8, 1e-9);
        close(down_efficiency(0.1), 0.6 * 1.1f64.log2(), 1e-9);
        close(down_efficiency(0.099), 0.0, 1e-9);
        close(down_efficiency(1e6), 4.4, 1e-9);
        close(up_efficiency(1e6), 2.0, 1e-9);
    }
}

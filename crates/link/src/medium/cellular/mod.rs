//! A cellular cell, as LTE (FDD): a base station shares a band in each direction among its users.
//!
//! Every millisecond, a scheduler gives the band to users who have something queued, proportionally fair, in resource
//! blocks ([`band`]). Packets are cut to fit; a block that fails is sent again, and packets are handed on in order
//! ([`bearer`]). So nothing is lost on the air: packets wait, and are dropped, in the queues of the users' paths. How much
//! a block carries follows from the user's distance, the neighbouring cells, shadowing and fading ([`channel`], [`radio`]).
//! Up, who has had nothing to send must first ask. Nothing happens while nobody has anything to send.
//!
//! Simplifications:
//!
//! - The scheduler knows each user's signal in the subframe that it gives away. In place of what would go wrong with an
//!   older report, a constant share of blocks fails, whatever the signal.
//! - A retransmission takes time, but no blocks: the formula of the rate includes them. So does control signalling; there
//!   are no headers of PDCP, RLC and MAC.
//! - The curve of the rate was fitted to a fading channel (TR 36.942, table A.2), and is used for a signal that fades. So a user
//!   alone has 7 to 9 % less than the curve gives for the mean of the signal.
//! - The time that receivers need to decode a block is left out: about 3 ms in each direction.
//! - All blocks of a user have the same signal: fading is flat over the band. There is no beamforming and one layer.
//! - Neighbouring cells are six sites that send during a constant share of the time, at full power. Of a site's three
//!   sectors, the user hears the one that it faces. The noise that neighbours' users add is constant.
//! - The site with the strongest signal serves. When it changes, the new cell is like this one, and the handover takes no
//!   time. Users move through shadows and fading, but their distance is constant.
//! - RLC's retransmission takes a constant time. There is one bearer per user, no priorities, no discontinuous reception,
//!   no connection set-up.

mod band;
mod bearer;
mod channel;
mod config;
mod radio;

use std::collections::VecDeque;

use suiro_units::{Seed, Time};

use super::path_of;
use crate::packet::{Direction, Event};
use crate::path::Path;
use band::Band;
use bearer::Bearer;
use channel::{Fading, Mean};
pub(crate) use config::MAX_IP_BYTES;
pub use config::{Bandwidth, CellularConfig, CellularSpec};

/// A base station, and its users.
#[derive(Debug)]
pub(crate) struct Cellular {
    /// The mean signal of each user.
    users: Vec<Mean>,
    /// Down and up: they have different frequencies, and do not disturb one another.
    bands: [Band; 2],
}

impl Cellular {
    /// A cell of these users, which agree on what is the cell's. One alone has the random numbers of a link.
    pub fn new(users: &[CellularConfig], seed: Seed) -> Self {
        let seed = seed.derive("cellular");
        let of_user =
            |user: usize| if user == 0 { seed } else { seed.derive(&format!("user {user}")) };
        let mean = |(user, config)| Mean::new(config, of_user(user).derive("mean"));
        let band = |direction: Direction| {
            let bearer = |(user, config): (usize, &CellularConfig)| {
                let seed = of_user(user).derive(direction.name());
                let fading = Fading::new(config, seed.derive("fading"));
                let errors = config.block_errors.get();
                Bearer::new(path_of(user, direction), errors, fading, seed.derive("attempts"))
            };
            let blocks = users.first().map_or(0, |first| first.bandwidth.blocks());
            Band::new(direction, blocks, users.iter().enumerate().map(bearer).collect())
        };
        Self {
            users: users.iter().enumerate().map(mean).collect(),
            bands: Direction::BOTH.map(band),
        }
    }

    /// Whoever has something to send is scheduled, from `now` on.
    pub fn wake(&mut self, now: Time, paths: &[Path]) {
        self.bands.iter_mut().for_each(|band| band.wake(now, paths));
    }

    /// When something next happens.
    pub fn next(&self) -> Option<Time> {
        self.bands.iter().filter_map(Band::next).min()
    }

    /// A time before which nothing comes through.
    pub fn next_delivery(&self) -> Option<Time> {
        self.bands.iter().filter_map(Band::next_delivery).min()
    }

    /// Does what happens next, at the time that [`Self::next`] gave.
    pub fn step(&mut self, paths: &mut [Path], events: &mut VecDeque<Event>) {
        let Some(at) = self.next() else { return };
        for band in &mut self.bands {
            band.step(at, &mut self.users, paths, events);
        }
    }

    /// Takes out what is on the way: the link is being drained.
    pub fn drain(&mut self, now: Time, paths: &mut [Path], events: &mut VecDeque<Event>) {
        self.bands.iter_mut().for_each(|band| band.drain(now, paths, events));
    }
}

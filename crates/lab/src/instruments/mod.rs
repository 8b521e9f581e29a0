//! What measures a trial besides its endpoints: one file for each instrument, and the list of them.
//!
//! An instrument is prepared when the hosts stand, starts at time zero, and stops after the endpoints. To add one,
//! implement [`Instrument`] in a file of its own, and add it to [`ALL`].

mod captures;
mod forwarding;
mod layers;
mod routers;
mod sockets;
mod standstill;
pub mod wires;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use suiro_hosts::Network;
use suiro_record::{Capture, Standstills, TcpSampling};
use suiro_scenario::Setup;
use suiro_units::Seed;

use crate::clock::Epoch;

/// The instruments in the order in which they start; they stop in reverse. Captures are the first, so that they see each
/// packet that a link carries, and stop last, because links determine until when packets count.
const ALL: [&dyn Instrument; 6] = [
    &captures::Interfaces,
    &wires::Links,
    &sockets::TcpSockets,
    &layers::ServiceAccessPoints,
    &routers::MulticastRouters,
    &standstill::Cpus,
];

/// Something that measures a trial and writes tables.
pub trait Instrument: Sync {
    /// Why it cannot measure a trial of `setup` on this machine, with a hint on how to fix it; `None` if nothing is known
    /// to be missing.
    fn lacking(&self, _setup: &Setup) -> Option<String> {
        None
    }

    /// Makes everything ready that takes time; `None` if this trial does not ask for the instrument.
    ///
    /// # Errors
    /// If it cannot measure. The trial is not run then.
    fn prepare(&self, scene: Scene<'_>) -> Result<Option<Box<dyn Prepared>>>;
}

/// The trial that is measured.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// Its hosts and links.
    pub network: &'a Network,
    /// What the scenario asks for.
    pub setup: &'a Setup,
    /// The folder of its records.
    pub dir: &'a Path,
    /// Its seed.
    pub seed: Seed,
}

/// An instrument before time zero.
pub trait Prepared {
    /// Starts to measure. Times count from `epoch`, which is now.
    ///
    /// # Errors
    /// If it cannot measure.
    fn start(self: Box<Self>, scene: Scene<'_>, epoch: Epoch) -> Result<Box<dyn Running>>;
}

/// An instrument from time zero on.
pub trait Running {
    /// Stops measuring, closes its tables and adds what it found. What failed is one of `found.faults`.
    ///
    /// # Errors
    /// If its records are lost.
    fn stop(self: Box<Self>, scene: Scene<'_>, epoch: Epoch, found: &mut Found) -> Result<()>;
}

/// What the instruments of a trial found, apart from their tables.
#[derive(Default)]
pub struct Found {
    /// What links did.
    pub links: wires::Stopped,
    /// How the sampling of TCP sockets went.
    pub tcp: Vec<TcpSampling>,
    /// What captures saw.
    pub captures: Vec<Capture>,
    /// When CPUs stalled.
    pub standstills: Option<Standstills>,
    /// Versions of programs.
    pub versions: BTreeMap<String, String>,
    /// What failed: the trial is not valid.
    pub faults: Vec<String>,
}

/// Why a trial of `setup` cannot be measured on this machine.
pub fn lacking(setup: &Setup) -> Option<String> {
    ALL.iter().find_map(|instrument| instrument.lacking(setup))
}

/// Prepares the instruments that a trial asks for.
///
/// # Errors
/// If one cannot measure.
pub fn prepare(scene: Scene<'_>) -> Result<Vec<Box<dyn Prepared>>> {
    ALL.iter().filter_map(|instrument| instrument.prepare(scene).transpose()).collect()
}

/// Starts them at time zero.
///
/// # Errors
/// If one cannot measure.
pub fn start(
    prepared: Vec<Box<dyn Prepared>>,
    scene: Scene<'_>,
    epoch: Epoch,
) -> Result<Vec<Box<dyn Running>>> {
    prepared.into_iter().map(|instrument| instrument.start(scene, epoch)).collect()
}

/// Stops them.
///
/// # Errors
/// If records are lost.
pub fn stop(running: Vec<Box<dyn Running>>, scene: Scene<'_>, epoch: Epoch) -> Result<Found> {
    let mut found = Found::default();
    for instrument in running.into_iter().rev() {
        instrument.stop(scene, epoch, &mut found)?;
    }
    Ok(found)
}

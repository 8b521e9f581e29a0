//! The commands to lanes, when they take effect, and why they are refused. Pure.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use suiro_units::{Duration, Time};

use super::plan::PLANNED_MAX;
use super::receiver::Leg;
use crate::epoch::Epoch;
use crate::geometry::{FrameRate, Geometry};
use crate::node::Source;
use crate::socket::Route;
use crate::{reader, socket, store};

/// Orders that may wait for a node's thread at a time.
pub const ORDERS_MAX: usize = 64;
/// Lanes of a node.
pub const LANES_MAX: usize = 64;
/// Paths of a lane (ST 2022-7).
pub const PATHS_MAX: usize = 8;
/// How far ahead an order may be: RTP timestamps repeat after 13 hours.
pub const HORIZON: Duration = Duration::from_secs(12 * 3600);

/// When an order takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// At each lane's next frame boundary. A sender that is to start begins at the first boundary at which its ring is
    /// full.
    Next,
    /// At the first frame boundary at or after this time: TAI since the SMPTE epoch, 1970-01-01 00:00:00 TAI.
    Tai(Duration),
}

/// Changes of lanes that take effect at one frame boundary, all or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Order<C> {
    /// When.
    pub at: At,
    /// The caller's own clock: TAI since the SMPTE epoch when it gave the order. If given, it is compared with the
    /// node's, and the order is refused if they are apart by more than the node's ring: then the frames that the caller
    /// means are not those that the node has.
    pub issued: Option<Duration>,
    /// The lanes' numbers, each at most once, and what changes.
    pub changes: Vec<(u32, C)>,
}

impl<C> Order<C> {
    /// A change of one lane.
    pub fn one(at: At, lane: u32, change: C) -> Self {
        Self { at, issued: None, changes: vec![(lane, change)] }
    }

    /// The same change of several lanes in one step.
    pub fn all(at: At, lanes: impl IntoIterator<Item = u32>, change: &C) -> Self
    where
        C: Clone,
    {
        let changes = lanes.into_iter().map(|lane| (lane, change.clone())).collect();
        Self { at, issued: None, changes }
    }
}

/// What changes in a sender's lane; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SenderChange {
    /// True to send from the boundary on, false to send nothing from it on: the frame before is sent completely.
    pub on: Option<bool>,
    /// Where to send, one route for each path, 1 to [`PATHS_MAX`]: destinations and source addresses. All paths carry
    /// the same packets (ST 2022-7).
    pub routes: Option<Vec<Route>>,
    /// What to send. Its frames are read at once, whatever the order's time; they replace the others at the boundary.
    pub load: Option<Load>,
}

impl SenderChange {
    /// Begins to send.
    pub fn start() -> Self {
        Self { on: Some(true), ..Self::default() }
    }

    /// Stops sending. The lane stays a standby: its ring is kept full.
    pub fn stop() -> Self {
        Self { on: Some(false), ..Self::default() }
    }

    /// Sends to other destinations, or from other addresses.
    pub fn to(routes: Vec<Route>) -> Self {
        Self { routes: Some(routes), ..Self::default() }
    }

    /// Sends other frames; makes a lane that does not send a standby.
    pub fn cue(material: Material) -> Self {
        Self { load: Some(Load::Cue(material)), ..Self::default() }
    }
}

/// What a lane should have in its ring.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// These frames.
    Cue(Material),
    /// Nothing: the ring's memory is returned. A lane that sends stops with the frame before.
    Empty,
}

/// The frames that a lane sends, as a function of time: all nodes with the same material send the same frame at the
/// same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Material {
    /// A store, or synthetic frames.
    pub source: Source,
    /// The number, since the SMPTE epoch, of the frame in which its first frame is shown. If it is repeated, it may lie in
    /// the future too.
    pub origin: u64,
    /// True to begin again after the last frame; otherwise the lane stops then.
    pub repeat: bool,
}

impl Material {
    /// The index in the material of frame `frame`, counted without end; `None` if it is before the first.
    pub const fn index(&self, frame: u64, frames: u64) -> Option<u64> {
        match frame.checked_sub(self.origin) {
            Some(index) => Some(index),
            // Cyclic before its origin too, so that any origin of the same phase means the same.
            None if self.repeat && frames > 0 => {
                let before = (self.origin - frame) % frames;
                Some((frames - before) % frames)
            }
            None => None,
        }
    }
}

/// What became of an accepted order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The frame at whose beginning it takes effect, since the SMPTE epoch; `None` for each lane's next boundary.
    pub frame: Option<u64>,
    /// That frame's beginning: TAI since the SMPTE epoch.
    pub tai: Option<Duration>,
}

/// Why an order was refused. Nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It changes nothing.
    #[error("the order contains no changes")]
    Empty,
    /// The node has no such lane.
    #[error("lane {lane}: the node has lanes {have}")]
    Lane {
        /// The lane that was named.
        lane: u32,
        /// The node's lanes, separated by commas.
        have: String,
    },
    /// A lane is named twice.
    #[error("lane {0} is named twice in one order")]
    Twice(u32),
    /// Its time is over.
    #[error(
        "the order's time is in the past: frame {frame} began {frames} frames ago\n\
         hint: give orders at least a frame time ahead"
    )]
    Past {
        /// The frame that it should have begun with.
        frame: u64,
        /// How many frames have begun since, that one included; at least 1.
        frames: u64,
    },
    /// It is too far ahead.
    #[error(
        "the order's time is {ahead} ahead: at most {HORIZON} can be planned\n\
         hint: times are TAI since 1970, in seconds and nanoseconds"
    )]
    Far {
        /// How far.
        ahead: Duration,
    },
    /// The caller's clock is not the node's.
    #[error(
        "the clocks are apart: the order was given at {apart} {} the node's clock, more than the ring of {ring}\n\
         hint: synchronise the hosts' clocks to TAI; `suiro doctor --uncompressed` prints how",
        if *.ahead { "after" } else { "before" }
    )]
    ClocksApart {
        /// By how much.
        apart: Duration,
        /// True if the caller's clock is ahead.
        ahead: bool,
        /// How long the lane's ring lasts.
        ring: Duration,
    },
    /// It should send, but has nothing to send.
    #[error("lane {0} has no frames to send\nhint: give it material first, or in the same order")]
    NoMaterial(u32),
    /// It should send, but has no destination.
    #[error("lane {0} has no destination\nhint: give it routes first, or in the same order")]
    NoRoute(u32),
    /// Its frames will not be there in time.
    #[error(
        "lane {lane}: its ring will not be filled by frame {frame}: {filled} of {slots} frames are read, and the \
         rest takes {frames} frame times longer\nhint: start it at a later frame"
    )]
    NotFilled {
        /// The lane.
        lane: u32,
        /// The frame that it should begin with.
        frame: u64,
        /// Frames that were read.
        filled: u64,
        /// Frames that the ring has.
        slots: u64,
        /// How many frame times it comes too late at the rate so far.
        frames: u64,
    },
    /// The material has another format than the lane.
    #[error("lane {lane}: expected frames of {wanted}, found {found}")]
    Format {
        /// The lane.
        lane: u32,
        /// The lane's geometry.
        wanted: Geometry,
        /// The material's.
        found: Geometry,
    },
    /// The material ends before it begins.
    #[error(
        "lane {lane}: the material has ended: it has {frames} frames, the first of them shown at frame {origin}, \
         and is not repeated"
    )]
    Ended {
        /// The lane.
        lane: u32,
        /// Frames that it has.
        frames: u64,
        /// Where its first one is shown.
        origin: u64,
    },
    /// The number of paths is impossible.
    #[error("lane {lane}: expected 1 to {PATHS_MAX} paths, found {found}")]
    Paths {
        /// The lane.
        lane: u32,
        /// How many were given.
        found: usize,
    },
    /// A destination that nothing can be sent to.
    #[error("lane {lane}: {to} is not a destination: {because}")]
    Destination {
        /// The lane.
        lane: u32,
        /// The address.
        to: SocketAddrV4,
        /// What is wrong.
        because: &'static str,
    },
    /// A group that is none.
    #[error(
        "lane {lane}: {group} is not a multicast group\nhint: groups are 224.0.0.0 to 239.255.255.255"
    )]
    Group {
        /// The lane.
        lane: u32,
        /// The address.
        group: Ipv4Addr,
    },
    /// A delay budget that the receiver's ring does not have.
    #[error(
        "lane {lane}: expected a delay budget of at most {most}, 16 frame times, found {budget}"
    )]
    Budget {
        /// The lane.
        lane: u32,
        /// The budget.
        budget: Duration,
        /// The longest one.
        most: Duration,
    },
    /// Two paths of a lane have the same address.
    #[error("lane {lane}: two paths have the address {address}")]
    SamePath {
        /// The lane.
        lane: u32,
        /// The address.
        address: SocketAddrV4,
    },
    /// A recording exists, or cannot be created.
    #[error("lane {lane}: recording to {}: {cause}", .path.display())]
    Recording {
        /// The lane.
        lane: u32,
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: store::Error,
    },
    /// The material's store cannot be read.
    #[error("lane {lane}: {cause}")]
    Material {
        /// The lane.
        lane: u32,
        /// The reason.
        cause: reader::Error,
    },
    /// A socket cannot be opened.
    #[error("lane {lane}: {cause}")]
    Socket {
        /// The lane.
        lane: u32,
        /// The reason.
        cause: socket::Error,
    },
    /// Too much waits for the lane.
    #[error("lane {lane}: {PLANNED_MAX} changes are waiting for their frames already")]
    Planned {
        /// The lane.
        lane: u32,
    },
    /// What should be cancelled does not wait any more.
    #[error("lane {lane}: nothing that was ordered for frame {frame} can be cancelled any more")]
    Made {
        /// The lane.
        lane: u32,
        /// The frame.
        frame: u64,
    },
    /// Too many orders wait for the node's thread.
    #[error("the node is busy: {ORDERS_MAX} orders are waiting for it")]
    Busy,
    /// The node has ended.
    #[error("the node has ended{}", .0.as_deref().map(|why| format!(": {why}")).unwrap_or_default())]
    Over(Option<String>),
}

/// The boundary that `at` means at `now`: a frame that has not begun. `None` for the next one of each lane.
///
/// # Errors
/// If it has begun, or lies beyond [`HORIZON`].
pub fn boundary(at: At, epoch: Epoch, rate: FrameRate, now: Time) -> Result<Option<u64>, Refusal> {
    let At::Tai(time) = at else { return Ok(None) };
    let ahead = time.saturating_sub(epoch.tai(now));
    if ahead > HORIZON {
        return Err(Refusal::Far { ahead });
    }
    let (frame, current) = (rate.first_from(time), epoch.frame_at(rate, now));
    if frame <= current {
        return Err(Refusal::Past { frame, frames: current - frame + 1 });
    }
    Ok(Some(frame))
}

/// Checks the caller's clock against the node's: TAI at `now`.
///
/// # Errors
/// If they are apart by more than `ring`.
pub fn clocks(
    issued: Option<Duration>,
    epoch: Epoch,
    now: Time,
    ring: Duration,
) -> Result<(), Refusal> {
    let Some(issued) = issued else { return Ok(()) };
    let own = epoch.tai(now);
    let ahead = issued > own;
    let apart = if ahead { issued.saturating_sub(own) } else { own.saturating_sub(issued) };
    if apart > ring { Err(Refusal::ClocksApart { apart, ahead, ring }) } else { Ok(()) }
}

/// Checks that an order's lanes exist and are named once.
///
/// # Errors
/// If not.
pub fn lanes<C>(order: &Order<C>, have: &[u32]) -> Result<(), Refusal> {
    if order.changes.is_empty() {
        return Err(Refusal::Empty);
    }
    for (at, (lane, _)) in order.changes.iter().enumerate() {
        if !have.contains(lane) {
            let all: Vec<_> = have.iter().map(ToString::to_string).collect();
            return Err(Refusal::Lane { lane: *lane, have: all.join(", ") });
        }
        if order.changes[..at].iter().any(|(other, _)| other == lane) {
            return Err(Refusal::Twice(*lane));
        }
    }
    Ok(())
}

/// Checks a sender's paths.
///
/// # Errors
/// If there are none or too many, if two are the same, or a destination cannot be one.
pub fn routes(lane: u32, routes: &[Route]) -> Result<(), Refusal> {
    if !(1..=PATHS_MAX).contains(&routes.len()) {
        return Err(Refusal::Paths { lane, found: routes.len() });
    }
    for (at, route) in routes.iter().enumerate() {
        let to = route.destination;
        let because = if to.port() == 0 {
            "it has no port"
        } else if to.ip().is_unspecified() || to.ip().is_broadcast() {
            "it is neither a host nor a group"
        } else {
            let same = |other: &&Route| other.destination == to && other.source == route.source;
            if routes[..at].iter().any(|other| same(&other)) {
                return Err(Refusal::SamePath { lane, address: to });
            }
            continue;
        };
        return Err(Refusal::Destination { lane, to, because });
    }
    Ok(())
}

/// Checks a receiver's paths; none are allowed.
///
/// # Errors
/// If there are too many, if two are the same, or an address can be neither a group nor a host's.
pub fn legs(lane: u32, legs: &[Leg]) -> Result<(), Refusal> {
    if legs.len() > PATHS_MAX {
        return Err(Refusal::Paths { lane, found: legs.len() });
    }
    for (at, leg) in legs.iter().enumerate() {
        let (address, group) = (leg.address, *leg.address.ip());
        if group.is_broadcast() || (group.octets()[0] >= 240) {
            return Err(Refusal::Group { lane, group });
        }
        let same = |other: &&Leg| other.address == address && other.interface == leg.interface;
        if address.port() != 0 && legs[..at].iter().any(|other| same(&other)) {
            return Err(Refusal::SamePath { lane, address });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

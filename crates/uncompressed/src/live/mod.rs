//! Running nodes: senders and receivers whose lanes take commands at frame boundaries, without a new process and without
//! touching the node's other lanes.
//!
//! # How a command travels
//!
//! A caller gives an [`Order`] to the handle, [`Sender`] or [`Receiver`]: changes of one or more lanes, which all take
//! effect at one frame boundary. [`At`] names the boundary: the next one, or the first at or after a time in TAI.
//! Frame *k* of every stream begins *k* frame times after the SMPTE epoch ([`crate::epoch`]), so nodes on different hosts
//! that are given the same time act at the same frame.
//!
//! 1. In the caller's thread, the handle checks the order against the clock and the lanes' state. It opens sockets and
//!    stores, so that their errors are the caller's too. An order that cannot be carried out completely is rejected
//!    with the reason ([`Refusal`]), and changes nothing.
//! 2. Frames that must be read first are read by the node's `cue` thread; a lane whose ring is full and that does not
//!    send is a *standby*: it moves on with time and can begin at any boundary.
//! 3. The order goes through a bounded queue to the thread that sends or receives. It wakes the thread, which puts the
//!    changes into the lanes' plans ([`plan`]). A lane looks at its plan between two frames only: when the last packet of
//!    one has left and the first of the next has not. An order that arrives when its frame has begun takes effect at the
//!    next boundary, and an event reports by how many frames it was late.
//! 4. What happened is reported as an [`Event`], and visible in the state, which any thread may read at any time.
//!
//! # How a stream is switched
//!
//! *Make before break*: the standby is started at the time at which the old sender is stopped: its first frame is the one
//! after the old one's last. A receiver needs no order for that ([`merge`]). The groups may differ: a receiver that is
//! given other paths at the same time takes the frames before it from the old ones. *Hitless* (ST 2022-7): a node and its
//! twin send the same packets over different paths all the time, and a receiver on all of them loses nothing as long as
//! each packet arrives on one. *Automatic*: a receiver reports a stream that is silent, starves or lags as an event, at
//! most three frame times after it began, and whoever controls the nodes starts a standby at its next frame.
//!
//! Every queue is bounded; a full one refuses the order, or counts the events that it has no room for.

mod command;
mod event;
pub mod merge;
pub mod plan;
mod receiver;
mod receiving;
mod sender;
mod sending;

pub use command::{
    Accepted, At, HORIZON, LANES_MAX, Load, Material, ORDERS_MAX, Order, PATHS_MAX, Refusal,
    SenderChange,
};
pub use event::{EVENTS_MAX, Event, Events, What};
pub use merge::{LaneCounts, PathCounts, SkewClass, Trouble};
pub use plan::PLANNED_MAX;
pub use receiver::{
    Leg, PathState, Receiver, ReceiverChange, ReceiverConfig, ReceiverLane, ReceiverLaneConfig,
    ReceiverState, Storing,
};
pub use sender::{LaneConfig, Phase, RingState, Sender, SenderConfig, SenderLane, SenderState};

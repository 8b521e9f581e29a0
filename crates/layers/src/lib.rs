//! Layered QoS: what each protocol layer of each host lost or delayed.
//!
//! A *service access point* ([`Point`]) is a place that a packet passes on its way through a host: the system call, UDP,
//! IP, the link, the queue discipline, the driver, and the same upwards on the other side. A recorder sees each packet of
//! the chosen flows ([`FlowFilter`]) at each of them, while the application runs unmodified, and writes an [`Event`] for
//! each passage. Together, the [`Recording`]s of both hosts show which layer of which host lost or delayed what.
//! [`matching`] joins the events of each packet, [`account`] counts and times what each part of the path did, and
//! [`verdict`] says which part is responsible.

pub mod account;
pub mod agent;
pub mod clock;
mod errno;
mod event;
mod flow;
pub mod matching;
mod namespace;
pub mod pcapng;
mod probe;
mod record;
pub mod report;
pub mod verdict;

pub use event::{
    ClockStatus, Cost, DropCause, Event, Flow, KernelSample, Key, Moment, Pause, Point,
    PointStatus, Protocol, Recording, Second,
};
pub use flow::{Endpoint, FlowError, FlowFilter};
pub use namespace::{Namespace, NamespaceError};
pub use probe::{ProbeError, check_privilege};
pub use record::{
    FileError, LiveTap, Prepared, Recorded, Recorder, RecorderError, RecorderSpec, of_rows,
};

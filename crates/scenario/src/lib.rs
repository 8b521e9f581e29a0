//! Scenarios: strict TOML, expanded into a plan of trials.
//!
//! ```
//! use suiro_scenario::{Overrides, Scenario};
//! let scenario = Scenario::load("quick")?;
//! let plan = scenario.plan(&Overrides { set: vec!["tcp=reno".into()], ..Overrides::default() })?;
//! assert_eq!(plan.trials[0].planned.folder, "trials/tcp=reno/1");
//! # Ok::<(), suiro_scenario::ScenarioError>(())
//! ```
//!
//! # A scenario file
//!
//! | section | what it holds |
//! |---|---|
//! | `name`, `title`, `description`, `study` | What it is. `study` names the published study that it repeats. |
//! | `duration`, `warm_up`, `repetitions`, `seed`, `jobs` | How long each trial measures, how much of it metrics leave out, how often, from which seed, how many at once. |
//! | `[parameters]` | Named values. `"$name"` below stands for the value, `"${name}"` inside a longer text for its text, `"$name.key"` for what a table has under a key, `"$$name"` for itself. |
//! | `[matrix]` | Axes, each a list of values; every combination is a cell. A value is a text, a number, or `{ label = "…", value = … }` with a value of any type. Referred to like parameters. If a parameter that is a table has the name of an axis, each value of the axis names only the keys that differ from it. |
//! | `[limits]` | What the results must keep to, by name: texts such as `"media.latency_p95_ms < 250 ms"`. |
//! | `[quick]` | What `--quick` changes: `duration`, `warm_up`, `repetitions`, `parameters`, `matrix`. |
//! | `[topology]` | `shape = "dumbbell"` (`servers`, `clients`, `link`), `"chain"` (`links`) or `"explicit"` (`hosts`, `cables`, `switches`); `mtu`. |
//! | `[multicast]` | Cables carry multicast, and which hosts route it: [`Multicast`]. |
//! | `[links.NAME]` | What a link does to packets: [`suiro_link::LinkSpec`]. |
//! | `[media.NAME]` | A video, its ladder and its packaging: [`suiro_media::MediaSpec`]. |
//! | `[endpoints.NAME]` | A process: `kind`, `host`, `count` (how many of it, each with a number, a port and random numbers of its own), `start` and `end`, and the keys of its kind, the struct in the variant of [`EndpointSpec`]. |
//! | `[record]` | What is recorded: [`RecordOptions`]. |
//!
//! References are replaced in `duration`, `warm_up`, `[topology]`, `[multicast]`, `[links]`, `[media]`, `[endpoints]` and
//! `[record]`. They are replaced before anything is read as a type, so `"$clients"` may be a number
//! and `links.access = "$condition"` a whole table. Unknown keys, unknown names and parameters that
//! nothing refers to are refused.
//!
//! # Randomness
//!
//! A trial's seed derives from the run's seed and the repetition only. All cells of a repetition
//! meet the same random numbers, so that their differences come from what the axes change (a comparison in
//! pairs); repetitions are independent.
//!
//! # How errors keep their place
//!
//! Overrides are put into the text; the text is parsed once into a tree whose values know their
//! bytes; references are replaced in that tree; each section is read from it into its type. So every
//! error of a type still knows the bytes that it is about, and `suiro_strict` knows the line of the
//! file that these bytes came from.

use suiro_strict::{document, error, refusal, source};

mod capture;
mod cell;
mod check;
mod copies;
mod endpoint;
mod files;
mod header;
mod job;
mod known;
mod limits;
mod multicast;
mod network;
mod order;
mod overrides;
mod plan;
mod scenario;
mod schema;
mod sections;
mod segment;
mod setup;
mod substitute;
mod topology;

pub use capture::{CapturePoint, CapturePoints};
pub use check::Check;
pub use endpoint::*;
pub use files::{Disk, Files, NoFiles, TEXT_BYTES_MAX};
pub use header::{Date, JOBS, TimeKind};
pub use job::{Job, Peer};
pub use limits::{NamedLimit, limits};
pub use network::{Cell as RadioCell, Detour, Link, Multicast, Topology};
pub use order::Order;
pub use overrides::Overrides;
pub use plan::{Plan, TRIALS_MAX, Trial};
pub use scenario::{Scenario, built_in, built_in_by_subject, parse};
pub use schema::schema;
pub use setup::{RecordOptions, Setup, TcpTrace};
pub use suiro_rate::QuicCongestion;
pub use suiro_strict::{Bounds, Error as ScenarioError, Line, Place, REFUSALS_MAX, Refusal};
pub use topology::MTU;

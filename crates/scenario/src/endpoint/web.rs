//! `web-server` and `web-clients`: short TCP flows, as people make them who read pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{Bytes, Duration};

use super::{Flow, Kind, PORT, Reference, serves_tcp};
use crate::check::Check;

bounds! { WebServer { port: PORT } }

bounds! {
    WebClients {
        users: Bounds::new(1, 1000),
        think: Bounds::new(Duration::from_millis(1), Duration::from_secs(3600)),
        objects: Bounds::new(1, 1000),
        connections: Bounds::new(1, 100),
        size: Bounds::new(SIZE_MIN, WebServer::OBJECT_MAX),
        largest: Bounds::new(SIZE_MIN, WebServer::OBJECT_MAX),
        shape: Bounds::new(0.5, 10.0),
    }
}

const SIZE_MIN: Bytes = Bytes::new(100);

/// Serves objects of any size over HTTP/1.1: `GET /N` returns N bytes, up to 1 GB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<WebServer>)]
pub struct WebServer {
    /// TCP congestion control of its connections, as the kernel names it (`reno`, `cubic`, `bbr`,
    /// …). Default: the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<String>,
    /// TCP port that it listens on. Default: 80.
    #[serde(default = "http")]
    pub port: u16,
}

/// How the sizes of objects are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectSizes {
    /// Bounded Pareto: many small ones and a few large ones, as on the web.
    #[default]
    Pareto,
    /// Evenly, from `largest` down to a least size that makes `size` the mean.
    Uniform,
}

/// Users who read web pages: each waits for an exponentially distributed *think time*, loads a
/// page, and repeats this until the trial ends. A page has `objects` objects with random sizes: the first is loaded over a new connection, the others over up to
/// `connections`, and all close with the page. The random draws do not depend on the network.
///
/// The heavy tail of sizes on the web is from Crovella and Bestavros, "Self-similarity in World
/// Wide Web traffic", IEEE/ACM Transactions on Networking 5(6), 1997. The default values are ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<WebClients>)]
pub struct WebClients {
    /// The endpoint that they load from, a `web-server`.
    pub server: String,
    /// Number of users. Default: 1.
    #[serde(default = "one")]
    pub users: u16,
    /// Mean time from the end of a page to the start of the next. Default: 5 s.
    #[serde(default = "think")]
    pub think: Duration,
    /// Objects of a page. Default: 8.
    #[serde(default = "objects")]
    pub objects: u16,
    /// Parallel connections of a page. Default: 6, as browsers open to one host.
    #[serde(default = "connections")]
    pub connections: u16,
    /// Mean size of an object, less than `largest`. Default: 30 kB.
    #[serde(default = "size")]
    pub size: Bytes,
    /// Largest size of an object. Default: 5 MB.
    #[serde(default = "largest")]
    pub largest: Bytes,
    /// How their sizes are distributed. Default: pareto.
    #[serde(default)]
    pub sizes: ObjectSizes,
    /// Shape α of the Pareto distribution: the smaller, the heavier its tail. Default: 1.2.
    #[serde(default = "shape")]
    pub shape: f64,
}

impl WebClients {
    /// One person, and the default of everything.
    pub const fn of(server: String) -> Self {
        Self {
            server,
            users: one(),
            think: think(),
            objects: objects(),
            connections: connections(),
            size: size(),
            largest: largest(),
            sizes: ObjectSizes::Pareto,
            shape: shape(),
        }
    }
}

impl WebServer {
    /// The largest object.
    pub const OBJECT_MAX: Bytes = Bytes::new(1_000_000_000);
}

impl Kind for WebServer {
    serves_tcp!();
}

impl Kind for WebClients {
    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (key, kinds, media) = ("server", &[WebServer::NAME], Flow::None);
        vec![Reference { key, name: &mut self.server, kinds, media }]
    }

    fn check(&self, check: &mut Check<'_>) {
        let Self { size, largest, .. } = self;
        let refuse = |check: &mut Check<'_>, expected: &str| {
            let found = format!("a mean size of {size}, but at most {largest}");
            check.push(check.refusal("size", found).expected(expected));
        };
        if size >= largest {
            refuse(check, "less than `largest`");
        } else if self.sizes == ObjectSizes::Uniform && 2 * size.get() <= largest.get() {
            refuse(check, "more than half of `largest` with `sizes = \"uniform\"`");
        }
    }
}

const fn http() -> u16 {
    80
}

const fn one() -> u16 {
    1
}

const fn think() -> Duration {
    Duration::from_secs(5)
}

const fn objects() -> u16 {
    8
}

const fn connections() -> u16 {
    6
}

const fn size() -> Bytes {
    Bytes::new(30_000)
}

const fn largest() -> Bytes {
    Bytes::new(5_000_000)
}

const fn shape() -> f64 {
    1.2
}

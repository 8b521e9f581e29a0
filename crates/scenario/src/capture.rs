//! Which interfaces are captured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounds, Keys, Refusal};

use crate::setup::Topology;

/// How many capture points a trial has: each has a ring of 8 MiB and a thread.
const POINTS: Bounds<usize> = Bounds::new(0, 64);

/// The capture points of a trial: every interface of every host, or those listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected true, false, or capture points such as [\"client\", \"left:access\"]"
)]
pub enum CapturePoints {
    /// Every interface of every host, or none.
    All(bool),
    /// `HOST` for every interface of that host, `HOST:LINK` for its interface at that link. The name of a plain cable is
    /// `FROM-TO`.
    Of(Vec<String>),
}

impl Default for CapturePoints {
    fn default() -> Self {
        Self::All(false)
    }
}

/// One end of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapturePoint {
    /// The position of the link in [`Topology::links`].
    pub link: usize,
    /// 0 for the end at the host `from`, 1 for the end at the host `to`.
    pub end: usize,
}

impl CapturePoint {
    /// `HOST:LINK`.
    pub fn name(self, topology: &Topology) -> String {
        let link = &topology.links[self.link];
        format!("{}:{}", [&link.from, &link.to][self.end], link.name)
    }
}

impl CapturePoints {
    /// The points, link by link and each once. Names that fit no interface are left out: [`check`](Self::check) refuses
    /// them.
    pub fn points(&self, topology: &Topology) -> Vec<CapturePoint> {
        let ends =
            (0..topology.links.len()).flat_map(|link| [0, 1].map(|end| CapturePoint { link, end }));
        let is_chosen = |point: &CapturePoint| match self {
            Self::All(all) => *all,
            Self::Of(names) => names.iter().any(|name| fits(name, &point.name(topology))),
        };
        ends.filter(is_chosen).collect()
    }

    /// What is wrong with them, at their places below `capture`.
    pub(crate) fn check(&self, topology: &Topology) -> Vec<Refusal> {
        let known = Self::All(true).points(topology);
        let known: Vec<String> = known.iter().map(|point| point.name(topology)).collect();
        let mut refusals = Vec::new();
        if let Self::Of(names) = self {
            for (at, name) in names.iter().enumerate() {
                if !known.iter().any(|point| fits(name, point)) {
                    let place = Keys(vec!["capture".to_owned(), at.to_string()]);
                    let refusal = Refusal::new(place, format!("no interface is named `{name}`"));
                    let refusal = refusal.expected("a host, or HOST:LINK");
                    refusals.push(refusal.instead(name, known.iter().map(String::as_str)));
                }
            }
        }
        let count = self.points(topology).len();
        if !POINTS.contains(&count) {
            let refusal = Refusal::new(Keys::of("capture"), format!("{count} capture points"));
            let hint = "list those that matter: capture = [\"HOST\", \"HOST:LINK\"]";
            refusals.push(refusal.expected(POINTS.to_string()).hint(hint));
        }
        refusals
    }
}

/// Whether a name of the scenario means this point: all of it, or its host.
fn fits(name: &str, point: &str) -> bool {
    name == point || point.split_once(':').is_some_and(|(host, _)| host == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Link;

    fn topology() -> Topology {
        let link = |from: &str, name: &str, to: &str| Link {
            name: name.into(),
            from: from.into(),
            to: to.into(),
            config: None,
            cards: false,
            mtu: 1500,
        };
        Topology {
            hosts: ["server", "router", "client"].map(str::to_owned).to_vec(),
            links: vec![
                link("server", "server-router", "router"),
                link("router", "access", "client"),
            ],
        }
    }

    fn chosen(points: &CapturePoints) -> Vec<String> {
        let topology = topology();
        points.points(&topology).into_iter().map(|point| point.name(&topology)).collect()
    }

    fn of(names: &[&str]) -> CapturePoints {
        CapturePoints::Of(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn points_are_interfaces_each_once() {
        assert_eq!(chosen(&CapturePoints::default()), [""; 0]);
        let all =
            ["server:server-router", "router:server-router", "router:access", "client:access"];
        assert_eq!(chosen(&CapturePoints::All(true)), all);
        assert_eq!(chosen(&of(&["client", "router", "router:access"])), all[1..]);
        assert_eq!(chosen(&of(&["router:access"])), all[2..3]);
    }

    #[test]
    fn unknown_names_are_refused() {
        let refused = of(&["client", "router:acess"]).check(&topology());
        let [refusal] = &refused[..] else { panic!("{refused:?}") };
        assert_eq!(refusal.found, "no interface is named `router:acess`");
        assert_eq!(refusal.place, Keys(vec!["capture".into(), "1".into()]));
        assert!(refusal.hint.as_ref().is_some_and(|hint| hint.contains("router:access")));
    }

    #[test]
    fn too_many_points_are_refused() {
        let mut topology = topology();
        topology.links = vec![topology.links[0].clone(); 33];
        let refused = CapturePoints::All(true).check(&topology);
        assert_eq!(refused[0].found, "66 capture points");
    }
}

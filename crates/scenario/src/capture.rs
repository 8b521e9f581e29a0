//! Which interfaces are captured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounds, Keys, Refusal};

use crate::network::Topology;

/// How many capture points a trial has: each has a ring of 8 MiB and a thread.
const POINTS: Bounds<usize> = Bounds::new(0, 64);

/// The capture points of a trial: every interface of every host, or those listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected true, false, or capture points such as [\"client\", \"left:access\"] or { P1 = \"client\" }"
)]
pub enum CapturePoints {
    /// Every interface of every host, or none.
    All(bool),
    /// `HOST` for every interface of that host, `HOST:LINK` for its interface at that link. The name of a plain cable is
    /// `FROM-TO`.
    Of(Vec<String>),
    /// The same with names of your own, such as `P1 = "client"`, for one interface each.
    Named(BTreeMap<String, String>),
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
        // A hub is no host: it has no interface.
        let ends = ends.filter(|CapturePoint { link, end }| {
            let link = &topology.links[*link];
            !topology.hubs.contains([&link.from, &link.to][*end])
        });
        let is_chosen = |point: &CapturePoint| match self {
            Self::All(all) => *all,
            Self::Of(names) => names.iter().any(|name| fits(name, &point.name(topology))),
            Self::Named(names) => names.values().any(|name| fits(name, &point.name(topology))),
        };
        ends.filter(is_chosen).collect()
    }

    /// What a point is called in records: `NAME HOST:LINK` if it has a name of its own, else `HOST:LINK`.
    pub fn label(&self, point: CapturePoint, topology: &Topology) -> String {
        let place = point.name(topology);
        let Self::Named(names) = self else { return place };
        let name = names.iter().find(|(_, value)| fits(value, &place)).map(|(name, _)| name);
        name.map_or(place.clone(), |name| format!("{name} {place}"))
    }

    /// The names, each with its key below `capture`.
    fn names(&self) -> Vec<(String, &String)> {
        match self {
            Self::All(_) => Vec::new(),
            Self::Of(names) => {
                names.iter().enumerate().map(|(n, name)| (n.to_string(), name)).collect()
            }
            Self::Named(names) => names.iter().map(|(key, name)| (key.clone(), name)).collect(),
        }
    }

    /// What is wrong with them, at their places below `capture`.
    pub(crate) fn check(&self, topology: &Topology) -> Vec<Refusal> {
        let known = Self::All(true).points(topology);
        let known: Vec<String> = known.iter().map(|point| point.name(topology)).collect();
        let mut refusals = Vec::new();
        for (key, name) in self.names() {
            let place = || Keys(vec!["capture".to_owned(), key.clone()]);
            let fitting = known.iter().filter(|point| fits(name, point)).count();
            if fitting == 0 {
                let refusal = Refusal::new(place(), format!("no interface is named `{name}`"));
                let refusal = refusal.expected("a host, or HOST:LINK");
                refusals.push(refusal.instead(name, known.iter().map(String::as_str)));
            } else if fitting > 1 && matches!(self, Self::Named(_)) {
                let refusal = Refusal::new(place(), format!("`{name}` has {fitting} interfaces"));
                refusals.push(refusal.expected("one interface, HOST:LINK"));
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
    use crate::network::Link;

    fn topology() -> Topology {
        let link = |from: &str, name: &str, to: &str| Link {
            name: name.into(),
            from: from.into(),
            to: to.into(),
            config: None,
            cards: false,
            capacity: None,
            mtu: 1500,
        };
        Topology {
            hosts: ["server", "router", "client"].map(str::to_owned).to_vec(),
            links: vec![
                link("server", "server-router", "router"),
                link("router", "access", "client"),
            ],
            detours: vec![],
            switches: vec![],
            hubs: vec![],
            cells: vec![],
            multicast: None,
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
    fn points_with_names_of_their_own_are_one_interface_each() {
        let topology = topology();
        let named = |host: &str| CapturePoints::Named([("P1".to_owned(), host.to_owned())].into());
        let point = named("client").points(&topology)[0];
        assert_eq!(named("client").label(point, &topology), "P1 client:access");
        assert_eq!(CapturePoints::All(true).label(point, &topology), "client:access");
        assert!(named("client").check(&topology).is_empty());
        let refused = named("router").check(&topology);
        assert_eq!(refused[0].found, "`router` has 2 interfaces");
        assert_eq!(refused[0].place, Keys(vec!["capture".into(), "P1".into()]));
    }

    #[test]
    fn too_many_points_are_refused() {
        let mut topology = topology();
        topology.links = vec![topology.links[0].clone(); 33];
        let refused = CapturePoints::All(true).check(&topology);
        assert_eq!(refused[0].found, "66 capture points");
    }
}

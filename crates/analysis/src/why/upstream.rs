//! What came to caches from their origins.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::flows::{self, is_end};
use suiro_record::words::FlowRole;

use super::asked::Asked;
use super::links::{Carried, Links};
use crate::player::Player;
use crate::view::View;

/// The connections of a cache to its origins, on links.
pub(super) struct Upstream<'a, 'v> {
    pub cache: &'v str,
    pub data: Vec<Carried<'a, 'v>>,
    pub acks: Vec<Carried<'a, 'v>>,
}

/// The flows on links that brought each client something: also those of so little that they are not examined.
pub(super) struct Brought<'v>(BTreeMap<&'v str, BTreeSet<&'v str>>);

impl<'v> Brought<'v> {
    pub fn of(view: &'v View<'_>, links: &Links<'v>) -> Self {
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let flows: BTreeSet<&str> =
            links.ways.iter().flat_map(|way| way.flows.keys().copied()).collect();
        for flow in flows {
            if let Some(client) = comes_to(view, flow) {
                found.entry(client).or_default().insert(flow);
            }
        }
        Self(found)
    }

    /// Those to a client.
    pub fn to(&self, client: &str) -> impl Iterator<Item = String> {
        self.0.get(client).into_iter().flatten().map(|flow| (*flow).to_owned())
    }
}

/// Those of the caches that asked an origin for what a viewer requested.
pub(super) fn upstream<'a, 'v>(
    links: &'a Links<'v>,
    brought: &Brought<'v>,
    asked: &Asked<'v>,
    viewer: Option<&Player>,
) -> Vec<Upstream<'a, 'v>> {
    let of = |cache: &'v str| {
        let names: Vec<String> = brought.to(cache).collect();
        let turned: Vec<String> = names.iter().filter_map(|name| super::turned(name)).collect();
        Upstream { cache, data: links.of(&names), acks: links.of(&turned) }
    };
    asked.missed(viewer).into_iter().map(of).collect()
}

/// The client to which a flow on a link brings what it asked for: a player, or a cache.
fn comes_to<'v>(view: &'v View<'_>, name: &str) -> Option<&'v str> {
    let row = flows::find_named(&view.records.flows, name)?;
    let (own, client) = match row.role {
        FlowRole::Client => (&row.local, &*row.endpoint),
        FlowRole::Server => (&row.remote, row.peer.as_deref()?),
        FlowRole::Sender | FlowRole::Receiver => return None,
    };
    let (_, to) = name.split_once('>')?;
    is_end(own, to).then_some(client)
}

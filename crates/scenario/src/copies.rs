//! Several endpoints of one section: host patterns, copies, and which of them another means.

use std::collections::{BTreeMap, BTreeSet};

use suiro_strict::Bounded;

use crate::check::Placed;
use crate::document::{self, Node, in_text};
use crate::endpoint::{Common, Endpoint, EndpointSpec, Reference};
use crate::refusal::{Refusal, Span};
use crate::topology::Wiring;

/// The hosts that `host` of the endpoint `section` means.
pub(crate) fn hosts(
    section: &str,
    host: &str,
    wiring: Option<&Wiring>,
    body: &Node<'_>,
) -> Result<Vec<String>, Refusal<Span>> {
    // A topology that cannot be read has been reported: its hosts are not known.
    let Some(Wiring { hosts, .. }) = wiring else { return Ok(vec![host.to_owned()]) };
    let (found, message, sought) = match host.strip_suffix('*') {
        None => {
            let found = hosts.iter().filter(|known| *known == host).cloned().collect();
            (found, format!("no host is named `{host}`"), host)
        }
        Some(start) => {
            let found = hosts.iter().filter(|known| known.starts_with(start)).cloned();
            (found.collect(), format!("no host has a name that begins with `{start}`"), start)
        }
    };
    let found: Vec<String> = found;
    if found.is_empty() {
        let place = document::place(body, &["endpoints", section, "host"]);
        return Err(Refusal::new(place, message).instead(sought, hosts.iter().map(String::as_str)));
    }
    Ok(found)
}

/// The endpoints of a section: in each of its hosts as many as `count` says.
pub(crate) fn of(
    section: &str,
    common: &Common,
    spec: &EndpointSpec,
    hosts: &[String],
    body: &Node<'_>,
) -> Result<Vec<Placed>, Refusal<Span>> {
    let Common { start, end, absence, .. } = *common;
    let count = if common.when { common.count } else { 0 };
    common.check_bounds().map_err(|refusal| in_text(body, &["endpoints", section], refusal))?;
    let several = hosts.len() > 1 || count > 1;
    let mut placed = Vec::new();
    for host in hosts {
        for copy in 0..count {
            let number = placed.len();
            let name =
                if several { format!("{section}{}", number + 1) } else { section.to_owned() };
            let spec = spec.copy(copy).ok_or_else(|| {
                let place = document::place(body, &["endpoints", section, "port"]);
                let refusal =
                    Refusal::new(place, format!("there is no port left for copy {}", copy + 1));
                refusal.hint("choose a lower port: each copy in a host takes the next one")
            })?;
            let endpoint = Endpoint { name, host: host.clone(), start, end, absence, spec };
            placed.push(Placed { section: section.to_owned(), number, endpoint });
        }
    }
    Ok(placed)
}

/// Where an endpoint refers to a section of several, makes it refer to the one with its own number. A section with
/// another number of endpoints is an error, and is added to what cannot be read.
pub(crate) fn refer(
    endpoints: &mut [Placed],
    unread: &mut Vec<String>,
    body: &Node<'_>,
    refusals: &mut Vec<Refusal<Span>>,
) {
    let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for placed in &*endpoints {
        let names = sections.entry(placed.section.clone()).or_default();
        names.push(placed.endpoint.name.clone());
    }
    let names: BTreeSet<String> = sections.values().flatten().cloned().collect();
    for placed in endpoints {
        let Placed { section, number, endpoint } = placed;
        let here = sections[section].len();
        for Reference { key, name: to, .. } in endpoint.spec.kind_mut().references() {
            let Some(there) = sections.get(to).filter(|_| !names.contains(to)) else { continue };
            if there.len() == here {
                there[*number].clone_into(to);
            } else if !unread.contains(to) {
                let message = format!("{here} of `{section}`, but {} of `{to}`", there.len());
                let place = document::place(body, &["endpoints", section, key]);
                let hint = format!("give both the same count, or name one: `{}`", there[0]);
                refusals.push(Refusal::new(place, message).hint(hint));
                unread.push(to.clone());
            }
        }
    }
}

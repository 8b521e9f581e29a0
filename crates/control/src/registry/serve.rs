//! A running registry.

use std::collections::BTreeSet;
use std::time::Duration as StdDuration;

use suiro_record::RecordError;

use super::{Kind, Registry};
use crate::events::{Journal, Log};
use crate::net;
use crate::node::Place;
use crate::server::Serving;

/// Different refusals that are reported at most.
const TOLD_MAX: usize = 100;
/// How often nodes without heartbeats are looked for.
const TICK: StdDuration = StdDuration::from_secs(1);

/// Runs a registry until `stop` is ready; returns how many nodes it had then.
///
/// # Errors
/// If records cannot be written.
pub async fn run(
    place: Place,
    log: Log,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<usize, RecordError> {
    let Place { listener, door, tls } = place;
    let mut journal = Journal::create(log)?;
    let mut registry = Registry::default();
    // Refusals that were reported: a node that is refused tries again every second.
    let mut told = BTreeSet::new();
    let mut serving = Serving::begin(listener, tls);
    ready();
    let mut stop = std::pin::pin!(stop);
    let mut tick = net::every(TICK);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(waiting) = serving.next() => {
                let before = registry.of(Kind::Node).count();
                let reply = registry.answer(net::tai(), &waiting.ask, &door);
                let nodes = registry.of(Kind::Node).count();
                if nodes != before {
                    journal.note("registry", None, None, &format!("{nodes} nodes"));
                }
                if reply.status == 409 {
                    let reason = reply.reason();
                    if told.len() < TOLD_MAX && told.insert(reason.clone()) {
                        journal.note("refused", None, None, &reason);
                    }
                }
                // Who asked may have gone.
                drop(waiting.reply.send(reply));
            }
            _ = tick.tick() => {
                for id in registry.collect(net::tai()) {
                    journal.note("registry", None, None, &format!("no heartbeat of the node {id}: it is removed"));
                }
            }
        }
    }
    serving.end().await;
    journal.close()?;
    Ok(registry.of(Kind::Node).count())
}

//! A running registry.

use std::time::Duration as StdDuration;

use suiro_record::RecordError;

use super::{Kind, Registry};
use crate::events::{Journal, Log};
use crate::net;
use crate::node::Place;
use crate::server::Serving;

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
    let mut serving = Serving::begin(listener, tls);
    ready();
    let mut stop = std::pin::pin!(stop);
    let mut tick = tokio::time::interval(TICK);
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

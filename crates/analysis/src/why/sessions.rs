//! Which sessions of its senders carry a viewer's stream: one sender may serve several viewers, each with a session of its own.

use std::collections::BTreeSet;

use suiro_record::flows::is_end;
use suiro_record::tables::{QuicRow, WebrtcRow};

use crate::Records;

/// The sessions of senders and relays that carry a stream, by endpoint and number.
pub(super) struct Sessions<'v> {
    webrtc: Table<'v>,
    quic: Table<'v>,
}

/// The sessions of one table.
struct Table<'v> {
    /// Those over which one of the stream's flows goes.
    own: BTreeSet<(&'v str, u64)>,
    /// Endpoints that have a single session: it carries the stream, whatever is known about its ends.
    single: BTreeSet<&'v str>,
    /// True if all are: no flow is known, and there is no other viewer.
    all: bool,
}

impl<'v> Table<'v> {
    /// `ends` are sessions with both of their ends, `rows` all that have rows.
    fn of(
        (flows, all): (&[String], bool),
        ends: impl Iterator<Item = ((&'v str, u64), &'v str)>,
        rows: impl Iterator<Item = (&'v str, u64)>,
    ) -> Self {
        let carries = |ends: &str| flows.iter().any(|flow| is_of(ends, flow));
        let own = ends.filter(|(_, ends)| carries(ends)).map(|(session, _)| session).collect();
        let sessions: BTreeSet<(&str, u64)> = rows.collect();
        let count = |name: &str| sessions.iter().filter(|(other, _)| *other == name).count();
        let single = sessions.iter().map(|(name, _)| *name).filter(|name| count(name) == 1);
        Self { own, single: single.collect(), all }
    }

    fn has(&self, endpoint: &str, session: u64) -> bool {
        self.all || self.single.contains(endpoint) || self.own.contains(&(endpoint, session))
    }
}

/// Whether a flow goes to the remote end of `LOCAL>REMOTE`. The local one may not be known.
fn is_of(ends: &str, flow: &str) -> bool {
    let remote = ends.split_once('>').map(|(_, remote)| remote);
    remote.zip(flow.split_once('>')).is_some_and(|(remote, (_, to))| is_end(remote, to))
}

impl<'v> Sessions<'v> {
    /// Those of the flows of a stream, as tables name them. `alone`: there is no other viewer.
    pub fn of(records: &'v Records, flows: &[String], alone: bool) -> Self {
        let flows = (flows, alone && flows.is_empty());
        let pairs = records.webrtc_sessions.iter();
        let pairs =
            pairs.filter_map(|row| Some(((&*row.endpoint, row.session), row.pair.as_deref()?)));
        let webrtc = records.webrtc.iter().map(|row| (&*row.endpoint, row.session));
        let ends = records.moq_sessions.iter();
        let ends = ends.map(|row| ((&*row.endpoint, row.session), &*row.addresses));
        let quic = records.quic.iter().map(|row| (&*row.endpoint, row.session));
        Self { webrtc: Table::of(flows, pairs, webrtc), quic: Table::of(flows, ends, quic) }
    }

    pub fn has_webrtc(&self, row: &WebrtcRow) -> bool {
        self.webrtc.has(&row.endpoint, row.session)
    }

    pub fn has_quic(&self, row: &QuicRow) -> bool {
        self.quic.has(&row.endpoint, row.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_that_of_the_flow_between_its_ends() {
        let flow = "udp 10.0.0.1:5004>10.0.0.2:5006";
        assert!(is_of("10.0.0.1:5004>10.0.0.2:5006", flow));
        assert!(is_of("*>10.0.0.2:5006", flow));
        assert!(!is_of("10.0.0.1:5004>10.0.0.3:5006", flow));
        assert!(!is_of("10.0.0.2:5006>10.0.0.1:5004", flow), "the other direction");
        assert!(!is_of("10.0.0.1:5004", flow));
    }

    #[test]
    fn a_single_session_needs_no_ends_and_several_do() {
        let flows = ["udp 10.0.0.1:5004>10.0.0.2:5006".to_owned()];
        let ends = [(("camera", 2), "10.0.0.1:5004>10.0.0.2:5006")];
        let rows = [("camera", 1), ("camera", 2), ("camera", 1), ("relay", 7)];
        let table = Table::of((&flows, false), ends.into_iter(), rows.into_iter());
        let has = [("camera", 1), ("camera", 2), ("relay", 7)].map(|(name, n)| table.has(name, n));
        assert_eq!(has, [false, true, true]);
    }
}

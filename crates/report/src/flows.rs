//! The flows of a trial, as endpoints reported them.

use std::collections::BTreeMap;

use suiro_record::flows::words;
use suiro_record::tables::FlowRow;

use crate::page::PageFlow;

/// Most lines of one trial; more would be of as many endpoints.
const LINES_MAX: usize = 200;

/// A line for each endpoint, role, peer and content, in the order in which the first flow of each was opened.
pub(crate) fn lines(rows: &[FlowRow]) -> Vec<PageFlow> {
    let mut groups: BTreeMap<_, Vec<&FlowRow>> = BTreeMap::new();
    for row in rows {
        let key = (words(row), row.protocol.name());
        groups.entry(key).or_default().push(row);
    }
    let mut lines: Vec<PageFlow> =
        groups.into_iter().map(|((what, protocol), rows)| line(what, protocol, &rows)).collect();
    lines.sort_by(|a, b| a.opened_s.total_cmp(&b.opened_s));
    lines.truncate(LINES_MAX);
    lines
}

fn line(what: String, protocol: &str, rows: &[&FlowRow]) -> PageFlow {
    // What differs from flow to flow is any.
    let common = |of: fn(&FlowRow) -> &str| {
        let mut ends = rows.iter().map(|row| of(row));
        let first = ends.next().unwrap_or_default();
        if ends.all(|end| end == first) { first.to_owned() } else { "*:*".to_owned() }
    };
    let seconds = |time: suiro_units::Time| time.as_nanos() as f64 / 1e9;
    let opened = rows.iter().map(|row| seconds(row.t_ns)).fold(f64::INFINITY, f64::min);
    let closed: Option<Vec<f64>> = rows.iter().map(|row| row.closed_ns.map(seconds)).collect();
    PageFlow {
        what,
        protocol: protocol.to_owned(),
        local: common(|row| &row.local),
        remote: common(|row| &row.remote),
        flows: rows.iter().map(|row| row.flows).sum(),
        opened_s: opened,
        closed_s: closed.and_then(|all| all.into_iter().reduce(f64::max)),
    }
}

#[cfg(test)]
mod tests {
    use suiro_record::words::{Carries, FlowRole, Transport};
    use suiro_units::Time;

    use super::*;

    #[test]
    fn connections_of_one_player_are_one_line() {
        let row = |endpoint: &str, at: u64, port: u16, closed: Option<u64>| FlowRow {
            t_ns: Time::from_secs(at),
            endpoint: endpoint.into(),
            role: FlowRole::Client,
            protocol: Transport::Tcp,
            local: format!("10.0.0.2:{port}").into(),
            remote: "10.0.0.1:80".into(),
            carries: Carries::HttpMedia,
            flows: 1,
            closed_ns: closed.map(Time::from_secs),
            peer: Some("origin".into()),
        };
        let rows =
            [row("b", 3, 4000, Some(9)), row("a", 2, 4001, None), row("b", 1, 4002, Some(5))];
        let lines = lines(&rows);
        let [b, a] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((&*b.what, b.flows), ("http media, client b, server origin", 2));
        assert_eq!((&*b.local, &*b.remote), ("*:*", "10.0.0.1:80"));
        assert_eq!((b.opened_s, b.closed_s), (1.0, Some(9.0)));
        assert_eq!((&*a.local, a.opened_s, a.closed_s), ("10.0.0.2:4001", 2.0, None));
    }
}

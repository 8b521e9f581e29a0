//! The records of one trial, grouped once.

use std::cell::OnceCell;

use suiro_record::Trial;

use crate::competing::rivals;
use crate::flow::Flow;
use crate::link::{Direction, directions};
use crate::period::Period;
use crate::player::{Player, players};
use crate::tcp::{Socket, media_sockets};
use crate::uncompressed::{ByRing, by_ring};
use crate::why::{Rules, Why};
use crate::{Records, duration_ns};

/// What every metric and every series reads: the records of one trial, and the groups of them that
/// several families share, each made when it is first asked for. Groups that one family alone reads
/// are made by that family, which is asked once.
pub(crate) struct View<'a> {
    pub trial: &'a Trial,
    pub records: &'a Records,
    /// The trial's length.
    pub duration_ns: i64,
    /// The time that metrics are about.
    pub period: Period,
    /// What causes are decided by.
    pub rules: Rules,
    links: OnceCell<Vec<Direction<'a>>>,
    rivals: OnceCell<Vec<Flow<'a>>>,
    sockets: OnceCell<Vec<Socket<'a>>>,
    players: OnceCell<Vec<Player<'a>>>,
    rings: OnceCell<ByRing<'a>>,
    /// What [`crate::why::of`] found.
    pub why: OnceCell<Why>,
}

impl<'a> View<'a> {
    /// Of the whole trial.
    pub fn new(trial: &'a Trial, records: &'a Records) -> Self {
        Self {
            trial,
            records,
            duration_ns: duration_ns(trial),
            period: Period::whole(trial),
            rules: Rules::default(),
            links: OnceCell::new(),
            rivals: OnceCell::new(),
            sockets: OnceCell::new(),
            players: OnceCell::new(),
            rings: OnceCell::new(),
            why: OnceCell::new(),
        }
    }

    /// Of the trial without its warm-up.
    pub fn measured(trial: &'a Trial, records: &'a Records) -> Self {
        Self { period: Period::measured(trial), ..Self::new(trial, records) }
    }

    /// The same, with causes decided by other numbers.
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Every direction of every link, sorted by link, down before up.
    pub fn links(&self) -> &[Direction<'a>] {
        self.links.get_or_init(|| directions(self.trial, self.records, self.period))
    }

    /// The real-time video and the TCP, flow by flow.
    pub fn rivals(&self) -> &[Flow<'a>] {
        let of = (self.trial, self.records);
        self.rivals.get_or_init(|| rivals(self.links(), of, self.duration_ns))
    }

    /// The TCP sockets that carry media, by host and name.
    pub fn sockets(&self) -> &[Socket<'a>] {
        self.sockets.get_or_init(|| media_sockets(self.records, self.period))
    }

    /// Every player, by name.
    pub fn players(&self) -> &[Player<'a>] {
        self.players.get_or_init(|| players(self.trial, self.records, self.period))
    }

    /// The player of that name.
    pub fn player(&self, name: &str) -> Option<&Player<'a>> {
        self.players().iter().find(|player| player.name == name)
    }

    /// The seconds of every ring of uncompressed video, by endpoint and stream.
    pub fn rings(&self) -> &ByRing<'a> {
        self.rings.get_or_init(|| by_ring(self.records))
    }

    /// Those rows whose time is within the trial, its end and its warm-up excluded.
    pub fn within<R>(&self, rows: &'a [R], t_ns: fn(&R) -> i64) -> Vec<&'a R> {
        rows.iter().filter(|row| self.period.contains(t_ns(row))).collect()
    }

    /// The same with those of the warm-up.
    pub fn within_trial<R>(&self, rows: &'a [R], t_ns: fn(&R) -> i64) -> Vec<&'a R> {
        let trial = 0..self.duration_ns;
        rows.iter().filter(|row| trial.contains(&t_ns(row))).collect()
    }
}

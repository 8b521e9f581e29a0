//! The sessions of one endpoint: opened by offers, found by their names, freed when they end. They are bounded,
//! handed the time and packets, and have no sockets.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Instant;

use suiro_record::tables::WebrtcSessionRow;
use suiro_record::words::{FlowRole, SessionEnd, Signalling};
use suiro_scenario::WebrtcQuality;
use suiro_units::{Duration, Time};

use crate::peer::{Agreed, Happened, Offered, Peer, PeerError, Setup, Transmit, Way, Why};
use crate::signalling::Handle;

/// Sessions that wait to be connected at most; of more, the oldest is displaced.
pub const UNCONNECTED_MAX: usize = 64;
/// Sessions that are connected at most; of more, offers are refused.
pub const CONNECTED_MAX: usize = 64;
/// How long a session may take to be connected.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(15);

/// One session.
pub struct Session {
    /// Its number at this endpoint, from 1.
    pub number: u64,
    /// Its name in the path of its resource: nobody can guess it.
    pub name: String,
    /// Its entity tag: that of its ICE session.
    pub tag: String,
    /// The connection.
    pub peer: Peer,
    /// The quality that its viewer asks for. Default: `auto`.
    pub quality: WebrtcQuality,
    opened: Time,
    answered: Option<Time>,
    connected: Option<Time>,
    first_packet: Option<Time>,
    pair: Option<(SocketAddr, SocketAddr)>,
    agreed: Option<Agreed>,
}

impl Session {
    /// Whether media can flow.
    pub fn is_connected(&self) -> bool {
        self.connected.is_some()
    }

    /// The first packet of video has left, or come.
    pub fn on_video(&mut self, now: Time) {
        self.first_packet.get_or_insert(now);
    }

    /// The pair of candidates that is used.
    pub fn on_pair(&mut self, pair: Option<(SocketAddr, SocketAddr)>) {
        self.pair = pair.or(self.pair);
    }

    /// What was agreed on; `None` before it was.
    pub fn agreed(&self) -> Option<&Agreed> {
        self.agreed.as_ref()
    }
}

/// Why no session is opened.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The offer cannot be agreed on.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// There are too many sessions.
    #[error("{CONNECTED_MAX} sessions are connected already")]
    Full,
}

/// All sessions of an endpoint.
pub struct Sessions {
    endpoint: String,
    signalling: Signalling,
    zero: Instant,
    setup: Setup,
    open: BTreeMap<u64, Session>,
    opened: u64,
    transmits: VecDeque<Transmit>,
    ended: Vec<WebrtcSessionRow>,
}

impl Sessions {
    /// No sessions yet. `zero` is the instant of [`Time::ZERO`].
    pub fn new(endpoint: String, signalling: Signalling, zero: Instant, setup: Setup) -> Self {
        Self {
            endpoint,
            signalling,
            zero,
            setup,
            open: BTreeMap::new(),
            opened: 0,
            transmits: VecDeque::new(),
            ended: Vec::new(),
        }
    }

    /// Opens a session with the offer of another end: its number, and the answer.
    ///
    /// # Errors
    /// [`Refused`]: nothing is kept.
    pub fn answer(&mut self, now: Time, offer: &str) -> Result<(u64, String), Refused> {
        if self.open.values().filter(|session| session.is_connected()).count() >= CONNECTED_MAX {
            return Err(Refused::Full);
        }
        let mut peer = Peer::new(now, self.zero, self.setup.clone())?;
        let answer = peer.answer(now, offer)?;
        let number = self.open(now, peer);
        self.on_agreed(now, number);
        Ok((number, answer))
    }

    /// Opens a session with an offer of this end, which waits for its answer.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn offer(&mut self, now: Time) -> Result<(u64, Offered), PeerError> {
        let mut peer = Peer::new(now, self.zero, self.setup.clone())?;
        let offered = peer.offer(now)?;
        Ok((self.open(now, peer), offered))
    }

    /// The answer to such an offer.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn on_answer(
        &mut self,
        now: Time,
        number: u64,
        (offered, answer): (Offered, &str),
    ) -> Result<(), PeerError> {
        if let Some(session) = self.open.get_mut(&number) {
            session.peer.on_answer(now, offered, answer)?;
            self.on_agreed(now, number);
        }
        Ok(())
    }

    fn open(&mut self, now: Time, peer: Peer) -> u64 {
        let waiting = self.open.values().filter(|session| !session.is_connected());
        let oldest = waiting.clone().map(|session| session.number).next();
        if waiting.count() >= UNCONNECTED_MAX
            && let Some(oldest) = oldest
        {
            self.end(now, oldest, SessionEnd::Displaced);
        }
        self.opened += 1;
        let number = self.opened;
        let Handle { name, tag } = Handle::draw();
        self.open.insert(
            number,
            Session {
                number,
                name,
                tag,
                peer,
                quality: WebrtcQuality::Auto,
                opened: now,
                answered: None,
                connected: None,
                first_packet: None,
                pair: None,
                agreed: None,
            },
        );
        number
    }

    fn on_agreed(&mut self, now: Time, number: u64) {
        if let Some(session) = self.open.get_mut(&number) {
            session.answered = Some(now);
            session.agreed = session.peer.agreed();
        }
        self.collect(number);
    }

    /// A session by its number.
    pub fn get(&mut self, number: u64) -> Option<&mut Session> {
        self.open.get_mut(&number)
    }

    /// The number of the session of that name.
    pub fn named(&self, name: &str) -> Option<u64> {
        self.open.values().find(|session| session.name == name).map(|session| session.number)
    }

    /// The numbers of the sessions in which media can flow.
    pub fn connected(&self) -> Vec<u64> {
        let connected = self.open.values().filter(|session| session.is_connected());
        connected.map(|session| session.number).collect()
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// A packet has come at one of the endpoint's sockets. False: it is of no session.
    pub fn on_packet(&mut self, now: Time, route: (SocketAddr, SocketAddr), bytes: &[u8]) -> bool {
        let mut sessions = self.open.values_mut();
        let Some(session) = sessions.find(|session| session.peer.accepts(now, route, bytes)) else {
            return false;
        };
        let number = session.number;
        let worked = session.peer.on_packet(now, route, bytes);
        self.after(now, number, worked.is_ok());
        true
    }

    /// Does something with a session's connection.
    pub fn with(
        &mut self,
        now: Time,
        number: u64,
        work: impl FnOnce(&mut Session) -> Result<(), PeerError>,
    ) {
        let Some(session) = self.open.get_mut(&number) else { return };
        let worked = work(session);
        self.after(now, number, worked.is_ok());
    }

    fn after(&mut self, now: Time, number: u64, works: bool) {
        self.collect(number);
        if !works {
            self.end(now, number, SessionEnd::Broken);
        }
    }

    fn collect(&mut self, number: u64) {
        let Some(session) = self.open.get_mut(&number) else { return };
        while let Some(transmit) = session.peer.take_transmit() {
            self.transmits.push_back(transmit);
        }
    }

    /// When to call [`Self::on_time`] next.
    pub fn next_event(&self) -> Option<Time> {
        let events = self.open.values().flat_map(|session| {
            let late = (!session.is_connected()).then(|| session.opened + CONNECT_WITHIN);
            [session.peer.next_event(), late]
        });
        events.flatten().min()
    }

    /// Does what is due.
    pub fn on_time(&mut self, now: Time) {
        let due: Vec<u64> = self.open.keys().copied().collect();
        for number in due {
            let Some(session) = self.open.get_mut(&number) else { continue };
            if !session.is_connected() && session.opened + CONNECT_WITHIN <= now {
                self.end(now, number, SessionEnd::Unanswered);
            } else if session.peer.next_event().is_some_and(|at| at <= now) {
                let worked = session.peer.on_time(now);
                self.after(now, number, worked.is_ok());
            }
        }
    }

    /// What happened in a session next; its end has been dealt with.
    pub fn take_happened(&mut self, now: Time) -> Option<(u64, Happened)> {
        loop {
            let mut sessions = self.open.values_mut();
            let (number, happened) = sessions.find_map(|session| {
                let happened = session.peer.take_happened()?;
                Some((session.number, happened))
            })?;
            match happened {
                // More offers than may be connected were answered before the first of them was.
                Happened::Connected if !self.on_connected(now, number) => continue,
                Happened::Gone(Why::NoConsent) => self.end(now, number, SessionEnd::Consent),
                Happened::Gone(Why::Closed) => self.end(now, number, SessionEnd::Closed),
                _ => {}
            }
            return Some((number, happened));
        }
    }

    /// Media can flow in a session. False if as many others are connected as may be: it has ended.
    fn on_connected(&mut self, now: Time, number: u64) -> bool {
        let others = self.open.values().filter(|other| other.number != number);
        let is_full = others.filter(|other| other.is_connected()).count() >= CONNECTED_MAX;
        if let Some(session) = self.open.get_mut(&number) {
            session.connected = Some(now);
        }
        if is_full {
            self.end(now, number, SessionEnd::Displaced);
        }
        !is_full
    }

    /// The next packet that leaves.
    pub fn take_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The rows of sessions that have ended.
    pub fn take_ended(&mut self) -> Vec<WebrtcSessionRow> {
        std::mem::take(&mut self.ended)
    }

    /// Ends a session: the other end is notified, and its row is written.
    pub fn end(&mut self, now: Time, number: u64, end: SessionEnd) {
        let Some(mut session) = self.open.remove(&number) else { return };
        session.peer.close(now);
        while let Some(transmit) = session.peer.take_transmit() {
            self.transmits.push_back(transmit);
        }
        let row = self.row(&session, Some((now, end)));
        self.ended.push(row);
    }

    /// Ends all others.
    pub fn keep_only(&mut self, now: Time, number: u64) {
        let others: Vec<u64> = self.open.keys().copied().filter(|other| *other != number).collect();
        for other in others {
            self.end(now, other, SessionEnd::Displaced);
        }
    }

    /// Ends everything, because the trial ends: the sessions' rows have no end.
    pub fn finish(&mut self, now: Time) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        for number in open {
            let Some(mut session) = self.open.remove(&number) else { continue };
            session.peer.close(now);
            while let Some(transmit) = session.peer.take_transmit() {
                self.transmits.push_back(transmit);
            }
            let row = self.row(&session, None);
            self.ended.push(row);
        }
    }

    fn row(&self, session: &Session, ended: Option<(Time, SessionEnd)>) -> WebrtcSessionRow {
        let local: Vec<String> = self.setup.local.iter().map(SocketAddr::to_string).collect();
        let agreed = session.agreed.as_ref();
        WebrtcSessionRow {
            t_ns: session.opened,
            endpoint: self.endpoint.as_str().into(),
            session: session.number,
            role: role(self.setup.way),
            signalling: self.signalling,
            answered_ns: session.answered,
            connected_ns: session.connected,
            first_packet_ns: session.first_packet,
            ended_ns: ended.map(|(at, _)| at),
            ended: ended.map(|(_, end)| end),
            candidates: local.join(" ").into(),
            pair: session.pair.map(|(local, remote)| format!("{local}>{remote}").into()),
            codec: agreed.map(|agreed| match &agreed.sound {
                Some((sound, _)) => format!("{}, {sound}", agreed.codec).into(),
                None => agreed.codec.as_str().into(),
            }),
            payload_types: agreed.map(|agreed| {
                let (video, again) = agreed.types;
                let sound = agreed.sound.as_ref().map(|(_, sound)| *sound);
                let all = [Some(video), again, sound].into_iter().flatten();
                all.map(|pt| pt.to_string()).collect::<Vec<_>>().join(" ").into()
            }),
            feedback: agreed.map(|agreed| agreed.feedback.as_str().into()),
            extensions: agreed.map(|agreed| agreed.extensions.as_str().into()),
        }
    }
}

/// What an end does in a session.
pub fn role(way: Way) -> FlowRole {
    match way {
        Way::Sends => FlowRole::Sender,
        Way::Receives => FlowRole::Receiver,
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::BitRate;

    use super::*;
    use crate::peer::Certificate;

    #[expect(clippy::disallowed_methods, reason = "str0m counts from an instant, whichever")]
    fn sessions(way: Way) -> Sessions {
        let local = if way == Way::Sends { "10.0.0.1:5000" } else { "10.0.0.2:5000" };
        let setup = Setup {
            way,
            local: vec![local.parse().unwrap()],
            certificate: Certificate::generate().unwrap(),
            rates: (BitRate::from_kbps(300), BitRate::from_kbps(2500)),
            answers: false,
            sound: false,
            plain: false,
        };
        Sessions::new("one".into(), Signalling::Whep, Instant::now(), setup)
    }

    #[test]
    fn a_thousand_offers_that_are_never_answered_do_not_grow_memory() {
        let mut viewer = sessions(Way::Receives);
        let (_, offered) = viewer.offer(Time::ZERO).unwrap();
        let mut publisher = sessions(Way::Sends);
        for n in 0..200 {
            publisher.answer(Time::from_millis(n), &offered.description).unwrap();
            assert!(publisher.len() <= UNCONNECTED_MAX);
        }
        let displaced = publisher.take_ended();
        assert_eq!(displaced.len(), 200 - UNCONNECTED_MAX);
        assert!(displaced.iter().all(|row| row.ended == Some(SessionEnd::Displaced)));
        assert_eq!(displaced[0].session, 1, "the oldest goes first");
        // Those that are left are given up.
        publisher.on_time(Time::from_secs(16));
        assert!(publisher.is_empty());
        let given_up = publisher.take_ended();
        assert!(given_up.iter().all(|row| row.ended == Some(SessionEnd::Unanswered)));
    }

    /// Hands packets over, each within a millisecond, until a session of the publisher is connected or that number is gone.
    /// True if it was connected.
    fn connects(publisher: &mut Sessions, viewer: &mut Sessions, number: u64) -> bool {
        let mut now = Time::from_secs(1);
        while now < Time::from_secs(10) {
            while let Some((_, happened)) = publisher.take_happened(now) {
                if let Happened::Connected = happened {
                    return true;
                }
            }
            if publisher.get(number).is_none() {
                return false;
            }
            let there = publisher.take_transmit().map(|transmit| (transmit, &mut *viewer));
            let packet = match there {
                Some(packet) => Some(packet),
                None => viewer.take_transmit().map(|transmit| (transmit, &mut *publisher)),
            };
            if let Some((Transmit { from, to, bytes }, receiver)) = packet {
                now += Duration::from_millis(1);
                receiver.on_packet(now, (from, to), &bytes);
            } else {
                let next = [publisher.next_event(), viewer.next_event()];
                now = now.max(next.into_iter().flatten().min().expect("neither is connected"));
                publisher.on_time(now);
                viewer.on_time(now);
            }
        }
        panic!("neither connected nor gone within 9 s");
    }

    #[test]
    fn of_offers_that_were_answered_too_early_the_last_to_connect_gives_way() {
        for others in [CONNECTED_MAX - 1, CONNECTED_MAX] {
            let (mut publisher, mut viewer) = (sessions(Way::Sends), sessions(Way::Receives));
            let now = Time::from_secs(1);
            let (ours, offered) = viewer.offer(now).unwrap();
            let (number, answer) = publisher.answer(now, &offered.description).unwrap();
            for _ in 0..others {
                let (other, _) = publisher.answer(now, &offered.description).unwrap();
                publisher.get(other).unwrap().connected = Some(now);
            }
            viewer.on_answer(now, ours, (offered, &answer)).unwrap();
            let is_full = others == CONNECTED_MAX;
            assert_eq!(connects(&mut publisher, &mut viewer, number), !is_full, "{others}");
            assert_eq!(publisher.connected().len(), CONNECTED_MAX);
            let ended: Vec<_> = publisher.take_ended().iter().map(|row| row.ended).collect();
            assert_eq!(ended, if is_full { vec![Some(SessionEnd::Displaced)] } else { vec![] });
        }
    }

    #[test]
    fn a_refused_offer_leaves_nothing_and_names_differ() {
        let mut publisher = sessions(Way::Sends);
        assert!(publisher.answer(Time::ZERO, "v=0").is_err());
        assert!(publisher.is_empty() && publisher.take_ended().is_empty());
        let (_, offered) = sessions(Way::Receives).offer(Time::ZERO).unwrap();
        let (first, _) = publisher.answer(Time::ZERO, &offered.description).unwrap();
        let (second, _) = publisher.answer(Time::ZERO, &offered.description).unwrap();
        let name = publisher.get(first).unwrap().name.clone();
        // Not from a seed: the first session of another publisher with the same one has another name.
        let mut other = sessions(Way::Sends);
        let (its_first, _) = other.answer(Time::ZERO, &offered.description).unwrap();
        assert_ne!(other.get(its_first).unwrap().name, name);
        assert_eq!(name.len(), 32);
        assert_eq!((publisher.named(&name), publisher.named("no")), (Some(first), None));
        assert_ne!(publisher.get(second).unwrap().name, name);
        publisher.end(Time::from_secs(1), first, SessionEnd::Deleted);
        assert_eq!((publisher.named(&name), publisher.len()), (None, 1));
        let row = &publisher.take_ended()[0];
        assert_eq!(row.ended_ns, Some(Time::from_secs(1)));
        assert_eq!((row.role, row.connected_ns), (FlowRole::Sender, None));
        assert!(row.codec.as_ref().unwrap().starts_with("H264/90000"));
    }
}

//! Agents and watchers over loopback, with real TLS. The test provides what the agent records: no
//! probes are loaded here.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use suiro_layers::agent::keys::Role;
use suiro_layers::agent::message::Head;
use suiro_layers::agent::{Agent, AgentError, Gap, Identity, Limits, Tap, Watched, keys, listen};
use suiro_layers::{Event, Flow, Key, Moment, Pause, Point, PointStatus, Protocol, Second};

#[expect(clippy::disallowed_methods, reason = "certificates are checked against the real time")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// A clock that advances by a microsecond each time it is read.
fn clock() -> Moment {
    static NOW: AtomicU64 = AtomicU64::new(1);
    let monotonic_ns = NOW.fetch_add(1, Ordering::Relaxed) * 1000;
    Moment { monotonic_ns, realtime_ns: monotonic_ns }
}

/// When the tap began.
const BEGIN: Moment = Moment { monotonic_ns: 0, realtime_ns: 0 };

/// What the tap has counted since its start, the seconds that it has not yet handed over, and its host.
#[derive(Default)]
struct Counts {
    lost: u64,
    seconds: Vec<Second>,
    /// How often the host has rebooted.
    reboots: u32,
    /// The address of its only flow's sender, after 10.0.0.1.
    sender: u8,
}

/// Sees what the test sends it.
struct Told<'s> {
    events: Receiver<Vec<Event>>,
    counts: &'s Mutex<Counts>,
    /// Where it confirms that the agent has the earlier events.
    taken: Sender<()>,
    gave: bool,
    /// Events since its start.
    given: u64,
    /// When the latest came.
    end: Moment,
}

impl Tap for Told<'_> {
    fn poll(&mut self, events: &mut Vec<Event>) -> Result<Head, String> {
        if std::mem::take(&mut self.gave) {
            // The test may have ended.
            let _ = self.taken.send(());
        }
        if let Ok(new) = self.events.recv_timeout(Duration::from_millis(20)) {
            self.given += new.len() as u64;
            events.extend(new);
            self.gave = true;
            self.end = clock();
        }
        let mut counts = self.counts.lock().unwrap();
        let flow = Flow {
            protocol: Protocol::Udp,
            local: ([10, 0, 0, 1 + counts.sender], 5000).into(),
            remote: ([10, 0, 1, 0], 5004).into(),
            sent: true,
        };
        let status = PointStatus {
            point: Point::SendIp,
            missing: None,
            events: self.given,
            lost: counts.lost,
            skipped: 0,
        };
        Ok(Head {
            host: "studio".into(),
            boot_id: format!("boot {}", counts.reboots),
            kernel: "kernel".into(),
            start: BEGIN,
            end: self.end,
            asked: Vec::new(),
            flows: vec![flow],
            causes: Vec::new(),
            points: vec![status],
            fragments: 0,
            unjoined: 0,
            unplaced: 0,
            scheduling: std::mem::take(&mut counts.seconds),
            clock: None,
            cost: None,
        })
    }
}

fn events(numbers: std::ops::Range<u64>) -> Vec<Event> {
    let event = |number: u64| Event {
        t_ns: u64::MAX / 2 + number,
        point: Point::SendIp,
        direction_flow: 0,
        key: Key::IpId { id: number as u16, check: 0 },
        ip_id: number as u16,
        payload_bytes: 100,
        segments: 1,
        cause: None,
    };
    numbers.map(event).collect()
}

/// The test's control of an agent.
struct Fixture<'s> {
    address: SocketAddr,
    folder: &'s Path,
    tap: Sender<Vec<Event>>,
    taken: Receiver<()>,
    counts: &'s Mutex<Counts>,
    complaints: &'s Mutex<Vec<String>>,
}

impl Fixture<'_> {
    /// The agent sees these events, and has them when this returns.
    fn sees(&self, numbers: std::ops::Range<u64>) {
        self.tap.send(events(numbers)).unwrap();
        self.taken.recv().unwrap();
    }

    /// With the next events, the agent has so many losses of its own in all, and these further seconds.
    fn counts(&self, lost: u64, seconds: std::ops::Range<u32>) {
        let second = |second| Second {
            second,
            waiting_ns: None,
            running_ns: None,
            softirq_late_ns: Some(1_000_000),
        };
        let mut counts = self.counts.lock().unwrap();
        counts.lost = lost;
        counts.seconds = seconds.map(second).collect();
    }

    /// The agent sees these events of the flow of another sender, which has the same number in the tap.
    fn sees_of(&self, sender: u8, numbers: std::ops::Range<u64>) {
        self.counts.lock().unwrap().sender = sender;
        self.sees(numbers);
    }

    fn watcher(&self, identity: &str) -> Watched {
        let config = Identity::read(&self.folder.join(identity)).unwrap().client().unwrap();
        Watched::new(&self.address.to_string(), config, clock)
    }
}

/// Credentials for `127.0.0.1` and `watcher`, an agent, and the test.
fn with_agent(limits: Limits, test: impl FnOnce(&Fixture)) {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &["127.0.0.1", "watcher"], now());
    let server = Identity::read(&folder.path().join("127.0.0.1")).unwrap().server().unwrap();
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let ((tap, told), (taking, taken)) = (channel(), channel());
    let agent = Agent::new(server, limits, clock);
    let (stopped, complaints) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let counts = Mutex::new(Counts::default());
    let tell = |what: &str| complaints.lock().unwrap().push(what.to_owned());
    std::thread::scope(|scope| {
        let told = Told {
            events: told,
            counts: &counts,
            taken: taking,
            gave: false,
            given: 0,
            end: BEGIN,
        };
        scope.spawn(|| agent.run(&listener, told, &stopped, &tell).unwrap());
        // The agent ends whatever the result of the test.
        let fixture = Fixture {
            address,
            folder: folder.path(),
            tap,
            taken,
            counts: &counts,
            complaints: &complaints,
        };
        let end = Ends(&stopped);
        test(&fixture);
        drop(end);
    });
}

struct Ends<'s>(&'s AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn make(folder: &Path, names: &[&str], now: SystemTime) {
    let role = |name: &&str| if *name == "127.0.0.1" { Role::Host } else { Role::Watcher };
    let names: Vec<_> = names.iter().map(|name| (name.to_string(), role(name))).collect();
    keys::make(folder, &names, 30, now).unwrap();
}

fn ids(watched: &Watched) -> Vec<u16> {
    watched.recording().unwrap().events.iter().map(|event| event.ip_id).collect()
}

#[test]
fn a_watcher_gets_every_event_once_also_over_a_link_that_breaks() {
    with_agent(Limits::default(), |fixture| {
        let mut watched = fixture.watcher("watcher");
        watched.update().unwrap();
        fixture.sees(0..100);
        watched.update().unwrap();
        assert_eq!(ids(&watched), (0..100).collect::<Vec<_>>());
        // The connection breaks; the agent goes on.
        watched.hang_up();
        fixture.sees(100..150);
        fixture.sees(150..200);
        watched.update().unwrap();
        assert_eq!(ids(&watched), (0..200).collect::<Vec<_>>());
        assert_eq!(watched.gaps(), []);
        assert!(watched.samples().iter().all(|s| {
            s.asked_ns < s.received_ns && s.received_ns < s.sent_ns && s.sent_ns < s.answered_ns
        }));
        watched.end().unwrap();
        assert_eq!(ids(&watched).len(), 200);
    });
}

#[test]
fn a_watch_that_is_stopped_still_ends_its_recording() {
    with_agent(Limits::default(), |fixture| {
        let mut watched = fixture.watcher("watcher");
        watched.update().unwrap();
        fixture.sees(0..10);
        watched.stopper().stop();
        watched.end().unwrap();
        assert_eq!((ids(&watched), watched.gaps()), ((0..10).collect(), vec![]));
        // The agent has ended it: who comes now has a new one.
        let mut other = fixture.watcher("watcher");
        other.update().unwrap();
        fixture.sees(10..20);
        other.end().unwrap();
        assert_eq!(ids(&other), (10..20).collect::<Vec<_>>());
    });
}

#[test]
fn events_discarded_by_an_agent_are_reported() {
    with_agent(Limits { events: 40, ..Limits::default() }, |fixture| {
        let mut watched = fixture.watcher("watcher");
        watched.update().unwrap();
        fixture.sees(0..100);
        watched.update().unwrap();
        assert_eq!(ids(&watched), (60..100).collect::<Vec<_>>());
        assert_eq!(watched.gaps(), [Gap::Missed(60)]);
        assert_eq!(counted(&watched).0, 60, "they are no losses of a layer");
    });
}

#[test]
fn events_fetched_by_another_watcher_are_reported_as_missing() {
    with_agent(Limits::default(), |fixture| {
        let (mut first, mut second) = (fixture.watcher("watcher"), fixture.watcher("watcher"));
        first.update().unwrap();
        second.update().unwrap();
        fixture.sees(0..10);
        first.update().unwrap();
        fixture.sees(10..20);
        first.update().unwrap();
        second.update().unwrap();
        assert_eq!(ids(&second), (10..20).collect::<Vec<_>>());
        assert_eq!((first.gaps(), second.gaps()), (vec![], vec![Gap::Missed(10)]));
        assert_eq!((counted(&first).0, counted(&second).0), (0, 10));
    });
}

#[test]
fn a_recording_that_was_ended_restarts_and_the_gap_is_reported() {
    with_agent(Limits::default(), |fixture| {
        let mut watched = fixture.watcher("watcher");
        watched.update().unwrap();
        fixture.sees(0..10);
        watched.update().unwrap();
        let mut other = fixture.watcher("watcher");
        other.end().unwrap();
        fixture.sees(10..20);
        assert!(matches!(watched.update(), Err(AgentError::Refused { .. })));
        watched.update().unwrap();
        fixture.sees(20..30);
        watched.update().unwrap();
        assert_eq!(ids(&watched), (0..10).chain(20..30).collect::<Vec<_>>());
        assert!(
            matches!(watched.gaps()[..], [Gap::Restarted { from_ns, to_ns }] if from_ns < to_ns)
        );
        let pauses = watched.recording().unwrap().pauses;
        assert!(matches!(pauses[..], [Pause { from_ns, to_ns }] if from_ns < to_ns), "{pauses:?}");
    });
}

/// From the times of two boots in one recording, the report would show delays and losses that did not happen.
#[test]
fn a_recording_ends_where_its_host_reboots() {
    with_agent(Limits::default(), |fixture| {
        let mut watched = fixture.watcher("watcher");
        watched.update().unwrap();
        fixture.sees(0..10);
        watched.update().unwrap();
        let (before, samples) = (watched.recording().unwrap(), watched.samples().len());
        assert_eq!((before.events.len(), watched.is_over()), (10, false));
        // Its session ends, and whoever asks next finds another boot.
        fixture.watcher("watcher").end().unwrap();
        fixture.counts.lock().unwrap().reboots = 1;
        fixture.sees(10..20);
        assert!(matches!(watched.update(), Err(AgentError::Refused { .. })));
        watched.update().unwrap();
        fixture.sees(20..30);
        watched.update().unwrap();
        watched.end().unwrap();
        assert_eq!((watched.gaps(), watched.is_over()), (vec![Gap::Rebooted], true));
        assert_eq!(watched.recording().unwrap(), before);
        assert_eq!(watched.samples().len(), samples, "its clock is another one");
        // Nothing is recorded any more on behalf of this watcher.
        let mut other = fixture.watcher("watcher");
        other.update().unwrap();
        fixture.sees(30..40);
        other.end().unwrap();
        assert_eq!(ids(&other), (30..40).collect::<Vec<_>>());
    });
}

/// What came later has not been fetched, and would be lost otherwise.
#[test]
fn a_recording_ends_where_the_tap_ended() {
    with_agent(Limits::default(), |fixture| {
        let mut watched = fixture.watcher("watcher");
        watched.update().unwrap();
        let begun = watched.recording().unwrap();
        assert_eq!(begun.end, begun.start, "the tap has ended no poll since");
        fixture.sees(0..10);
        let later = clock();
        watched.update().unwrap();
        let end = watched.recording().unwrap().end;
        assert!(begun.start.monotonic_ns < end.monotonic_ns, "{end:?}");
        assert!(end.monotonic_ns < later.monotonic_ns, "{end:?}, asked after {later:?}");
    });
}

/// A tap that has run for weeks numbers its flows anew.
#[test]
fn a_session_has_the_flows_that_it_saw() {
    with_agent(Limits::default(), |fixture| {
        fixture.sees(0..1);
        let mut watched = fixture.watcher("watcher");
        watched.update().unwrap();
        assert!(watched.recording().unwrap().flows.is_empty());
        fixture.sees_of(1, 1..3);
        fixture.sees_of(2, 3..4);
        watched.update().unwrap();
        fixture.sees_of(1, 4..5);
        watched.update().unwrap();
        let recording = watched.recording().unwrap();
        let senders: Vec<_> = recording.flows.iter().map(|flow| flow.local.to_string()).collect();
        assert_eq!(senders, ["10.0.0.2:5000", "10.0.0.3:5000"]);
        let flows: Vec<u16> = recording.events.iter().map(|event| event.direction_flow).collect();
        assert_eq!((flows, ids(&watched)), (vec![0, 0, 1, 0], vec![1, 2, 3, 4]));
    });
}

/// Events that the recorder lost, and the seconds, of a watcher's recording.
fn counted(watched: &Watched) -> (u64, Vec<u32>) {
    let recording = watched.recording().unwrap();
    let seconds = recording.scheduling.iter().map(|second| second.second).collect();
    (recording.points[0].lost, seconds)
}

#[test]
fn a_session_has_nothing_of_what_the_agent_counted_before() {
    with_agent(Limits::default(), |fixture| {
        fixture.counts(1000, 0..3600);
        fixture.sees(0..1);
        let mut watched = fixture.watcher("watcher");
        watched.update().unwrap();
        assert_eq!(counted(&watched), (0, vec![]));
        // The agent is a little older than the session, so these began that much less than an hour after it.
        fixture.counts(1007, 3600..3602);
        fixture.sees(1..2);
        watched.update().unwrap();
        assert_eq!(counted(&watched), (7, vec![3599, 3600]));
        // Of what it counted between two sessions, neither has anything. The second adds to the first.
        fixture.watcher("watcher").end().unwrap();
        fixture.counts(1012, 3602..3603);
        fixture.sees(2..3);
        assert!(matches!(watched.update(), Err(AgentError::Refused { .. })));
        watched.update().unwrap();
        assert_eq!(counted(&watched), (7, vec![3599, 3600]));
        fixture.counts(1014, 3603..3604);
        fixture.sees(3..4);
        watched.update().unwrap();
        assert_eq!(counted(&watched), (9, vec![3599, 3600, 3602]));
    });
}

/// The watcher's error when it shows these credentials.
fn refused(fixture: &Fixture, identity: &str) -> String {
    let error = fixture.watcher(identity).update().unwrap_err();
    assert!(!error.may_pass(), "{error}");
    error.to_string()
}

#[test]
fn nobody_is_served_without_credentials_of_the_same_authority() {
    with_agent(Limits::default(), |fixture| {
        let other = fixture.folder.join("other");
        make(&other, &["127.0.0.1", "watcher"], now());
        let stranger = refused(fixture, "other/watcher");
        assert!(stranger.contains("issued by another authority\nhint: "), "{stranger}");
        // It trusts the agent's authority, but has a certificate from another.
        let half = fixture.folder.join("half");
        fs::create_dir(&half).unwrap();
        fs::copy(fixture.folder.join("authority.pem"), half.join("authority.pem")).unwrap();
        for file in ["certificate.pem", "key.pem"] {
            fs::copy(other.join("watcher").join(file), half.join(file)).unwrap();
        }
        let forged = refused(fixture, "half");
        assert!(forged.contains("does not trust our certificate's authority"), "{forged}");

        let long_ago = now() - Duration::from_secs(40 * 86_400);
        make(fixture.folder, &["late"], long_ago);
        let late = refused(fixture, "late");
        assert!(late.contains("reports that our certificate has expired\nhint: "), "{late}");
        assert!(fixture.watcher("watcher").update().is_ok(), "others are served as before");
    });
}

#[test]
fn an_agent_that_is_not_who_was_called_is_not_believed() {
    with_agent(Limits::default(), |fixture| {
        let config = Identity::read(&fixture.folder.join("watcher")).unwrap().client().unwrap();
        let peer = format!("localhost:{}", fixture.address.port());
        let error = Watched::new(&peer, Arc::clone(&config), clock).update().unwrap_err();
        assert!(error.to_string().contains("is for another name\nhint: "), "{error}");
    });
}

#[test]
fn credentials_that_are_missing_or_damaged_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Identity::read(&folder.path().join("studio")).err().unwrap().to_string();
    assert!(missing.contains("authority.pem") && missing.contains("hint: run suiro layers keys"));
    make(folder.path(), &["studio"], now());
    let own = folder.path().join("studio");
    fs::write(own.join("certificate.pem"), "no certificate").unwrap();
    let damaged = Identity::read(&own).err().unwrap().to_string();
    assert!(
        damaged.contains("certificate.pem: it does not contain a certificate\nhint: "),
        "{damaged}"
    );
    let names = |name: &str| keys::make(folder.path(), &[(name.into(), Role::Host)], 30, now());
    for wrong in ["", "../studio", ".hidden", "a b", "a/b"] {
        assert!(names(wrong).unwrap_err().to_string().contains("is not a host name"), "{wrong}");
    }
}

/// Its certificate would be replaced by one that its agent cannot use.
#[test]
fn a_host_and_a_watcher_have_no_name_in_common() {
    let folder = tempfile::tempdir().unwrap();
    let make = |names: &[(&str, Role)]| {
        let names: Vec<_> = names.iter().map(|(name, role)| ((*name).to_owned(), *role)).collect();
        keys::make(folder.path(), &names, 30, now()).map_err(|error| error.to_string())
    };
    let both = make(&[("a", Role::Host), ("a", Role::Watcher)]).unwrap_err();
    assert!(
        both.starts_with("`a` is a watcher already") || both.starts_with("`a` is a host"),
        "{both}"
    );
    make(&[("a", Role::Host), ("b", Role::Watcher)]).unwrap();
    let host = make(&[("c", Role::Watcher), ("a", Role::Watcher)]).unwrap_err();
    assert!(host.starts_with("`a` is a host already"), "{host}");
    assert!(make(&[("b", Role::Host)]).unwrap_err().starts_with("`b` is a watcher already"));
    assert!(!folder.path().join("c").exists(), "nothing is half made");
    make(&[("a", Role::Host), ("b", Role::Watcher)]).expect("they are renewed");
}

#[test]
fn hostile_bytes_get_no_answer_and_harm_nobody() {
    with_agent(Limits::default(), |fixture| {
        let noise: Vec<u8> =
            (0..5000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for bytes in [&noise[..], b"GET / HTTP/1.1\r\n\r\n", &[0x16, 3, 1, 0xff, 0xff]] {
            #[expect(clippy::disallowed_methods, reason = "a stranger's socket")]
            let mut stranger = TcpStream::connect(fixture.address).unwrap();
            stranger.write_all(bytes).unwrap();
            stranger.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = Vec::new();
            // It may reset the connection instead of closing it.
            let _ = stranger.read_to_end(&mut answer);
            // At most a TLS alert.
            assert!(answer.len() <= 7, "{answer:?}");
        }
        fixture.watcher("watcher").update().unwrap();
        assert!(!fixture.complaints.lock().unwrap().is_empty());
    });
}

#[expect(clippy::disallowed_methods, reason = "a stranger's socket")]
fn strangers(fixture: &Fixture, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(fixture.address).unwrap()).collect()
}

#[test]
fn idle_strangers_take_no_watchers_place() {
    with_agent(Limits::default(), |fixture| {
        let held = strangers(fixture, 40);
        let mut watchers: Vec<_> = (0..8).map(|_| fixture.watcher("watcher")).collect();
        watchers.iter_mut().for_each(|watcher| watcher.update().unwrap());
        // The oldest strangers had to go for the newer.
        let mut oldest = &held[0];
        oldest.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(oldest.read(&mut [0]).unwrap_or(0), 0);
        assert!(fixture.watcher("watcher").update().is_err(), "there are eight places");
        watchers[0].hang_up();
    });
}

#[test]
fn a_handshake_that_drips_is_cut_off() {
    // The test's clock goes on by a microsecond each time it is read: some hundred looks.
    let limits = Limits { handshake_ns: 100_000, ..Limits::default() };
    with_agent(limits, |fixture| {
        let mut slow = strangers(fixture, 1).remove(0);
        // The head of a record of 512 bytes, which never come.
        slow.write_all(&[0x16, 3, 1, 2, 0, 1]).unwrap();
        slow.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(slow.read(&mut [0]).unwrap_or(0), 0);
        let complaints = fixture.complaints.lock().unwrap().join("\n");
        assert!(
            !complaints.contains("temporarily"),
            "the silence of 30 s came first: {complaints}"
        );
    });
}

#[test]
fn a_hosts_certificate_is_no_watchers() {
    with_agent(Limits::default(), |fixture| {
        let told = refused(fixture, "127.0.0.1");
        assert!(told.contains("certificate is for another purpose\nhint: "), "{told}");
    });
}

#[test]
fn a_stopper_ends_the_wait_for_a_silent_peer() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), &["127.0.0.1", "watcher"], now());
    let silent = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let peer = silent.local_addr().unwrap().to_string();
    let config = Identity::read(&folder.path().join("watcher")).unwrap().client().unwrap();
    let mut watched = Watched::new(&peer, config, clock);
    let stopper = watched.stopper();
    let (begin, begun) = (now(), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            begun.wait();
            stopper.stop();
        });
        begun.wait();
        assert!(watched.update().is_err());
    });
    assert!(watched.end().is_err());
    assert!(now().duration_since(begin).unwrap() < Duration::from_secs(10));
}

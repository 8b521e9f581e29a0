//! A toy of one sender, one link and one player, in virtual time: enough to fill every table of a
//! results folder with plausible rows. It measures nothing and claims nothing; the real link core,
//! kernel and players do that.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use suiro_analysis::Records;
use suiro_record::tables::{LinkRow, PlayerRow, RequestRow, TcpRow};
use suiro_record::words::{
    Direction, LinkCause, PlayerState, RequestKind, TcpSource, TcpState, Track, Verdict,
};
use suiro_units::{Random, Seed};

const MS: i64 = 1_000_000;
const MSS: i64 = 1448;
const HEADERS: i64 = 52;
const ONE_WAY_NS: i64 = 20 * MS;
const SEGMENT_S: f64 = 2.0;
const RUNGS: [i64; 4] = [600_000, 1_500_000, 3_000_000, 5_500_000];

/// What a cell asks of the toy.
#[derive(Clone, Copy)]
pub struct Setup {
    /// `reno`, `cubic` or anything else for a delay-based one.
    pub tcp: &'static str,
    /// Share of the estimate that the player dares to use.
    pub boldness: f64,
    /// Length of the queue in bytes.
    pub queue_bytes: i64,
    /// The link's rate in bit/s, by seconds since the trial began and its length.
    pub rate: Rate,
    /// Length of the trial.
    pub seconds: f64,
}

/// A link's rate over a trial.
pub type Rate = fn(f64, f64) -> f64;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ack { rtt_ns: i64 },
    Loss { sent_ns: i64 },
    Tick,
}

/// The toy.
pub struct Toy {
    setup: Setup,
    random: Random,
    now: i64,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    free_ns: i64,
    waiting: VecDeque<(i64, i64)>,
    packets: i64,
    tcp: Tcp,
    player: Player,
    records: Records,
}

struct Tcp {
    cwnd: f64,
    ssthresh: f64,
    most: f64,
    reduced_ns: i64,
    in_flight: i64,
    srtt_ns: f64,
    base_ns: i64,
    to_send: i64,
    acked: i64,
    retransmits: i64,
}

struct Player {
    state: PlayerState,
    buffer_s: f64,
    position_s: f64,
    rung: usize,
    shown: Option<i64>,
    queue: VecDeque<(f64, i64)>,
    segment: i64,
    asked: Option<(i64, i64, Option<i64>)>,
    estimate: Option<f64>,
    stalls: i64,
    rests_until: i64,
}

/// Full, then under a fifth, then half.
pub fn falls_and_rises(t_s: f64, seconds: f64) -> f64 {
    match t_s / seconds {
        share if share < 0.3 => 8e6,
        share if share < 0.6 => 1.5e6,
        _ => 4e6,
    }
}

/// Runs one trial.
pub fn run(setup: Setup, seed: Seed) -> Records {
    let mut toy = Toy::new(setup, seed);
    let end = (setup.seconds * 1e9) as i64;
    toy.events.push(Reverse((0, Event::Tick)));
    while let Some(Reverse((now, event))) = toy.events.pop() {
        if now >= end {
            break;
        }
        toy.now = now;
        match event {
            Event::Ack { rtt_ns } => toy.on_ack(rtt_ns),
            Event::Loss { sent_ns } => toy.on_loss(sent_ns),
            Event::Tick => toy.on_tick(),
        }
        toy.send();
    }
    toy.records
}

impl Toy {
    fn new(setup: Setup, seed: Seed) -> Self {
        let tcp = Tcp {
            cwnd: 10.0,
            ssthresh: f64::INFINITY,
            most: 10.0,
            reduced_ns: 0,
            in_flight: 0,
            srtt_ns: 0.0,
            base_ns: i64::MAX,
            to_send: 0,
            acked: 0,
            retransmits: 0,
        };
        let player = Player {
            state: PlayerState::Starting,
            buffer_s: 0.0,
            position_s: 0.0,
            rung: 0,
            shown: None,
            queue: VecDeque::new(),
            segment: 0,
            asked: None,
            estimate: None,
            stalls: 0,
            rests_until: 0,
        };
        Self {
            setup,
            random: seed.random(),
            now: 0,
            events: BinaryHeap::new(),
            free_ns: 0,
            waiting: VecDeque::new(),
            packets: 0,
            tcp,
            player,
            records: Records::default(),
        }
    }

    fn send(&mut self) {
        while self.tcp.to_send > 0 && (self.tcp.in_flight as f64) < self.tcp.cwnd {
            self.tcp.to_send -= MSS;
            self.tcp.in_flight += 1;
            self.offer();
        }
    }

    /// Offers one full packet to the link and records its fate.
    fn offer(&mut self) {
        let now = self.now;
        while self.waiting.front().is_some_and(|(start, _)| *start <= now) {
            self.waiting.pop_front();
        }
        let queue_bytes: i64 = self.waiting.iter().map(|(_, size)| size).sum();
        let size = MSS + HEADERS;
        let mut row = self.row(Direction::Down, size, Some(MSS));
        row.queue_bytes = queue_bytes;
        row.queue_packets = self.waiting.len() as i64;
        let by_chance = self.random.chance(0.0004);
        if by_chance || queue_bytes + size > self.setup.queue_bytes {
            row.verdict = Verdict::Dropped;
            row.cause = Some(if by_chance { LinkCause::Loss } else { LinkCause::Queue });
            let told = now + self.tcp.srtt_ns.max(50e6) as i64;
            self.events.push(Reverse((told, Event::Loss { sent_ns: now })));
        } else {
            let start = self.free_ns.max(now);
            let took =
                (size * 8) as f64 * 1e9 / (self.setup.rate)(start as f64 / 1e9, self.setup.seconds);
            self.free_ns = start + took as i64;
            self.waiting.push_back((start, size));
            self.deliver(&mut row, start, self.free_ns + ONE_WAY_NS);
            let acked = self.free_ns + 2 * ONE_WAY_NS;
            self.events.push(Reverse((acked, Event::Ack { rtt_ns: acked - now })));
        }
        self.records.link.push(row);
    }

    fn row(
        &mut self,
        direction: Direction,
        size_bytes: i64,
        payload_bytes: Option<i64>,
    ) -> LinkRow {
        self.packets += 1;
        LinkRow {
            t_ns: self.now,
            link: "bottleneck".into(),
            direction,
            packet: self.packets,
            flow: "tcp 10.0.0.1:80>10.0.0.2:40000".into(),
            size_bytes,
            payload_bytes,
            queue_bytes: 0,
            queue_packets: 0,
            verdict: Verdict::Delivered,
            cause: None,
            ecn_marked: false,
            dequeued_ns: None,
            scheduled_ns: None,
            departed_ns: None,
            attempts: None,
        }
    }

    fn deliver(&mut self, row: &mut LinkRow, start: i64, scheduled: i64) {
        let late = (self.random.exponential() * 20_000.0) as i64;
        row.dequeued_ns = Some(start);
        row.scheduled_ns = Some(scheduled);
        row.departed_ns = Some(scheduled + late);
    }

    fn on_ack(&mut self, rtt_ns: i64) {
        self.tcp.on_ack(self.setup.tcp, self.now, rtt_ns);
        if self.tcp.acked / MSS % 2 == 0 {
            let mut row = self.row(Direction::Up, HEADERS, Some(0));
            row.t_ns -= ONE_WAY_NS;
            let (start, scheduled) = (row.t_ns, self.now);
            self.deliver(&mut row, start, scheduled);
            self.records.link.push(row);
        }
        self.receive();
    }

    fn on_loss(&mut self, sent_ns: i64) {
        self.tcp.on_loss(self.setup.tcp, self.now, sent_ns);
    }

    /// The player takes what has come, and ends its request with the last byte.
    fn receive(&mut self) {
        let Some((asked_ns, wanted, first_ns)) = self.player.asked else { return };
        let first_ns = first_ns.unwrap_or(self.now - ONE_WAY_NS);
        self.player.asked = Some((asked_ns, wanted, Some(first_ns)));
        if self.tcp.acked < wanted {
            return;
        }
        let rung_bps = RUNGS[self.player.rung];
        let body = (rung_bps as f64 * SEGMENT_S / 8.0) as i64;
        let done = self.now - ONE_WAY_NS;
        let sample = body as f64 * 8e9 / (done - asked_ns).max(1) as f64;
        let estimate = self.player.estimate.map_or(sample, |old| 0.6 * old + 0.4 * sample);
        self.records.requests.push(RequestRow {
            t_ns: asked_ns,
            endpoint: "viewer".into(),
            url: format!("/video/{rung_bps}/{}.m4s", self.player.segment).into(),
            kind: RequestKind::Segment,
            track: Some(Track::Video),
            rung_bps: Some(rung_bps),
            segment: Some(self.player.segment),
            media_ms: Some((self.player.segment as f64 * SEGMENT_S * 1e3) as i64),
            duration_ms: Some((SEGMENT_S * 1e3) as i64),
            body_bytes: body,
            first_byte_ns: Some(first_ns),
            done_ns: Some(done),
            status: Some(200),
            error: None,
            ..RequestRow::default()
        });
        let player = &mut self.player;
        player.queue.push_back((SEGMENT_S, rung_bps));
        player.buffer_s += SEGMENT_S;
        player.segment += 1;
        player.estimate = Some(estimate);
        player.asked = None;
        player.rests_until = self.now + (self.random.uniform() * 300.0) as i64 * MS;
    }

    /// Every 10 ms: the socket is sampled, the player plays and perhaps asks for more.
    fn on_tick(&mut self) {
        self.events.push(Reverse((self.now + 10 * MS, Event::Tick)));
        self.records.tcp.push(self.tcp.sample(self.now, self.setup.tcp));
        let before = (self.player.state, self.player.shown);
        self.player.play(0.01);
        if before != (self.player.state, self.player.shown) || self.now % (100 * MS) == 0 {
            self.records.player.push(self.player.sample(self.now));
        }
        let available = self.player.segment as f64 * SEGMENT_S - 6.0 <= self.now as f64 / 1e9;
        let rested = self.player.rests_until <= self.now;
        if self.player.asked.is_none() && self.player.buffer_s < 6.0 && available && rested {
            self.ask();
        }
    }

    fn ask(&mut self) {
        let usable = self.player.estimate.unwrap_or(0.0) * self.setup.boldness;
        let fits = RUNGS.iter().rposition(|rung| *rung as f64 <= usable).unwrap_or(0);
        self.player.rung = fits.min(self.player.rung + 1);
        let body = (RUNGS[self.player.rung] as f64 * SEGMENT_S / 8.0) as i64;
        self.tcp.to_send = body;
        self.player.asked = Some((self.now, self.tcp.acked + body, None));
        let mut row = self.row(Direction::Up, HEADERS + 180, Some(180));
        let (start, scheduled) = (self.now, self.now + ONE_WAY_NS);
        self.deliver(&mut row, start, scheduled);
        self.records.link.push(row);
    }
}

impl Tcp {
    fn on_ack(&mut self, tcp: &str, now: i64, rtt_ns: i64) {
        let limited = self.in_flight as f64 + 1.0 >= self.cwnd;
        self.in_flight -= 1;
        self.acked += MSS;
        self.base_ns = self.base_ns.min(rtt_ns);
        let rtt = rtt_ns as f64;
        self.srtt_ns = if self.srtt_ns == 0.0 { rtt } else { self.srtt_ns * 0.875 + rtt * 0.125 };
        if !limited {
            return;
        }
        if self.cwnd < self.ssthresh && tcp != "vegas" {
            self.cwnd += 1.0;
            return;
        }
        self.cwnd += match tcp {
            "reno" => 1.0 / self.cwnd,
            "cubic" => {
                let (c, since) = (0.4, (now - self.reduced_ns) as f64 / 1e9);
                let k = (self.most * 0.3 / c).cbrt();
                let target = c * (since - k).powi(3) + self.most;
                ((target - self.cwnd) / self.cwnd).clamp(0.0, 0.5)
            }
            _ => {
                let queued = self.cwnd * (1.0 - self.base_ns as f64 / self.srtt_ns);
                let step =
                    if self.ssthresh.is_infinite() && queued < 1.0 { 0.5 } else { 1.0 / self.cwnd };
                if queued < 2.0 {
                    step
                } else if queued > 4.0 {
                    -1.0 / self.cwnd
                } else {
                    0.0
                }
            }
        };
        self.cwnd = self.cwnd.max(2.0);
    }

    fn on_loss(&mut self, tcp: &str, now: i64, sent_ns: i64) {
        self.in_flight -= 1;
        self.to_send += MSS;
        self.retransmits += 1;
        if sent_ns >= self.reduced_ns {
            self.most = self.cwnd;
            self.cwnd = (self.cwnd * if tcp == "cubic" { 0.7 } else { 0.5 }).max(2.0);
            self.ssthresh = self.cwnd;
            self.reduced_ns = now;
        }
    }

    fn sample(&self, t_ns: i64, congestion: &str) -> TcpRow {
        let ssthresh = self.ssthresh.is_finite().then(|| self.ssthresh as i64 * MSS);
        TcpRow {
            t_ns,
            host: "server".into(),
            socket: "10.0.0.1:80>10.0.0.2:40000".into(),
            source: TcpSource::SockDiag,
            congestion: congestion.into(),
            state: TcpState::Open,
            cwnd_bytes: self.cwnd as i64 * MSS,
            ssthresh_bytes: ssthresh,
            mss_bytes: MSS,
            srtt_us: (self.srtt_ns / 1e3) as i64,
            rttvar_us: 1_000,
            min_rtt_us: (self.base_ns != i64::MAX).then_some(self.base_ns / 1_000),
            in_flight_bytes: self.in_flight * MSS,
            pacing_rate_bps: None,
            delivery_rate_bps: None,
            retransmits: self.retransmits,
            acked_bytes: self.acked,
            received_bytes: 400,
            app_limited: None,
            unsent_bytes: None,
            peer_window_bytes: None,
            busy_us: None,
            rwnd_limited_us: None,
            sndbuf_limited_us: None,
            rto_us: None,
            timeouts: None,
        }
    }
}

impl Player {
    fn play(&mut self, mut step_s: f64) {
        self.state = match self.state {
            PlayerState::Starting if self.buffer_s < SEGMENT_S => PlayerState::Starting,
            PlayerState::Stalled if self.buffer_s < SEGMENT_S => PlayerState::Stalled,
            PlayerState::Playing if self.buffer_s <= 0.0 => {
                self.stalls += 1;
                PlayerState::Stalled
            }
            _ => PlayerState::Playing,
        };
        while self.state == PlayerState::Playing && step_s > 1e-9 {
            let Some((left, rung)) = self.queue.front_mut() else { break };
            let played = left.min(step_s);
            self.shown = Some(*rung);
            *left -= played;
            step_s -= played;
            self.position_s += played;
            self.buffer_s = (self.buffer_s - played).max(0.0);
            if *left <= 1e-9 {
                self.queue.pop_front();
            }
        }
        if self.queue.is_empty() {
            self.buffer_s = 0.0;
        }
    }

    fn sample(&self, t_ns: i64) -> PlayerRow {
        let age_ms = t_ns as f64 / 1e6 - self.position_s * 1e3 + 6_000.0;
        PlayerRow {
            t_ns,
            endpoint: "viewer".into(),
            state: self.state,
            buffer_ms: Some(self.buffer_s * 1e3),
            position_ms: Some(self.position_s * 1e3),
            rung_bps: self.shown,
            latency_ms: self.shown.map(|_| age_ms),
            target_latency_ms: None,
            speed: f64::from(u8::from(self.state == PlayerState::Playing)),
            stalls: self.stalls,
            estimate_bps: self.estimate.map(|bps| bps as i64),
            dropped_pictures: None,
        }
    }
}

//! One stream from several paths and several senders (SMPTE ST 2022-7, and switching). Pure: times and datagrams are
//! arguments.
//!
//! Frames are distinguished by their RTP timestamp, whichever sender and path they come from. Packets of one sender are
//! the same on all paths and count once: whichever copy is first is used. Another sender (another synchronisation
//! source) takes over at a frame boundary, as soon as it has sent a frame whole of which the sender before has sent
//! nothing. If both send a frame, the earlier sender's is used, unless only the other's is whole when its time is over.
//!
//! A frame's time is over when the sender's pace and the lane's delay budget are: one frame time and the budget after
//! its beginning. What arrives later counts as late for its path. Frames are handed on in order, each once, whole as
//! soon as those before it are decided, or incomplete when their time is over.

mod counts;
mod frame;

use std::collections::VecDeque;

use suiro_units::{Duration, Time};

pub use self::counts::{LaneCounts, PathCounts};
use self::frame::{Added, Candidate, Open};
use crate::epoch::Epoch;
use crate::geometry::FrameRate;
use crate::live::event::What;
use crate::packet::Layout;
use crate::receive::{Frame, Wanted, blank};

/// Paths of a lane, those included that are ending while others begin.
pub const SLOTS: usize = 16;
/// Frames that may be open at a time: the receiver's ring.
const OPEN_MAX: usize = 32;
/// Frames that a sender's clock may be ahead.
const AHEAD_MAX: u64 = 8;
/// Longest delay budget in frames: the ring, without what may be ahead.
pub const BUDGET_FRAMES_MAX: u64 = 16;
/// What is older than this was sent by another clock: no network delays as much.
const APART_MAX: Duration = Duration::from_secs(1);
/// Longest gap that counts as lost frames; after a longer one the stream begins anew.
const MISSING_MAX: u64 = 600;
/// Frame times without a packet after which a stream is silent.
const SILENT_FRAMES: u64 = 2;

/// Receiver classes of ST 2022-7 for streams of at least 270 Mbit/s: the difference in delay between paths that a
/// receiver must tolerate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkewClass {
    /// Ultra-low skew: 150 µs.
    D,
    /// Low skew: 10 ms.
    A,
    /// Moderate skew: 50 ms.
    B,
    /// High skew: 150 ms.
    C,
}

impl SkewClass {
    /// The highest class that a delay budget covers; `None` below 150 µs.
    pub fn of(budget: Duration) -> Option<Self> {
        let all = [(Self::C, 150_000), (Self::B, 50_000), (Self::A, 10_000), (Self::D, 150)];
        let own = all.into_iter().find(|(_, us)| budget >= Duration::from_micros(*us));
        own.map(|(class, _)| class)
    }
}

/// One path.
#[derive(Debug, Clone)]
struct Path {
    from: u64,
    until: Option<u64>,
    counts: PathCounts,
    /// That of its packets.
    payload_type: u8,
    /// True while its packets are late: reported once.
    over_budget: bool,
}

impl Path {
    fn takes(&self, frame: u64) -> bool {
        frame >= self.from && self.until.is_none_or(|until| frame < until)
    }
}

/// What is wrong with a stream, and since which frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Frames repeat.
    Starved(u64),
    /// Frames are complete more than a frame time after they were due.
    Lagging(u64),
    /// Frames are incomplete.
    Incomplete(u64),
    /// Nothing arrives after this frame.
    Silent(u64),
}

/// Where frames and events go.
pub trait Output {
    /// A frame is decided; its bytes are there if images are wanted and it is whole.
    fn frame(&mut self, frame: &Frame, picture: &[u8]);
    /// Something happened.
    fn event(&mut self, at: Time, what: What);
}

/// One stream.
#[derive(Debug)]
pub struct Merge {
    layout: Layout,
    payload_type: u8,
    epoch: Epoch,
    wanted: Wanted,
    budget: Duration,
    paths: [Option<Path>; SLOTS],
    open: VecDeque<Open>,
    spare: Vec<Vec<u8>>,
    /// The frame that is handed on next; `None` before the first whole one.
    next: Option<u64>,
    /// Packets of the whole frame that was handed on last: how its sender splits frames.
    learnt: Option<u32>,
    /// The first frame and the newest that were handed on since the stream began; they stay when it is left.
    span: Option<(u64, u64)>,
    owner: Option<u32>,
    /// The frame that was handed on last, and its content.
    last: Option<(u64, Option<u32>)>,
    heard: Time,
    trouble: Option<Trouble>,
    contested: u32,
    apart: Option<u32>,
    counts: LaneCounts,
}

impl Merge {
    /// A stream of `layout` without paths.
    pub fn new(layout: Layout, payload_type: u8, epoch: Epoch, budget: Duration) -> Self {
        Self {
            layout,
            payload_type,
            epoch,
            wanted: Wanted { verify: false, pictures: false },
            budget,
            paths: std::array::from_fn(|_| None),
            open: VecDeque::new(),
            spare: Vec::new(),
            next: None,
            learnt: None,
            span: None,
            owner: None,
            last: None,
            heard: Time::ZERO,
            trouble: None,
            contested: 0,
            apart: None,
            counts: LaneCounts::default(),
        }
    }

    /// What to do with the frames that begin to arrive from now on.
    pub const fn want(&mut self, wanted: Wanted) {
        self.wanted = wanted;
    }

    /// Another delay budget, for all frames that are not over.
    pub const fn set_budget(&mut self, budget: Duration) {
        self.budget = budget;
    }

    /// Takes a path into use from frame `from` on, with a payload type of its own if it has one; `None` if all [`SLOTS`] are in
    /// use.
    pub fn join(&mut self, from: u64, payload_type: Option<u8>) -> Option<usize> {
        let slot = self.paths.iter().position(Option::is_none)?;
        let payload_type = payload_type.unwrap_or(self.payload_type);
        let counts = PathCounts::default();
        self.paths[slot] =
            Some(Path { from, until: None, payload_type, counts, over_budget: false });
        Some(slot)
    }

    /// Takes nothing of frame `until` and those after it from a path.
    pub fn leave(&mut self, slot: usize, until: u64) {
        if let Some(path) = &mut self.paths[slot] {
            path.until = Some(path.until.map_or(until, |own| own.min(until)));
        }
    }

    /// True if a path that was left has nothing to expect any more.
    pub fn is_over(&self, slot: usize, now: Time) -> bool {
        let until = self.paths[slot].as_ref().and_then(|path| path.until);
        until.is_some_and(|until| until == 0 || now >= self.deadline(until - 1))
    }

    /// Forgets a path and returns what it counted.
    pub fn remove(&mut self, slot: usize) -> PathCounts {
        for open in &mut self.open {
            open.paths[slot] = None;
        }
        let path = self.paths[slot].take();
        if self.paths.iter().all(Option::is_none) {
            // Nothing is expected: the next stream begins anew.
            (self.next, self.owner, self.last, self.trouble) = (None, None, None, None);
            self.open.clear();
        }
        path.map_or_else(PathCounts::default, |path| path.counts)
    }

    /// What a path counted so far.
    pub fn path(&self, slot: usize) -> PathCounts {
        self.paths[slot].as_ref().map_or_else(PathCounts::default, |path| path.counts)
    }

    /// What was counted after merging.
    pub const fn counts(&self) -> &LaneCounts {
        &self.counts
    }

    /// What is wrong; `None` if nothing is.
    pub const fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// The first frame that was handed on, and the last one.
    pub const fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// The synchronisation source of the sender in use.
    pub const fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// When the time of frame `number` is over.
    pub fn deadline(&self, number: u64) -> Time {
        self.epoch.start(self.rate(), number + 1) + self.budget
    }

    const fn rate(&self) -> FrameRate {
        self.layout.geometry().rate()
    }

    /// Takes a datagram that arrived at `now` on path `slot`.
    pub fn datagram(&mut self, now: Time, slot: usize, bytes: &[u8], out: &mut impl Output) {
        let Some(path) = &mut self.paths[slot] else { return };
        let Ok(packet) = self.layout.parse(bytes, path.payload_type) else {
            path.counts.malformed += 1;
            return;
        };
        let rate = self.layout.geometry().rate();
        let current = self.epoch.frame_at(rate, now);
        let number = rate.frame_of(packet.timestamp, current);
        if !self.is_near(now, slot, (number, current), packet.ssrc, out) {
            return;
        }
        let Some(path) = &mut self.paths[slot] else { return };
        if !path.takes(number) {
            path.counts.unwanted += 1;
            return;
        }
        if self.is_late(now, slot, number, out) {
            return;
        }
        self.heard = now;
        let Some(at) = self.frame_of(now, number) else { return };
        let (layout, wanted) = (&self.layout, self.wanted);
        let added = self.open[at].add((now, slot), &packet, layout, wanted, &mut self.spare);
        let Some(path) = &mut self.paths[slot] else { return };
        match added {
            Added::New => {
                path.counts.packets += 1;
                self.counts.packets += u64::from(self.open[at].done.is_none());
            }
            Added::Duplicate => {
                path.counts.packets += 1;
                path.counts.duplicate += 1;
            }
            Added::Foreign => path.counts.foreign += 1,
        }
        let whole = |own: &Candidate| own.ssrc == packet.ssrc && own.is_whole(&self.layout);
        if self.open[at].done.is_none() && self.open[at].candidates.iter().any(whole) {
            self.hand_on(now, out);
        }
    }

    /// False if the packet's sender has another clock.
    fn is_near(
        &mut self,
        now: Time,
        slot: usize,
        (number, current): (u64, u64),
        ssrc: u32,
        out: &mut impl Output,
    ) -> bool {
        let start = self.epoch.start(self.rate(), number);
        let ahead = number > current + AHEAD_MAX;
        if !ahead && now.saturating_since(start) <= APART_MAX {
            if self.apart == Some(ssrc) {
                self.apart = None;
            }
            return true;
        }
        if let Some(path) = &mut self.paths[slot] {
            path.counts.foreign += 1;
        }
        if self.apart.replace(ssrc) != Some(ssrc) {
            let apart = start.max(now).saturating_since(start.min(now));
            out.event(now, What::ClockApart { ssrc, apart, ahead });
        }
        false
    }

    /// True if the time of the packet's frame is over; counts it.
    fn is_late(&mut self, now: Time, slot: usize, number: u64, out: &mut impl Output) -> bool {
        let deadline = self.deadline(number);
        let Some(path) = &mut self.paths[slot] else { return true };
        if now < deadline {
            if path.over_budget && self.next.is_none_or(|next| number >= next) {
                path.over_budget = false;
            }
            return false;
        }
        path.counts.late += 1;
        if !std::mem::replace(&mut path.over_budget, true) {
            let by = now.saturating_since(deadline);
            out.event(now, What::OverBudget { path: slot, frame: number, by });
        }
        // It arrives, if too late: the sender is not silent.
        self.heard = now;
        true
    }

    /// The index of an open frame, which is new if it has to be.
    fn frame_of(&mut self, now: Time, number: u64) -> Option<usize> {
        let at = self.open.partition_point(|open| open.number < number);
        if self.open.get(at).is_some_and(|open| open.number == number) {
            return Some(at);
        }
        // A frame that was given up has its time over, except if the ring was full.
        if self.next.is_some_and(|next| number < next) || self.open.len() == OPEN_MAX {
            return None;
        }
        self.open.insert(at, Open::new(number, now));
        Some(at)
    }

    /// Time has passed: all that arrived before `now` was taken. Frames whose time is over are decided.
    pub fn tick(&mut self, now: Time, out: &mut impl Output) {
        self.hand_on(now, out);
        while let Some(open) = self.open.front() {
            let is_decided = self.next.is_none_or(|next| open.number < next);
            if !is_decided || now < self.deadline(open.number) {
                break;
            }
            let open = self.open.pop_front().expect("it has a front");
            self.close(open, now, out);
        }
        self.listen(now, out);
    }

    /// Hands on all frames that are decided at `now`, in order.
    fn hand_on(&mut self, now: Time, out: &mut impl Output) {
        self.begin();
        while let Some(next) = self.next {
            let newest = self.open.back().map(|open| open.number).filter(|newest| *newest >= next);
            let Some(newest) = newest else { return };
            let is_over = now >= self.deadline(next);
            let at = self.open.iter().position(|open| open.number == next);
            let chosen = at.and_then(|at| self.choose(at, is_over));
            match (at, chosen) {
                (Some(at), Some(chosen)) => self.take(at, chosen, now, out),
                (_, _) if !is_over => return,
                (Some(at), None) => self.take(at, 0, now, out),
                (None, _) if newest - next > MISSING_MAX => {
                    self.counts.restarts += 1;
                    (self.next, self.last) = (None, None);
                    self.begin();
                    continue;
                }
                (None, _) => self.miss(next, now, out),
            }
            self.next = Some(next + 1);
        }
    }

    /// The stream begins with the first frame that is whole; of a path that was joined amid a frame the rest of it is no
    /// loss.
    fn begin(&mut self) {
        if self.next.is_some() {
            return;
        }
        let whole = |open: &&Open| {
            open.done.is_none() && open.candidates.iter().any(|own| own.is_whole(&self.layout))
        };
        let Some(number) = self.open.iter().find(whole).map(|open| open.number) else { return };
        self.open.retain(|open| open.number >= number);
        self.next = Some(number);
        self.span = None;
    }

    /// The candidate to hand on: the owner's if it is whole, or that of another sender which takes over.
    fn choose(&self, at: usize, is_over: bool) -> Option<usize> {
        let open = &self.open[at];
        let whole = |own: &Candidate| own.is_whole(&self.layout);
        let of_owner = open.candidates.iter().position(|own| Some(own.ssrc) == self.owner);
        if let Some(own) = of_owner.filter(|own| whole(&open.candidates[*own])) {
            return Some(own);
        }
        if of_owner.is_some() && !is_over {
            return None;
        }
        open.candidates.iter().position(whole)
    }

    fn take(&mut self, at: usize, chosen: usize, now: Time, out: &mut impl Output) {
        let (period, packets_per_frame) = (self.rate().period(), self.packets_per_frame());
        let number = self.open[at].number;
        let due = self.epoch.start(self.rate(), number);
        let open = &mut self.open[at];
        let Some(own) = open.candidates.get_mut(chosen) else { return };
        let whole = own.is_whole(&self.layout);
        let sound = own.is_sound(&self.layout, self.wanted);
        let late = own.last > due + period * 2;
        let frame = Frame {
            content: own.content,
            last: Some(own.last),
            bytes: own.bytes,
            whole,
            packets: own.packets,
            lost: if whole { 0 } else { packets_per_frame.saturating_sub(own.packets).max(1) },
            duplicate: own.duplicate,
            sound,
            late: Some(late),
            ..blank(number, open.first, Some(due))
        };
        open.done = Some(if whole { own.packets } else { 0 });
        if whole {
            self.learnt = Some(own.packets);
        }
        let (ssrc, picture) = (own.ssrc, std::mem::take(&mut own.picture));
        self.own(now, (number, whole), ssrc, out);
        self.count(now, &frame, out);
        out.frame(&frame, if whole { &picture } else { &[] });
        if self.spare.len() < OPEN_MAX && !picture.is_empty() {
            self.spare.push(picture);
        }
    }

    /// The sender of a frame that is handed on, which may be another one.
    fn own(&mut self, now: Time, (frame, whole): (u64, bool), ssrc: u32, out: &mut impl Output) {
        match self.owner {
            Some(before) if before != ssrc && whole => {
                self.counts.seams += 1;
                self.owner = Some(ssrc);
                out.event(now, What::Seam { frame, ssrc, before });
            }
            Some(_) => {}
            None => {
                self.owner = Some(ssrc);
                out.event(now, What::Started { frame });
            }
        }
    }

    /// A frame of which nothing arrived.
    fn miss(&mut self, number: u64, now: Time, out: &mut impl Output) {
        let due = self.epoch.start(self.rate(), number);
        let lost = self.packets_per_frame();
        for path in self.paths.iter_mut().flatten().filter(|path| path.takes(number)) {
            path.counts.lost += u64::from(lost);
        }
        let frame = Frame { lost, ..blank(number, due, Some(due)) };
        self.count(now, &frame, out);
        out.frame(&frame, &[]);
    }

    /// What is known about how a sender splits a frame.
    fn packets_per_frame(&self) -> u32 {
        self.learnt.unwrap_or_else(|| self.layout.packets_per_frame())
    }

    fn count(&mut self, now: Time, frame: &Frame, out: &mut impl Output) {
        let number = frame.number;
        let before = self.last.filter(|(before, _)| before + 1 == number);
        let same = frame.content.is_some() && before.is_some_and(|(_, own)| own == frame.content);
        self.last = Some((number, frame.content));
        self.span = Some((self.span.map_or(number, |(first, _)| first), number));
        let counts = &mut self.counts;
        counts.frames += u64::from(frame.whole);
        counts.incomplete += u64::from(!frame.whole && frame.packets > 0);
        counts.lost += u64::from(frame.packets == 0);
        counts.lost_packets += u64::from(frame.lost);
        counts.repeated += u64::from(same);
        counts.corrupt += u64::from(frame.sound == Some(false));
        let late = frame.late == Some(true) && frame.whole;
        let (now_wrong, what) = if !frame.whole {
            let lost = frame.lost;
            (Some(Trouble::Incomplete(number)), Some(What::Incomplete { frame: number, lost }))
        } else if same {
            (Some(Trouble::Starved(number)), Some(What::Starved { frame: number }))
        } else if late {
            let due = self.epoch.start(self.rate(), number + 1);
            let late = frame.last.map_or(Duration::ZERO, |last| last.saturating_since(due));
            (Some(Trouble::Lagging(number)), Some(What::Lagging { frame: number, late }))
        } else {
            (None, self.trouble.map(|_| What::Recovered { frame: number }))
        };
        let same_kind = |one: Trouble, other: Trouble| {
            std::mem::discriminant(&one) == std::mem::discriminant(&other)
        };
        match (self.trouble, now_wrong) {
            (Some(old), Some(new)) if same_kind(old, new) => {}
            (old, new) => {
                self.trouble = new;
                if let Some(what) = what.filter(|_| old != new) {
                    out.event(now, what);
                }
            }
        }
    }

    /// The time of a frame is over that was handed on: what each path lacked of it is known.
    fn close(&mut self, open: Open, now: Time, out: &mut impl Output) {
        let first = open.paths.iter().flatten().map(|(first, _)| *first).min();
        // Of a frame before the first whole one nothing is known.
        let all = open.done.map(|all| if all > 0 { all } else { self.packets_per_frame() });
        for (slot, path) in self.paths.iter_mut().enumerate() {
            let Some(path) = path.as_mut().filter(|path| path.takes(open.number)) else { continue };
            let (came, count) = open.paths[slot].unwrap_or((Time::ZERO, 0));
            path.counts.lost += u64::from(all.unwrap_or(count).saturating_sub(count));
            if let Some(first) = first.filter(|_| count > 0) {
                path.counts.behind_max = path.counts.behind_max.max(came.saturating_since(first));
            }
        }
        let other = open.candidates.iter().find(|own| Some(own.ssrc) != self.owner);
        let owned = self.owner.is_some_and(|owner| open.of(owner).is_some());
        match other.filter(|_| owned) {
            Some(other) => {
                self.contested += 1;
                // One frame may be the seam's; two are not.
                if self.contested == 2 {
                    let (frame, ssrc) = (open.number, other.ssrc);
                    out.event(now, What::Contested { frame, ssrc });
                }
            }
            None => self.contested = 0,
        }
        let pictures = open.candidates.into_iter().map(|own| own.picture);
        let room = OPEN_MAX.saturating_sub(self.spare.len());
        self.spare.extend(pictures.filter(|picture| !picture.is_empty()).take(room));
    }

    /// Reports a stream of which nothing arrives any more.
    fn listen(&mut self, now: Time, out: &mut impl Output) {
        let Some(last) = self.last.map(|(last, _)| last) else { return };
        let expected = |path: &Path| path.takes(self.epoch.frame_at(self.rate(), now));
        if !self.paths.iter().flatten().any(expected) {
            return;
        }
        let since = now.saturating_since(self.heard);
        let silent = since >= self.rate().period() * SILENT_FRAMES;
        if silent && !matches!(self.trouble, Some(Trouble::Silent(_))) {
            self.trouble = Some(Trouble::Silent(last));
            out.event(now, What::Silent { last: Some(last), since });
        }
    }
}

#[cfg(test)]
mod tests;

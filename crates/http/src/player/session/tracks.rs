//! The requests of a session's tracks.

use super::super::live::captured;
use super::super::request::{Fetch, RELOADS};
use super::super::track::{Situation, Step};
use super::Session;

impl Session {
    /// The next request of a track: for what comes next; else for the next version of its playlist, which the server holds; else
    /// for the part or segment behind the one under way.
    pub(super) fn poll_tracks(&mut self) -> Option<Fetch> {
        let (now, epoch) = (self.now, self.config.epoch_unix_ns);
        let mut waits = Vec::new();
        let mut found = None;
        let stream = self.stream.as_mut()?;
        for track in &mut stream.tracks {
            let situation = Situation {
                now,
                captured: stream.live.as_ref().and_then(|live| captured(live, epoch, now)),
                live: stream.live.is_some(),
                playout: stream.playout.as_ref(),
                download: self.config.download,
            };
            let step = track.step(&situation);
            let reload = situation.playout.and_then(|_| track.next_reload(now));
            // Over HTTP/1.1 it would need a connection of its own.
            let shares = self.config.priorities;
            let ahead = if shares { track.next_ahead(&situation) } else { None };
            let mut next = Vec::new();
            match step {
                Step::Idle => {}
                Step::Wait(at) => waits.push(at),
                Step::Skip(position) => {
                    if let Some(playout) = &mut stream.playout {
                        playout.skip(now, position);
                    }
                    waits.push(now);
                }
                Step::Fetch(request) => {
                    let (what, resource) = *request;
                    next.push((track.index + 1, (now, what, resource)));
                }
            }
            next.extend(reload.map(|reload| (track.index + RELOADS, reload)));
            next.extend(ahead.map(|ahead| (track.other_lane(), ahead)));
            for (lane, (at, what, resource)) in next {
                if at > now {
                    waits.push(at);
                    continue;
                }
                let fetch = self.config.fetch(self.asked + 1, track, what, resource);
                let fetch = Fetch { lane, ..fetch };
                track.begin_request(now, &fetch);
                found = Some(fetch);
                break;
            }
            if found.is_some() {
                break;
            }
        }
        waits.into_iter().for_each(|at| self.wake_at(at));
        found
    }
}

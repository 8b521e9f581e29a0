//! The numbers that the rules of causes compare with, each with its reason.
//!
//! They are no constants of nature. How much depends on each of them, the bank of causes shows
//! (`cargo test -p suiro --test why -- bank sensitivity`): it judges all its cases again with each number changed, and
//! docs/method.md has the result.

/// How a number is changed, to see what depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Half of a time or count, half of a share, half of what a factor has above 1.
    Less,
    /// Twice a time or count, half as far from 1 as a share was, twice of what a factor has above 1.
    More,
}

impl Change {
    const fn amount(self, amount: i64) -> i64 {
        match self {
            Self::Less => amount / 2,
            Self::More => amount.saturating_mul(2),
        }
    }

    const fn count(self, count: usize) -> usize {
        match self {
            Self::Less => count.div_ceil(2),
            Self::More => count.saturating_mul(2),
        }
    }

    const fn share(self, share: f64) -> f64 {
        match self {
            Self::Less => share / 2.0,
            Self::More => f64::midpoint(1.0, share),
        }
    }

    const fn factor(self, factor: f64) -> f64 {
        match self {
            Self::Less => f64::midpoint(1.0, factor),
            Self::More => 2.0 * factor - 1.0,
        }
    }
}

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ident($type:ty) = $value:expr;)+) => {
        /// The numbers that the rules of causes compare with. Times are in nanoseconds, counts of slices in
        /// [`SLICE_NS`](super::SLICE_NS).
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Rules { $($(#[doc = $doc])+ pub $name: $type,)+ }

        impl Default for Rules {
            fn default() -> Self {
                Self { $($name: $value,)+ }
            }
        }

        impl Rules {
            /// The name of each number.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// The same with one number changed; `None` if none has this name.
            #[must_use]
            pub fn with(mut self, name: &str, change: Change) -> Option<Self> {
                match name {
                    $(stringify!($name) => self.$name = change.$kind(self.$name),)+
                    _ => return None,
                }
                Some(self)
            }
        }
    };
}

const MS: i64 = 1_000_000;

rules! {
    /// A share of a slice that decides: most of it.
    most: share(f64) = 0.5;
    /// The link is what limits a flow whose packets wait or are served for this share of a slice.
    served: share(f64) = 0.7;
    /// The link is shared if others have this share of its bytes.
    shared: share(f64) = 0.2;
    /// What one packet waited for was sent by others if they had this share of the bytes meanwhile: most of them.
    queue_shared: share(f64) = 0.5;
    /// A cause is to blame for a delay if it explains this share of it: half, as single packets may have been slower.
    explains: share(f64) = 0.5;
    /// Slow packets were few if three of four had less than this share of the delay of the slowest.
    few: share(f64) = 0.2;
    /// A link that was busy for this share of a slice was not idle in it.
    busy: share(f64) = 0.9;
    /// A sender of which so much was acknowledged, as a share of its pacing rate, is limited by it: some slices are shorter than
    /// the time between two acknowledgements.
    paced: share(f64) = 0.7;
    /// Slices before and after, over which the share of others counts.
    shared_slices: count(usize) = 5;
    /// Slices before an event that it may come from: the shortest retransmission timeout of Linux, 200 ms.
    before_slices: count(usize) = 4;
    /// Slices after a loss in which the congestion window may still be small because of it: two seconds, in which Reno
    /// and CUBIC regain what a loss of 20 packets of window cost.
    regained_slices: count(usize) = 40;
    /// Slices of a retransmission timer that was not backed off: a second (RFC 6298 §2.1 and §2.4).
    timer_slices: count(usize) = 20;
    /// Slices that a wait is followed back over: ten seconds.
    back_slices: count(usize) = 200;
    /// A buffer that holds this share of what it holds at most is full.
    full: share(f64) = 0.9;
    /// A receive window that fell below this share of the largest had filled up: the receiver did not read.
    filled: share(f64) = 0.5;
    /// Segments that a sender may be short of its window and still be limited by it: a burst is sent whole.
    short_segments: amount(i64) = 2;
    /// A rate that is below this share of the one before has fallen; one that is above the inverse has risen.
    fallen: share(f64) = 0.8;
    /// A delay that is shorter is part of the usual: the longest that one packet of 1500 bytes takes at 600 kbit/s.
    least_ns: amount(i64) = 20 * MS;
    /// A queue that delays packets by this much limits a flow: two and a half slices of T-RAT's shortest round trip.
    queued_ns: amount(i64) = 50 * MS;
    /// Propagation that is this much above the usual is a rise or a jitter of the delay, and no change of a route's.
    slow_ns: amount(i64) = 50 * MS;
    /// A queue that delays longer than that holds more than any flow needs.
    bloat_ns: amount(i64) = 200 * MS;
    /// A queue with no more packets than this is none: what it drops, it polices.
    policed_packets: amount(i64) = 1;
    /// Packets before and after a slow one that show whether others were as slow.
    around_ns: amount(i64) = 1000 * MS;
    /// An endpoint's absence that is shorter delays nothing that anybody would notice: three ticks of a scheduler.
    absent_ns: amount(i64) = 30 * MS;
    /// An absence shortly before that is longer explains what came at once after it.
    away_ns: amount(i64) = 200 * MS;
    /// Before a frame that was held back, what its sender met may be as old as this.
    held_ns: amount(i64) = 3000 * MS;
    /// Where all packets were dropped, those that came so long before show how long the queue was.
    queue_before_ns: amount(i64) = 500 * MS;
    /// An encoder that makes this much more than it was set to overshoots.
    overshoot: factor(f64) = 1.25;
    /// The time over which what it made counts.
    encoded_ns: amount(i64) = 1000 * MS;
    /// A key frame is late if it comes later after a loss than two round trips and this much.
    key_frame_ns: amount(i64) = 100 * MS;
    /// Slices after a loss in which its repair goes on.
    repair_slices: count(usize) = 2;
    /// Requests that follow one another within this time belong together.
    next_request_ns: amount(i64) = 200 * MS;
    /// A player that shows the first new frame needs no longer than this after the last byte.
    shown_ns: amount(i64) = 300 * MS;
    /// A frame of a freeze that is this much older than usual has a cause of its own.
    old_ns: amount(i64) = 20 * MS;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_changed_and_the_others_are_not() {
        let usual = Rules::default();
        for name in Rules::NAMES {
            let less = usual.with(name, Change::Less);
            let more = usual.with(name, Change::More);
            assert!(less.is_some() && more.is_some() && less != more, "{name}");
            assert!(less != Some(usual) || more != Some(usual), "{name}");
        }
        assert_eq!(usual.with("nothing", Change::More), None);
        let changed = usual.with("overshoot", Change::More).map(|rules| rules.overshoot);
        assert_eq!(changed, Some(1.5));
        let changed = usual.with("fallen", Change::More).map(|rules| rules.fallen);
        assert_eq!(changed, Some(0.9));
        let same = usual.with("fallen", Change::Less).map(|rules| Rules { fallen: 0.8, ..rules });
        assert_eq!(same, Some(usual));
    }
}

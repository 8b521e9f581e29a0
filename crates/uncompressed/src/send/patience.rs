//! How long a path that has no room may hold up the other paths of its stream (ST 2022-7). Pure.

use suiro_units::Duration;

/// What is known of one path.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience {
    /// How long the others waited for it in this frame.
    waited: Duration,
    /// True if it had no room for something of this frame.
    was_full: bool,
    /// True if the others do not wait for it.
    is_given_up: bool,
}

impl Patience {
    /// It has no room, and the others have waited for it since `waiting` ago. True if they go on without it: because they waited for
    /// more than `most` in this frame, or because it was given up before.
    pub fn is_over(&mut self, waiting: Duration, most: Duration) -> bool {
        self.was_full = true;
        self.is_given_up |= self.waited + waiting > most;
        self.is_given_up
    }

    /// True if the others do not wait for it.
    pub const fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// The others waited for it.
    pub fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// A frame begins. A path that had room for all of the last one is waited for again.
    pub fn begin(&mut self) {
        *self = Self { is_given_up: self.is_given_up && self.was_full, ..Self::default() };
    }
}

/// True if the others go on without path `place`, which has no room: with the present wait, `waiting`, they have waited for it
/// for more than `most` in this frame, or they gave it up before. The last path that has not been given up is waited for.
pub fn go_on_without(
    paths: &mut [Patience],
    place: usize,
    waiting: Duration,
    most: Duration,
) -> bool {
    let mut others = paths.iter().enumerate().filter(|(at, _)| *at != place);
    let holds_up = others.any(|(_, other)| !other.is_given_up());
    let own = paths.get_mut(place);
    own.is_some_and(|own| (holds_up || own.is_given_up()) && own.is_over(waiting, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_others_wait_half_a_frame_in_all_and_then_no_more() {
        let mut path = Patience::default();
        let is_over = |path: &mut Patience, waiting| path.is_over(waiting, MS * 10);
        // Slow: it takes each burst after 6 ms.
        assert!(!is_over(&mut path, MS * 6));
        path.waited(MS * 6);
        assert!(!is_over(&mut path, MS * 4));
        assert!(is_over(&mut path, MS * 5));
        path.waited(MS * 5);
        assert!(is_over(&mut path, Duration::ZERO), "for the rest of the frame");
        path.begin();
        assert!(is_over(&mut path, Duration::ZERO), "and for the next one");
        // Without a burst that found no room.
        path.begin();
        path.begin();
        assert!(!is_over(&mut path, MS * 10));
        assert!(is_over(&mut path, MS * 11));
    }

    #[test]
    fn the_last_usable_path_is_waited_for() {
        let mut paths = [Patience::default(); 3];
        let go_on =
            |paths: &mut [Patience], place, waiting| go_on_without(paths, place, waiting, MS * 10);
        assert!(!go_on(&mut paths[..1], 0, MS * 1000), "the only path of a stream");
        // All of them are full, one after the other.
        assert!(!go_on(&mut paths, 0, MS * 10));
        assert!(go_on(&mut paths, 0, MS * 11));
        assert!(go_on(&mut paths, 1, MS * 11));
        assert!(!go_on(&mut paths, 2, MS * 1000), "nobody would get the frame");
        assert!(go_on(&mut paths, 0, Duration::ZERO), "it does not delay the last one");
        // A frame for which the first path has room, and the second has none.
        paths.iter_mut().for_each(Patience::begin);
        assert!(go_on(&mut paths, 1, Duration::ZERO));
        assert!(!go_on(&mut paths, 2, MS * 1000), "the first one is not trusted yet");
        // From the next frame on the first path counts again, and the last one is the last no more.
        paths.iter_mut().for_each(Patience::begin);
        assert!(!go_on(&mut paths, 2, MS * 10));
        assert!(go_on(&mut paths, 2, MS * 11));
        assert!(!go_on(&mut paths, 0, MS * 1000), "now the first one is the last");
    }
}

//! Trials side by side.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `work` makes of each of these, so many at one time; in the order in which they were done.
pub fn abreast<T: Sync, R: Send>(count: usize, all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let turn = || {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = work(one);
            done.lock().unwrap().push(result);
        }
    };
    std::thread::scope(|scope| (0..count).for_each(|_| drop(scope.spawn(turn))));
    done.into_inner().unwrap()
}

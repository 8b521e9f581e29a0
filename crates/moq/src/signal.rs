//! A decision about a stream, which wakes the task that has to act on it.

use std::sync::Mutex;
use std::task::{Context, Waker};

/// It is given once, by any task. One task waits for it.
#[derive(Debug, Default)]
pub(crate) struct Signal(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_given: bool,
    /// The task that waits.
    waker: Option<Waker>,
}

impl Signal {
    /// Whether it is given. If not, the task is woken when it is.
    pub fn is_given(&self, cx: &Context<'_>) -> bool {
        let mut state = self.0.lock().expect("no holder panics");
        if !state.is_given {
            state.waker = Some(cx.waker().clone());
        }
        state.is_given
    }

    /// Gives it, and wakes the task that waits.
    pub fn give(&self) {
        let waker = {
            let mut state = self.0.lock().expect("no holder panics");
            state.is_given = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_task_that_waits_is_woken_once() {
        let (signal, count) = (Signal::default(), Arc::<Count>::default());
        let waker = Waker::from(Arc::clone(&count));
        let cx = Context::from_waker(&waker);
        assert!(!signal.is_given(&cx));
        signal.give();
        signal.give();
        assert!(signal.is_given(&cx));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}

//! The emulated link, pure: loss, queue, rate, propagation.

//! The live link: packet sockets, timing, self-check.

//! TCP as the kernel sees it: congestion control and socket records.

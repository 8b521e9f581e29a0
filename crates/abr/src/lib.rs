//! Adaptive bitrate algorithms and the playout buffer, pure.

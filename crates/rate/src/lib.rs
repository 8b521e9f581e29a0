//! Rate control for real-time media, pure.

//! Fragmented MP4 (ISO/IEC 14496-12): read strictly, written exactly, moved in time.

mod boxes;
mod restamp;

pub use restamp::restamp;

//! Video over RTP: sender, receiver, payload formats, RTCP.

pub mod packet;
pub mod payload;
pub mod receiver;
pub mod rtcp;
pub mod sender;
pub mod sequence;

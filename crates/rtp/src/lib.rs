//! Video over RTP: sender, receiver, payload formats, RTCP.

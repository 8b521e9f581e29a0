//! The tables. A column's name ends in its unit; `t_ns` counts nanoseconds from the trial's start on
//! the host's monotonic clock, which every host of a lab shares. What could not be measured is null.

mod audio;
mod browser;
mod http;
mod layers;
mod machine;
mod moq;
mod network;
mod realtime;
mod screen;
mod uncompressed;

pub use audio::{AudioRow, AudioSentRow};
pub use browser::BrowserRow;
pub use http::{AccessRow, CmcdEventRow, PageRow, PlayerRow, RequestRow, RungRow};
pub use layers::{LayerAccountRow, LayerRow};
pub use machine::{LatenessRow, StandstillRow};
pub use moq::{MoqDataRow, MoqSessionRow, QuicRow};
pub use network::{
    FlowRow, HopRow, LinkRow, MembershipRow, MulticastLinkRow, MulticastRow, TcpRow,
};
pub use realtime::{ConferenceRow, EncoderRow, RateRow, WebrtcRow, WebrtcSessionRow};
pub use screen::{CauseRow, FrameRow, QualityRow};
pub use uncompressed::{
    ControlRow, UncompressedFrameRow, UncompressedReceivedRow, UncompressedRingRow,
    UncompressedSentRow, UncompressedShownRow,
};

use crate::records::tables;

tables! {
    LinkRow: link "Packets that met a link.";
    FlowRow: flows "Flows that endpoints reported; none in a folder of before there was this table.";
    LatenessRow: lateness "Whether endpoints ran while they should have.";
    StandstillRow: standstills "When CPUs stalled.";
    TcpRow: tcp "Samples of TCP sockets.";
    LayerRow;
    LayerAccountRow: layer_accounts "What each protocol layer lost and delayed.";
    HopRow: hops "Packets on the links, as captures at both ends saw them.";
    RequestRow: requests "Requests of players.";
    RungRow: rungs "Rungs that origins offer.";
    PlayerRow: player "States of players.";
    FrameRow: frames "Frames that viewers were to see.";
    EncoderRow: encoder "Frames that encoders of cameras took.";
    AudioRow: audio "Frames of sound that receivers were to play.";
    AudioSentRow: audio_sent "Frames of sound that senders passed on.";
    RateRow: rate "Control periods of senders of real-time video.";
    WebrtcRow: webrtc "Intervals of WebRTC peer connections.";
    WebrtcSessionRow: webrtc_sessions "WebRTC peer connections.";
    BrowserRow: browser "What browsers counted of their own video.";
    QuicRow: quic "Samples of QUIC connections.";
    MoqSessionRow: moq_sessions "Sessions of Media over QUIC Transport.";
    MoqDataRow: moq_data "Objects of data tracks of Media over QUIC Transport.";
    ConferenceRow: conference "Periods of the ends of video calls.";
    QualityRow: quality "Scores of what was on viewers' screens.";
    AccessRow: access "Requests that origins and caches answered.";
    CmcdEventRow;
    PageRow: pages "Pages that web clients loaded.";
    UncompressedRingRow: rings "Rings of frames before senders of uncompressed video.";
    UncompressedFrameRow: uncompressed "Frames that receivers of uncompressed video had.";
    UncompressedShownRow: shown "What converters of uncompressed video showed.";
    UncompressedSentRow;
    UncompressedReceivedRow;
    MulticastRow: groups "Sources of groups that multicast routers knew.";
    MulticastLinkRow: multicast "Multicast that routers forwarded.";
    MembershipRow: memberships "Memberships in multicast groups.";
    ControlRow: control "What nodes, registries and controllers of streams did.";
    CauseRow;
}

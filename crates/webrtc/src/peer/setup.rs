//! How a peer connection is set up: what both ends may agree on.

use std::net::SocketAddr;

use str0m::RtcConfig;
use str0m::bwe::Bitrate;
use str0m::config::DtlsCert;
use str0m::media::Pt;
use str0m::rtp::Extension;
use suiro_units::BitRate;

use super::STATISTICS_EVERY;
use crate::mark;

/// The payload types that are offered: dynamic ones (RFC 3551 §3).
pub(super) const H264_TYPE: u8 = 102;
pub(super) const AGAIN_TYPE: u8 = 103;
/// Constrained Baseline, level 3.1, which is what browsers offer (RFC 6184 §8.1); the level is no bound, because
/// both ends allow asymmetry and nobody holds 1080 lines against it.
const PROFILE_LEVEL: u32 = 0x42_e01f;

/// The same of Baseline, Main and High.
const PROFILES: [u32; 3] = [0x42_001f, 0x4d_001f, 0x64_001f];

/// Which way the video goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// This end sends it.
    Sends,
    /// This end receives it.
    Receives,
}

/// How a peer connection is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Which way the video goes.
    pub way: Way,
    /// The sockets that it may use, one for each address of the host.
    pub local: Vec<SocketAddr>,
    /// The certificate of this end.
    pub certificate: Certificate,
    /// The estimate to begin with, and the most that the video can use.
    pub rates: (BitRate, BitRate),
    /// Whether the other end makes the offers. A receiver that is offered video then also takes Baseline, Main and High.
    pub answers: bool,
    /// Whether there is sound next to the video.
    pub sound: bool,
    /// Whether packets are also handed over as they are without encryption.
    pub plain: bool,
}

/// The certificate of an end, by which DTLS knows it (RFC 8827 §6.5).
#[derive(Clone)]
pub struct Certificate(DtlsCert);

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Certificate")
    }
}

impl Certificate {
    /// A new one. `None` if the cryptography library refuses.
    pub fn generate() -> Option<Self> {
        let provider = str0m::crypto::from_feature_flags();
        provider.dtls_provider.generate_certificate().map(Self)
    }
}

pub(super) fn bps(rate: BitRate) -> Bitrate {
    Bitrate::bps(rate.as_bps())
}

pub(super) fn config(setup: &Setup, start: Bitrate) -> RtcConfig {
    let mut config = RtcConfig::new()
        .clear_codecs()
        .set_rtp_mode(true)
        .set_dtls_cert(setup.certificate.0.clone())
        // What is not used is not offered: on a narrow link each hundred bytes of the descriptions delay the first frame
        // by milliseconds.
        .clear_extension_map()
        // Frame marks say how long a frame has waited by it.
        .set_extension(2, Extension::AbsoluteSendTime)
        .set_extension(3, Extension::TransportSequenceNumber)
        .set_extension(4, Extension::RtpMid)
        .set_stats_interval(Some(STATISTICS_EVERY.into()))
        .enable_raw_packets(true)
        .set_extension(5, Extension::AbsoluteCaptureTime)
        .set_extension(6, mark::extension());
    let again = Some(Pt::new_with_value(AGAIN_TYPE));
    config.codec_config().add_h264(Pt::new_with_value(H264_TYPE), again, true, PROFILE_LEVEL);
    config.codec_config().enable_opus(setup.sound, false);
    if setup.way == Way::Receives && setup.answers {
        // RFC 9725 §4.3: a server may be an ICE Lite one. ffmpeg's muxer `whip` answers checks without the mapped address,
        // so that no check of ours would ever succeed.
        config = config.set_ice_lite(true);
        // The other end's numbers count; these only have to differ.
        for (profile_level, pt) in PROFILES.into_iter().zip((AGAIN_TYPE + 1..).step_by(2)) {
            let [pt, again] = [pt, pt + 1].map(Pt::new_with_value);
            config.codec_config().add_h264(pt, Some(again), true, profile_level);
        }
    }
    match setup.way {
        Way::Sends => config.enable_bwe(Some(start)),
        Way::Receives => config,
    }
}

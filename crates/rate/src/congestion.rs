//! Congestion control of QUIC, as scenarios name it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A congestion control of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuicCongestion {
    /// RFC 9002 §7.
    NewReno,
    /// RFC 9438, with the end of slow start of RFC 9406 (HyStart++).
    #[default]
    Cubic,
    /// BBRv3 (draft-ietf-ccwg-bbr).
    Bbr,
    /// Copa, which reacts to delay (Arun and Balakrishnan, NSDI 2018). A mark of ECN halves its window, at most once per round
    /// trip; a lost packet alone does not change it.
    Copa,
}

impl QuicCongestion {
    /// Its name, as scenarios and records write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "new-reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Copa => "copa",
        }
    }
}

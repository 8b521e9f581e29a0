//! What an endpoint process is handed: `JOB.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suiro_units::{Duration, Seed};

use crate::{Endpoint, HttpVersion};

/// Everything one endpoint process needs to know; written as JSON, read by `suiro endpoint`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The endpoint: its name, host and what it does.
    pub endpoint: Endpoint,
    /// CLOCK_MONOTONIC at the trial's epoch, `t_ns` = 0. It may lie in the future.
    pub epoch_monotonic_ns: u64,
    /// CLOCK_REALTIME at the same instant, since the Unix epoch: what live media counts from.
    pub epoch_realtime_ns: u64,
    /// How long the trial measures, from the epoch.
    pub duration: Duration,
    /// The trial's folder, for records (`TABLE.NAME.parquet`).
    pub dir: PathBuf,
    /// The package of its medium ([`crate::Kind::medium`]); `None` if it needs none.
    pub media: Option<PathBuf>,
    /// Every endpoint of the trial, by name.
    pub peers: BTreeMap<String, Peer>,
    /// The seed of this endpoint's random numbers: its own in each trial.
    pub seed: Seed,
    /// Whether RTP and RTCP are recorded as they are without encryption ([`crate::RecordOptions::rtp`]).
    #[serde(default)]
    pub rtp: bool,
}

impl Job {
    /// The endpoints that refer to this one, by name.
    pub fn referring(&self) -> impl Iterator<Item = (&str, &Peer)> {
        let own = &self.endpoint.name;
        let refers = move |peer: &&Peer| peer.refers_to.contains(own);
        self.peers.iter().map(|(name, peer)| (name.as_str(), peer)).filter(move |(_, p)| refers(p))
    }
}

/// Where an endpoint is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Name of its host, which resolves in every host of the trial.
    pub host: String,
    /// Port that it serves at; `None` if it serves nothing.
    pub port: Option<u16>,
    /// The version of HTTP that its clients use; 1.1 if it serves no media over HTTP.
    #[serde(default)]
    pub http: HttpVersion,
    /// The endpoints that it refers to: where it connects or sends.
    #[serde(default)]
    pub refers_to: Vec<String>,
    /// Whether it sends sound.
    #[serde(default)]
    pub sound: bool,
}

//! The looks at the hosts' TCP sockets during a trial.

use std::path::Path;

use anyhow::{Context, Result};
use suiro_hosts::{Host, Network};
use suiro_record::TcpSampling;
use suiro_scenario::{RecordOptions, TcpTrace};
use suiro_tcp::{Counts, Sampler, SamplerError, SamplerSpec};

use crate::clock::Epoch;

/// A sampler a host.
pub struct Sockets(Vec<Looked>);

struct Looked {
    host: String,
    each_ack: bool,
    because: Option<String>,
    sampler: Sampler,
}

impl Sockets {
    /// Starts what `options` asks for, on every host.
    pub fn start(
        network: &Network,
        options: &RecordOptions,
        epoch: Epoch,
        dir: &Path,
    ) -> Result<Self> {
        if !options.tcp {
            return Ok(Self(Vec::new()));
        }
        let start = |host: &Host| {
            let spec = SamplerSpec {
                host: host.name().to_owned(),
                period: options.tcp_interval,
                epoch_monotonic_ns: epoch.monotonic_ns,
                each_ack: options.tcp_trace != TcpTrace::Sample,
                dir: dir.to_owned(),
            };
            host.enter(|| Looked::start(spec, options.tcp_trace))?
                .with_context(|| format!("sampling the sockets of {}", host.name()))
        };
        Ok(Self(network.hosts().iter().map(start).collect::<Result<_>>()?))
    }

    /// How the looking went, and what failed.
    pub fn stop(self) -> (Vec<TcpSampling>, Vec<String>) {
        let (mut samplings, mut faults) = (Vec::new(), Vec::new());
        for Looked { host, each_ack, because, sampler } in self.0 {
            match sampler.stop() {
                Ok(counts) => {
                    if counts.over_limit > 0 {
                        let looks = counts.over_limit;
                        faults.push(format!("{looks} looks at TCP sockets were over the limit"));
                    }
                    samplings.push(sampling(host, each_ack, because, &counts));
                }
                Err(error) => faults.push(format!("the TCP sampler failed: {error}")),
            }
        }
        (samplings, faults)
    }
}

impl Looked {
    /// In the network namespace of the calling thread.
    fn start(mut spec: SamplerSpec, trace: TcpTrace) -> Result<Self, SamplerError> {
        let mut because = None;
        let sampler = match Sampler::start(&spec) {
            Err(SamplerError::Probe(error)) if trace == TcpTrace::Auto => {
                because = Some(error.to_string());
                spec.each_ack = false;
                Sampler::start(&spec)?
            }
            started => started?,
        };
        Ok(Self { host: spec.host, each_ack: spec.each_ack, because, sampler })
    }
}

fn sampling(host: String, each_ack: bool, because: Option<String>, counts: &Counts) -> TcpSampling {
    TcpSampling {
        host,
        source: if each_ack { "tcp_probe" } else { "sock_diag" }.to_owned(),
        because,
        samples: counts.samples,
        samples_lost: counts.lost,
        acks: counts.acks,
        acks_lost: counts.acks_lost,
        cpu_s: counts.cpu.as_secs_f64(),
    }
}

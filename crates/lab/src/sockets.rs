//! The sampling of the hosts' TCP sockets during a trial.

use std::path::Path;

use anyhow::{Context, Result};
use suiro_hosts::{Host, Network};
use suiro_record::TcpSampling;
use suiro_record::words::TcpSource;
use suiro_scenario::{Setup, TcpTrace};
use suiro_tcp::{Counts, Prepared, Sampler, SamplerError, SamplerSpec};

use crate::clock::Epoch;

/// One sampler per host, prepared before the trial's time zero and running from then on.
pub struct Sockets<S>(Vec<Looked<S>>);

struct Looked<S> {
    host: String,
    each_ack: bool,
    because: Option<String>,
    sampler: S,
}

impl Sockets<Prepared> {
    /// Prepares what `setup.record` asks for, on every host. Hubs and switches have no sockets.
    pub fn prepare(network: &Network, setup: &Setup, dir: &Path) -> Result<Self> {
        let (options, topology) = (&setup.record, &setup.topology);
        if !options.tcp {
            return Ok(Self(Vec::new()));
        }
        let prepare = |host: &Host| {
            let spec = SamplerSpec {
                host: host.name().to_owned(),
                period: options.tcp_interval,
                each_ack: options.tcp_trace != TcpTrace::Sample,
                dir: dir.to_owned(),
            };
            host.enter(|| Looked::prepare(spec, options.tcp_trace))?
                .with_context(|| format!("sampling the sockets of {}", host.name()))
        };
        let mut hosts = network.hosts().to_vec();
        let passive = [&topology.hubs[..], &topology.switches].concat();
        hosts.retain(|host| !passive.iter().any(|name| name == host.name()));
        Ok(Self(hosts.iter().map(prepare).collect::<Result<_>>()?))
    }

    /// Starts them; times count from `epoch`.
    pub fn start(self, epoch: Epoch) -> Result<Sockets<Sampler>> {
        let start = |looked: Looked<Prepared>| {
            let Looked { host, each_ack, because, sampler } = looked;
            let sampler = sampler
                .start(epoch.monotonic_ns)
                .with_context(|| format!("sampling the sockets of {host}"))?;
            Ok(Looked { host, each_ack, because, sampler })
        };
        Ok(Sockets(self.0.into_iter().map(start).collect::<Result<_>>()?))
    }
}

impl Sockets<Sampler> {
    /// How the sampling went, and what failed.
    pub fn stop(self) -> (Vec<TcpSampling>, Vec<String>) {
        let (mut samplings, mut faults) = (Vec::new(), Vec::new());
        for Looked { host, each_ack, because, sampler } in self.0 {
            match sampler.stop() {
                Ok(counts) => {
                    if counts.over_limit > 0 {
                        let looks = counts.over_limit;
                        faults.push(format!("{looks} samples of TCP sockets were over the limit"));
                    }
                    samplings.push(sampling(host, each_ack, because, &counts));
                }
                Err(error) => faults.push(format!("the TCP sampler failed: {error}")),
            }
        }
        (samplings, faults)
    }
}

impl Looked<Prepared> {
    /// In the network namespace of the calling thread.
    fn prepare(mut spec: SamplerSpec, trace: TcpTrace) -> Result<Self, SamplerError> {
        let mut because = None;
        let sampler = match Prepared::new(&spec) {
            Err(SamplerError::Probe(error)) if trace == TcpTrace::Auto => {
                because = Some(error.to_string());
                spec.each_ack = false;
                Prepared::new(&spec)?
            }
            prepared => prepared?,
        };
        Ok(Self { host: spec.host, each_ack: spec.each_ack, because, sampler })
    }
}

fn sampling(host: String, each_ack: bool, because: Option<String>, counts: &Counts) -> TcpSampling {
    TcpSampling {
        host,
        source: if each_ack { TcpSource::TcpProbe } else { TcpSource::SockDiag },
        because,
        samples: counts.samples,
        samples_lost: counts.lost,
        acks: counts.acks,
        acks_lost: counts.acks_lost,
        cpu_s: counts.cpu.as_secs_f64(),
    }
}

//! The sampling of the hosts' TCP sockets during a trial.

use anyhow::{Context, Result};
use suiro_hosts::Host;
use suiro_record::TcpSampling;
use suiro_record::words::TcpSource;
use suiro_scenario::{Setup, TcpTrace};
use suiro_tcp::probe::Probe;
use suiro_tcp::{Counts, Prepared, Sampler, SamplerError, SamplerSpec};

use super::{Found, Instrument, Running, Scene};
use crate::clock::Epoch;

/// The state of every TCP socket of the hosts.
pub struct TcpSockets;

/// One sampler per host, prepared before the trial's time zero and running from then on.
struct Sockets<S>(Vec<Looked<S>>);

struct Looked<S> {
    host: String,
    each_ack: bool,
    because: Option<String>,
    sampler: S,
}

impl Instrument for TcpSockets {
    fn lacking(&self, setup: &Setup) -> Option<String> {
        let error = setup.record.needs_probe().then(Probe::start)?.err()?;
        Some(format!("record.tcp_trace = \"ack\": {error}"))
    }

    /// Hubs and switches have no sockets.
    fn prepare(&self, scene: Scene<'_>) -> Result<Option<Box<dyn super::Prepared>>> {
        let Scene { network, setup: Setup { record: options, topology, .. }, dir, .. } = scene;
        if !options.tcp {
            return Ok(None);
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
        let sockets = hosts.iter().map(prepare).collect::<Result<_>>()?;
        Ok(Some(Box::new(Sockets(sockets))))
    }
}

impl super::Prepared for Sockets<Prepared> {
    fn start(self: Box<Self>, _: Scene<'_>, epoch: Epoch) -> Result<Box<dyn Running>> {
        let start = |looked: Looked<Prepared>| {
            let Looked { host, each_ack, because, sampler } = looked;
            let sampler = sampler
                .start(epoch.monotonic_ns)
                .with_context(|| format!("sampling the sockets of {host}"))?;
            Ok(Looked { host, each_ack, because, sampler })
        };
        let sockets = self.0.into_iter().map(start).collect::<Result<_>>()?;
        Ok(Box::new(Sockets::<Sampler>(sockets)))
    }
}

impl Running for Sockets<Sampler> {
    fn stop(self: Box<Self>, _: Scene<'_>, _: Epoch, found: &mut Found) -> Result<()> {
        for Looked { host, each_ack, because, sampler } in self.0 {
            match sampler.stop() {
                Ok(counts) => {
                    if counts.over_limit > 0 {
                        let looks = counts.over_limit;
                        let faults = &mut found.faults;
                        faults.push(format!("{looks} samples of TCP sockets were over the limit"));
                    }
                    found.tcp.push(sampling(host, each_ack, because, &counts));
                }
                Err(error) => found.faults.push(format!("the TCP sampler failed: {error}")),
            }
        }
        Ok(())
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

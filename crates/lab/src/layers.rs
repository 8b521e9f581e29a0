//! The recorders of layered QoS during a trial. Unless the scenario names ports, they record all UDP and TCP of every
//! host, because a host of the lab has no other flows than the scenario's.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use suiro_hosts::{Host, Network};
use suiro_layers::{FlowFilter, Prepared, Protocol, Recorder, RecorderSpec};
use suiro_scenario::RecordOptions;

use crate::clock::Epoch;

/// One recorder per host, prepared before the trial's time zero and running from then on; their records are joined at
/// the end.
pub struct Layers<R> {
    recorders: Vec<(String, R)>,
    dir: PathBuf,
}

impl Layers<Prepared> {
    /// Prepares them, if `options` asks for them.
    pub fn prepare(network: &Network, options: &RecordOptions, dir: &Path) -> Result<Self> {
        let hosts = if options.layers { network.hosts() } else { &[] };
        let flows = flows(&options.layer_ports)?;
        let prepare = |host: &Host| {
            let name = host.name().to_owned();
            let spec = RecorderSpec {
                host: name.clone(),
                flows: flows.clone(),
                process: None,
                namespace: None,
                system_calls: true,
                dir: dir.to_owned(),
                name: Some(name.clone()),
            };
            let recorder = host.enter(|| Prepared::new(spec))?;
            let recorder = recorder.with_context(|| format!("recording the layers of {name}"))?;
            Ok((name, recorder))
        };
        let recorders = hosts.iter().map(prepare).collect::<Result<_>>()?;
        Ok(Self { recorders, dir: dir.to_owned() })
    }

    /// Starts them; times count from `epoch`.
    pub fn start(self, epoch: Epoch) -> Layers<Recorder> {
        let start =
            |(host, prepared): (String, Prepared)| (host, prepared.start(Some(epoch.monotonic_ns)));
        let recorders = self.recorders.into_iter().map(start).collect();
        Layers { recorders, dir: self.dir }
    }
}

/// All flows of these ports; of all ports if there are none.
fn flows(ports: &[u16]) -> Result<Vec<FlowFilter>> {
    let protocols = [Protocol::Udp, Protocol::Tcp];
    if ports.is_empty() {
        return Ok(protocols.map(FlowFilter::all).to_vec());
    }
    let each = ports.iter().flat_map(|port| protocols.map(|protocol| (protocol, port)));
    let flows = each.map(|(protocol, port)| format!("{protocol}:*-*:{port}").parse());
    flows.collect::<Result<_, _>>().context("the ports whose layers are recorded")
}

impl Layers<Recorder> {
    /// Stops them and joins their records (table `layer_accounts`); returns what failed. Passages that a recorder lost
    /// are not a failure: it counts them.
    pub fn stop(self, epoch: Epoch) -> Vec<String> {
        let fault = |(host, recorder): (String, Recorder)| {
            let error = recorder.stop().err()?;
            Some(format!("recording the layers of {host}: {error}"))
        };
        if self.recorders.is_empty() {
            return Vec::new();
        }
        let mut faults: Vec<String> = self.recorders.into_iter().filter_map(fault).collect();
        if let Err(error) = suiro_layers::report::write(&self.dir, epoch.monotonic_ns) {
            faults.push(format!("joining the layers of the hosts: {error}"));
        }
        faults
    }
}

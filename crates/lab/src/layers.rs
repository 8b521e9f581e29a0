//! The recorders of layered QoS during a trial: all UDP and TCP of every host, for a host of the lab has
//! no other flows than the scenario's.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use suiro_hosts::{Host, Network};
use suiro_layers::{FlowFilter, Protocol, Recorder, RecorderSpec};
use suiro_scenario::RecordOptions;

use crate::clock::Epoch;

/// A recorder a host; what they saw is joined at the end.
pub struct Layers {
    recorders: Vec<(String, Recorder)>,
    dir: PathBuf,
    epoch: Epoch,
}

impl Layers {
    /// Starts them, if `options` asks for them.
    pub fn start(
        network: &Network,
        options: &RecordOptions,
        epoch: Epoch,
        dir: &Path,
    ) -> Result<Self> {
        let mut layers = Self { recorders: Vec::new(), dir: dir.to_owned(), epoch };
        if !options.layers {
            return Ok(layers);
        }
        let start = |host: &Host| {
            let name = host.name().to_owned();
            let spec = RecorderSpec {
                host: name.clone(),
                flows: [Protocol::Udp, Protocol::Tcp].map(FlowFilter::all).to_vec(),
                process: None,
                namespace: None,
                system_calls: true,
                epoch_monotonic_ns: Some(epoch.monotonic_ns),
                dir: dir.to_owned(),
                name: Some(name.clone()),
            };
            let recorder = host.enter(|| Recorder::start(spec))?;
            let recorder = recorder.with_context(|| format!("recording the layers of {name}"))?;
            Ok((name, recorder))
        };
        layers.recorders = network.hosts().iter().map(start).collect::<Result<_>>()?;
        Ok(layers)
    }

    /// Ends them and joins what they saw (table `layer_accounts`); returns what failed. Passages that a recorder lost are no fault: it counts them.
    pub fn stop(self) -> Vec<String> {
        let fault = |(host, recorder): (String, Recorder)| {
            let error = recorder.stop().err()?;
            Some(format!("recording the layers of {host}: {error}"))
        };
        if self.recorders.is_empty() {
            return Vec::new();
        }
        let mut faults: Vec<String> = self.recorders.into_iter().filter_map(fault).collect();
        if let Err(error) = suiro_layers::report::write(&self.dir, self.epoch.monotonic_ns) {
            faults.push(format!("joining the layers of the hosts: {error}"));
        }
        faults
    }
}

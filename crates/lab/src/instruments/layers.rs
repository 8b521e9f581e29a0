//! The recorders of layered QoS during a trial. Unless the scenario names ports, they record all UDP and TCP of every
//! host, because a host of the lab has no other flows than the scenario's.

use anyhow::{Context, Result};
use suiro_hosts::Host;
use suiro_layers::{FlowFilter, Prepared, Protocol, Recorder, RecorderSpec};
use suiro_scenario::Setup;

use super::{Found, Instrument, Running, Scene};
use crate::clock::Epoch;

/// The service access points of every host.
pub struct ServiceAccessPoints;

/// One recorder per host, prepared before the trial's time zero and running from then on; their records are joined at
/// the end.
struct Layers<R>(Vec<(String, R)>);

impl Instrument for ServiceAccessPoints {
    fn lacking(&self, setup: &Setup) -> Option<String> {
        let error = setup.record.layers.then(suiro_layers::check_privilege)?.err()?;
        Some(format!("record.layers = true: {error}"))
    }

    fn prepare(&self, scene: Scene<'_>) -> Result<Option<Box<dyn super::Prepared>>> {
        let Scene { network, setup: Setup { record: options, .. }, dir, .. } = scene;
        if !options.layers {
            return Ok(None);
        }
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
        let recorders = network.hosts().iter().map(prepare).collect::<Result<_>>()?;
        Ok(Some(Box::new(Layers::<Prepared>(recorders))))
    }
}

impl super::Prepared for Layers<Prepared> {
    fn start(self: Box<Self>, _: Scene<'_>, epoch: Epoch) -> Result<Box<dyn Running>> {
        let start =
            |(host, prepared): (String, Prepared)| (host, prepared.start(Some(epoch.monotonic_ns)));
        let recorders = self.0.into_iter().map(start).collect();
        Ok(Box::new(Layers::<Recorder>(recorders)))
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

impl Running for Layers<Recorder> {
    /// Joins the records of the hosts (table `layer_accounts`). Passages that a recorder lost are not a failure: it counts
    /// them, and losses that they leave open are null.
    fn stop(self: Box<Self>, scene: Scene<'_>, epoch: Epoch, found: &mut Found) -> Result<()> {
        let fault = |(host, recorder): (String, Recorder)| {
            let error = recorder.stop().err()?;
            Some(format!("recording the layers of {host}: {error}"))
        };
        found.faults.extend(self.0.into_iter().filter_map(fault));
        if let Err(error) = suiro_layers::report::write(scene.dir, epoch.monotonic_ns) {
            found.faults.push(format!("joining the layers of the hosts: {error}"));
        }
        Ok(())
    }
}

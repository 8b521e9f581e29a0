//! What a trial needs of this machine and does not find: asked before it is run, so that a scenario
//! runs as far as a machine can.

use suiro_scenario::{EndpointSpec, Setup, TcpTrace};
use suiro_tcp::Controls;
use suiro_tcp::probe::Probe;

/// Why `setup` cannot be run here, with the remedy; `None` if nothing is known to be lacking.
pub fn lacking(setup: &Setup) -> Option<String> {
    let record = &setup.record;
    if record.tcp
        && record.tcp_trace == TcpTrace::Ack
        && let Err(error) = Probe::start()
    {
        return Some(format!("record.tcp_trace = \"ack\": {error}"));
    }
    let controls = Controls::read();
    setup.endpoints.iter().find_map(|endpoint| {
        let because = match &endpoint.spec {
            EndpointSpec::Origin(origin) => controls.lacking(origin.tcp.as_deref()?)?,
            _ => return None,
        };
        Some(format!("endpoint {}: {because}", endpoint.name))
    })
}

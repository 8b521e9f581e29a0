//! What a trial needs of this machine and does not find: asked before it is run, so that a scenario
//! runs as far as a machine can.

use suiro_scenario::{EndpointSpec, Setup};
use suiro_tcp::Controls;

/// Why `setup` cannot be run here, with the remedy; `None` if nothing is known to be lacking.
pub fn lacking(setup: &Setup) -> Option<String> {
    let controls = Controls::read();
    setup.endpoints.iter().find_map(|endpoint| {
        let because = match &endpoint.spec {
            EndpointSpec::Origin(origin) => controls.lacking(origin.tcp.as_deref()?)?,
            EndpointSpec::Player(_) | EndpointSpec::Command(_) => return None,
        };
        Some(format!("endpoint {}: {because}", endpoint.name))
    })
}

//! What a trial needs and this machine does not have. Checked before the trial is run, so that a
//! scenario runs as far as a machine can.

use suiro_scenario::Setup;
use suiro_tcp::Controls;

use crate::instruments;

/// Why `setup` cannot run here, with a hint on how to fix it; `None` if nothing is known to be missing. The congestion
/// controls `loadable` count as present.
pub fn lacking(setup: &Setup, loadable: &[&str]) -> Option<String> {
    instruments::lacking(setup).or_else(|| congestion(setup, loadable))
}

/// The first endpoint whose congestion control this kernel does not have.
fn congestion(setup: &Setup, loadable: &[&str]) -> Option<String> {
    let controls = Controls::read();
    setup.endpoints.iter().find_map(|endpoint| {
        let name = endpoint.spec.kind().congestion()?.name;
        if loadable.contains(&name) {
            return None;
        }
        let because = controls.lacking(name)?;
        Some(format!("endpoint {}: {because}", endpoint.name))
    })
}

/// Whether a trial of `setup` in the machine's time needs root: for BPF, or for a command with all capabilities.
pub fn needs_root(setup: &Setup) -> bool {
    let record = &setup.record;
    let mut commands = setup.endpoints.iter().filter_map(|endpoint| endpoint.spec.command());
    record.layers || record.needs_probe() || commands.any(|command| command.privileged)
}

#[cfg(test)]
mod tests {
    use suiro_scenario::{NoFiles, Overrides, parse};

    use super::*;

    #[test]
    fn what_the_kernel_does_not_have_is_reported_before_the_trial() {
        let text = r#"
            name = "x"
            title = "x"
            duration = "1 s"
            [topology]
            shape = "dumbbell"
            link = "x"
            [links.x]
            rate = "1 Mbit/s"
            [endpoints.bulk]
            kind = "command"
            host = "server"
            command = ["iperf3", "--client", "client", "--congestion", "nosuch"]
        "#;
        let scenario = parse(text, "x.toml").unwrap();
        let plan = scenario.plan_with(&Overrides::default(), &NoFiles).unwrap();
        let told = lacking(&plan.trials[0].setup, &[]).unwrap();
        assert!(told.starts_with("endpoint bulk: this kernel has no congestion control `nosuch`"));
        assert!(told.contains("hint: sudo modprobe tcp_nosuch"), "{told}");
        assert_eq!(lacking(&plan.trials[0].setup, &["nosuch"]), None);
    }
}

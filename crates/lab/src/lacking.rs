//! What a trial needs of this machine and does not find: asked before it is run, so that a scenario
//! runs as far as a machine can.

use std::path::Path;

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
            EndpointSpec::WebServer(server) => controls.lacking(server.tcp.as_deref()?)?,
            EndpointSpec::Command(command) => controls.lacking(of_iperf3(&command.command)?)?,
            _ => return None,
        };
        Some(format!("endpoint {}: {because}", endpoint.name))
    })
}

/// The congestion control that iperf3 is told to use, if the command is iperf3: of other programs
/// nobody knows.
fn of_iperf3(command: &[String]) -> Option<&str> {
    let (program, arguments) = command.split_first()?;
    if Path::new(program).file_name()? != "iperf3" {
        return None;
    }
    let long = arguments.iter().find_map(|argument| argument.strip_prefix("--congestion="));
    let at = arguments.iter().position(|argument| argument == "--congestion" || argument == "-C");
    long.or_else(|| arguments.get(at? + 1).map(String::as_str))
}

#[cfg(test)]
mod tests {
    use suiro_scenario::{NoFiles, Overrides, parse};

    use super::*;

    fn congestion(command: &str) -> Option<String> {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        of_iperf3(&words).map(str::to_owned)
    }

    #[test]
    fn iperf3_says_what_it_needs() {
        let bbr = Some("bbr".to_owned());
        assert_eq!(congestion("iperf3 --client x --congestion bbr --time 9"), bbr);
        assert_eq!(congestion("/usr/bin/iperf3 --congestion=bbr"), bbr);
        assert_eq!(congestion("iperf3 -c x -C bbr"), bbr);
        assert_eq!(congestion("iperf3 --client x"), None);
        assert_eq!(congestion("iperf3 --congestion"), None);
        assert_eq!(congestion("echo -C bbr"), None);
    }

    #[test]
    fn what_the_kernel_lacks_is_told_before_the_trial() {
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
        let told = lacking(&plan.trials[0].setup).unwrap();
        assert!(told.starts_with("endpoint bulk: this kernel has no congestion control `nosuch`"));
        assert!(told.contains("hint: sudo modprobe tcp_nosuch"), "{told}");
    }
}

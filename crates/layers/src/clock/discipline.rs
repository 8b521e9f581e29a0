//! What disciplines this host's CLOCK_REALTIME, according to the daemon that does it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::event::ClockStatus;

const CHRONY_SOCKET: &str = "/run/chrony/chronyd.sock";
const PTP4L_SOCKET: &str = "/run/ptp4l";
/// chronyd's reference when it follows its own clock, that is, no other.
const CHRONY_LOCAL: &str = "7F7F0101";
const SECOND_NS: f64 = 1e9;

/// What chronyd reports, or else ptp4l; `None` if neither runs or it does not follow another clock. For ptp4l we assume
/// that it disciplines CLOCK_REALTIME, either itself (software timestamps) or through phc2sys.
pub fn status() -> Option<ClockStatus> {
    if Path::new(CHRONY_SOCKET).exists()
        && let Some(text) = said("chronyc", &["-h", CHRONY_SOCKET, "-c", "tracking"])
        && let Some(status) = chrony(&text)
    {
        return Some(status);
    }
    let ask = ["-u", "-b", "0", "-s", PTP4L_SOCKET, "GET PORT_DATA_SET", "GET CURRENT_DATA_SET"];
    match Path::new(PTP4L_SOCKET).exists() {
        true => said("pmc", &ask).as_deref().and_then(ptp4l),
        false => None,
    }
}

/// The program's output; both programs give up by themselves if the daemon does not answer.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A line of `chronyc -c tracking` (chronyc(1)): field 5 is the system clock's lag behind NTP time in seconds, fields
/// 11 and 12 are root delay and root dispersion. The clock is wrong by at most its lag, the dispersion and half the
/// delay.
fn chrony(text: &str) -> Option<ClockStatus> {
    let fields: Vec<&str> = text.lines().next()?.split(',').collect();
    let [reference, .., leap] = fields[..] else { return None };
    if leap == "Not synchronised" || reference == CHRONY_LOCAL {
        return None;
    }
    let number = |field: usize| nanoseconds(fields.get(field)?, SECOND_NS);
    let (lag, delay, dispersion) = (number(4)?, number(10)?, number(11)?);
    status_of("chrony", -lag, dispersion.abs() + delay.abs() / 2.0)
}

/// Responses from pmc(8): the port that follows a master, and its offset in nanoseconds. If one direction takes longer
/// than the other, the error is at most the mean delay. The offset is a single reading: a deviation that the servo has
/// yet to correct, or noise (microseconds, with software timestamps); the true offset lies between it and zero.
fn ptp4l(text: &str) -> Option<ClockStatus> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
    };
    if value("portState")? != "SLAVE" {
        return None;
    }
    let number = |name| nanoseconds(value(name)?, 1.0);
    let (offset, delay) = (number("offsetFromMaster")?, number("meanPathDelay")?);
    status_of("ptp4l", offset, offset.abs() + delay.abs())
}

fn nanoseconds(text: &str, unit_ns: f64) -> Option<f64> {
    let value: f64 = text.trim().parse().ok()?;
    // Some 31 years: a larger value is not a clock's offset, and could overflow.
    Some(value * unit_ns).filter(|ns| ns.abs() < 1e18)
}

fn status_of(source: &str, offset_ns: f64, error_ns: f64) -> Option<ClockStatus> {
    let (offset_ns, error_ns) = (offset_ns.round() as i64, error_ns.ceil() as u64);
    Some(ClockStatus { source: source.into(), offset_ns, error_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str, offset_ns: i64, error_ns: u64) -> Option<ClockStatus> {
        Some(ClockStatus { source: source.into(), offset_ns, error_ns })
    }

    /// Output of chrony 4.3: in fields, with "0.000001300 seconds fast of NTP time" as its text form.
    #[test]
    fn chrony_reports_how_far_the_clock_is_ahead() {
        let text = "7F000001,127.0.0.1,9,1795266084.389949341,-0.000001299,0.000000002,0.000000630,0.309,\
                    0.002,0.227,0.000003172,0.000001417,0.1,Normal\n";
        assert_eq!(chrony(text), of("chrony", 1299, 1417 + 1586));
        let behind = text.replace("-0.000001299", "0.25");
        assert_eq!(chrony(&behind), of("chrony", -250_000_000, 3003));
    }

    #[test]
    fn a_clock_that_follows_no_other_is_not_disciplined() {
        let local = "7F7F0101,,8,1795266079.758491181,0.000000000,0.000000000,0.000000000,0.000,0.000,\
                     0.000,0.000000000,0.000000000,0.0,Normal\n";
        let none = "00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,\
                    1.000000000,1.000000000,0.0,Not synchronised\n";
        let hostile = ["", "x", "506 Cannot talk to daemon", ",,,,NaN,,,,,,1,1,,Normal"];
        for text in hostile.into_iter().chain([local, none, ",,,,1e300,,,,,,1,1,,Normal"]) {
            assert_eq!(chrony(text), None, "{text}");
        }
    }

    /// Output of linuxptp's pmc for a listening port, and the same with another state and offset.
    #[test]
    fn ptp4l_reports_the_offset_from_its_master() {
        let text = "sending: GET PORT_DATA_SET\nsending: GET CURRENT_DATA_SET\n\
            \t000000.fffe.000000-1 seq 0 RESPONSE MANAGEMENT PORT_DATA_SET \n\
            \t\tportIdentity            000000.fffe.000000-1\n\
            \t\tportState               LISTENING\n\
            \t\tlogMinDelayReqInterval  0\n\
            \t000000.fffe.000000-0 seq 1 RESPONSE MANAGEMENT CURRENT_DATA_SET \n\
            \t\tstepsRemoved     0\n\
            \t\toffsetFromMaster 0.0\n\
            \t\tmeanPathDelay    0.0\n";
        assert_eq!(ptp4l(text), None);
        let follows = text.replace("LISTENING", "SLAVE").replace("Master 0.0", "Master -31.0");
        let follows = follows.replace("Delay    0.0", "Delay    870.5");
        assert_eq!(ptp4l(&follows), of("ptp4l", -31, 31 + 871));
        for cut in 0..follows.len() {
            let _ = ptp4l(&follows[..cut]);
        }
    }
}

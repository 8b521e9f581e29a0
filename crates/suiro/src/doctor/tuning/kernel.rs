//! Socket memory, the backlog, huge pages.

use std::path::Path;

use suiro_uncompressed::socket::BUFFER_BYTES;

use super::machine::Machine;
use super::{Change, Finding};
use crate::doctor::State;

const GROUP: &str = "uncompressed: memory";
/// Packets that wait for a CPU: 3 Gbit/s in packets of 8800 bytes for 100 ms, and some.
const BACKLOG_PACKETS: u64 = 5000;

/// All findings of this module.
pub fn findings(machine: &Machine) -> Vec<Finding> {
    vec![
        at_least(
            machine,
            "receive buffers",
            "a receiver that is paused by the scheduler loses no packets",
            ("/proc/sys/net/core/rmem_max", BUFFER_BYTES.into(), "bytes"),
        ),
        at_least(
            machine,
            "backlog",
            "packets that wait for their CPU",
            ("/proc/sys/net/core/netdev_max_backlog", BACKLOG_PACKETS, "packets"),
        ),
        huge_pages(machine),
    ]
}

/// A setting that must be `(path, least, unit)`.
pub(super) fn at_least(
    machine: &Machine,
    name: &str,
    purpose: &'static str,
    (path, least, unit): (&str, u64, &str),
) -> Finding {
    let Some(found) = machine.number(path) else {
        let found = "it cannot be read here";
        let mend = "run this in the host's own network namespace";
        return Finding::ok(GROUP, name, purpose, found).but(State::Limited, mend);
    };
    let text = format!("at most {found} {unit}");
    let finding = Finding::ok(GROUP, name, purpose, &text);
    if found >= least {
        return finding;
    }
    let (was, value) = (found.to_string(), least.to_string());
    let change = Change::File { path: Path::new(path).to_owned(), was, value };
    finding.mended_by(State::Limited, vec![change])
}

fn huge_pages(machine: &Machine) -> Finding {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let purpose = "the ring of frames in pages of 2 MB";
    let name = "huge pages";
    match machine.read(path) {
        None => Finding::ok(GROUP, name, purpose, "this kernel has none")
            .but(State::Limited, "a kernel with CONFIG_TRANSPARENT_HUGEPAGE"),
        Some(was) if was == "never" => {
            let value = "madvise".to_owned();
            let change = Change::File { path: path.into(), was, value };
            Finding::ok(GROUP, name, purpose, "never").mended_by(State::Limited, vec![change])
        }
        Some(chosen) => Finding::ok(GROUP, name, purpose, &chosen),
    }
}

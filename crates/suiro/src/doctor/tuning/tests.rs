use std::fs;

use super::*;

/// What ethtool printed for a virtual card, shortened, but with smaller rings.
const RINGS: &str = "Ring parameters for eth0:
Pre-set maximums:
RX:\t\t256
RX Mini:\tn/a
RX Jumbo:\tn/a
TX:\t\t256
Current hardware settings:
RX:\t\t64
RX Mini:\tn/a
RX Jumbo:\tn/a
TX:\t\t256
RX Buf Len:\t\tn/a
";
const FEATURES: &str = "Features for eth0:
rx-checksumming: on [fixed]
tx-checksumming: on
\ttx-checksum-ipv4: off [fixed]
scatter-gather: on
\ttx-scatter-gather: on
generic-segmentation-offload: off
generic-receive-offload: on
tx-udp-segmentation: off [fixed]
";

const FILES: &[(&str, &str)] = &[
    ("proc/sys/net/core/rmem_max", "212992\n"),
    ("proc/sys/kernel/random/boot_id", "one\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("sys/devices/system/node/online", "0-1\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
    ("proc/cpuinfo", "processor: 0\nflags\t\t: fpu hypervisor sse\n"),
    ("proc/stat", "cpu  100 0 100 700 0 0 50 50 70 0\ncpu0 1 1\n"),
    ("sys/class/net/eth0/operstate", "up\n"),
    ("sys/class/net/eth0/mtu", "1500\n"),
    ("sys/class/net/eth0/tx_queue_len", "10000\n"),
    ("sys/class/net/eth0/device/numa_node", "1\n"),
    ("sys/devices/system/node/node1/cpulist", "2-3\n"),
    ("sys/class/net/eth0/device/msi_irqs/38", "msix\n"),
    ("sys/class/net/eth0/device/msi_irqs/39", "msix\n"),
    ("proc/irq/38/smp_affinity_list", "0\n"),
    // May be served anywhere, and is served where the other is.
    ("proc/irq/39/smp_affinity_list", "0-3\n"),
    ("proc/irq/39/effective_affinity_list", "0\n"),
    ("sys/class/net/lo/operstate", "unknown\n"),
    ("sys/class/net/lo/mtu", "65536\n"),
];

/// A machine made of files, whose ethtool shows the above and takes every change.
fn machine() -> (tempfile::TempDir, Machine) {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in FILES {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let ethtool = |arguments: &[&str]| match arguments {
        ["-g", "eth0"] => Ok(RINGS.to_owned()),
        ["-k", "eth0"] => Ok(FEATURES.to_owned()),
        ["-G" | "-K", "eth0", ..] => Ok(String::new()),
        other => Err(format!("no such device: {other:?}")),
    };
    let machine = Machine::at(root.path(), Box::new(ethtool));
    (root, machine)
}

fn mends(machine: &Machine, interfaces: &[&str]) -> Vec<(String, State, String)> {
    let interfaces: Vec<_> = interfaces.iter().map(|name| (*name).to_owned()).collect();
    let row = |Finding { check, .. }| (check.name, check.state, check.mend.unwrap_or_default());
    findings(machine, &interfaces).into_iter().map(row).collect()
}

#[test]
fn each_lack_is_told_with_its_command() {
    let (_root, machine) = machine();
    let lacks: Vec<_> =
        mends(&machine, &[]).into_iter().filter(|(_, state, _)| *state != State::Ok).collect();
    let expected = [
        ("receive buffers", "sudo sysctl -w net.core.rmem_max=67108864"),
        ("backlog", "run this in the host's own network namespace"),
        ("huge pages", "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
        ("NUMA", "numactl --cpunodebind=1 --membind=1 suiro uncompressed …"),
        (
            "governor",
            "echo performance | sudo tee /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
        ),
        (
            "virtualisation",
            "on the machine below: pin each virtual core to one of a single node, pass the \
             network card through (SR-IOV)",
        ),
        ("steal", "a machine that is not shared, or fewer virtual cores on it"),
        ("eth0 MTU", "sudo ip link set eth0 mtu 9000"),
        ("eth0 rings", "sudo ethtool -G eth0 rx 256 tx 256"),
        ("eth0 offloads", "sudo ethtool -K eth0 generic-segmentation-offload on"),
        (
            "eth0 interrupts",
            "echo 2 | sudo tee /proc/irq/38/smp_affinity_list; echo 3 | sudo tee \
             /proc/irq/39/smp_affinity_list",
        ),
    ];
    let found: Vec<_> =
        lacks.iter().map(|(name, _, mend)| (name.as_str(), mend.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_is_well_needs_nothing() {
    let (_root, machine) = machine();
    let well: Vec<_> = mends(&machine, &["eth0"])
        .into_iter()
        .filter_map(|(name, state, _)| (state == State::Ok).then_some(name))
        .collect();
    assert_eq!(well, ["cores", "eth0 queue"]);
}

#[test]
fn an_interface_that_is_not_there_is_missing() {
    let (_root, machine) = machine();
    let rows = mends(&machine, &["eth9"]);
    let (name, state, mend) = rows.last().unwrap();
    assert_eq!((name.as_str(), *state, mend.as_str()), ("eth9", State::Missing, "ip -brief link"));
}

#[test]
fn steal_is_the_eighth_number_of_the_first_line() {
    let (_root, machine) = machine();
    let steal = findings(&machine, &[]).into_iter().find(|f| f.check.name == "steal").unwrap();
    assert_eq!(steal.check.found, "5.00 % of all time since the start of the system");
}

#[test]
fn what_was_applied_is_taken_back_even_after_two_times() {
    let (root, machine) = machine();
    let state = root.path().join("state/tuning.json");
    let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap().trim().to_owned();
    let changes =
        || findings(&machine, &[]).into_iter().flat_map(|f| f.changes).collect::<Vec<_>>();

    let steps = apply::apply(&machine, changes(), &state).unwrap();
    assert!(steps.iter().all(apply::Step::is_well), "{steps:?}");
    assert_eq!(read("proc/sys/net/core/rmem_max"), "67108864");
    assert_eq!(read("sys/class/net/eth0/mtu"), "9000");
    assert_eq!(read("proc/irq/39/smp_affinity_list"), "3");
    // Somebody lowers one and suiro raises it again: what it said at first is still known.
    fs::write(root.path().join("sys/class/net/eth0/mtu"), "4000").unwrap();
    apply::apply(&machine, changes(), &state).unwrap();
    // Another is set by somebody else since.
    fs::write(root.path().join("proc/irq/38/smp_affinity_list"), "1").unwrap();

    let steps = apply::undo(&machine, &state).unwrap();
    assert!(steps.iter().all(apply::Step::is_well), "{steps:?}");
    assert_eq!(read("proc/sys/net/core/rmem_max"), "212992");
    assert_eq!(read("sys/class/net/eth0/mtu"), "1500");
    assert_eq!(read("sys/kernel/mm/transparent_hugepage/enabled"), "never");
    assert_eq!(read("proc/irq/39/smp_affinity_list"), "0-3");
    assert_eq!(read("proc/irq/38/smp_affinity_list"), "1", "not ours");
    let told: Vec<_> = steps.iter().map(ToString::to_string).collect();
    assert!(told.contains(&"sudo ethtool -G eth0 rx 64 tx 256".to_owned()), "{told:?}");
    assert!(!state.exists(), "nothing is left to undo");
    assert!(apply::undo(&machine, &state).unwrap().is_empty());
}

#[test]
fn a_restart_has_undone_everything() {
    let (root, machine) = machine();
    let state = root.path().join("tuning.json");
    let changes = findings(&machine, &[]).into_iter().flat_map(|f| f.changes).collect();
    apply::apply(&machine, changes, &state).unwrap();
    fs::write(root.path().join("proc/sys/kernel/random/boot_id"), "two\n").unwrap();
    assert!(apply::undo(&machine, &state).unwrap().is_empty());
    assert!(!state.exists());
}

#[test]
fn a_change_that_fails_is_told_and_stays_remembered() {
    let (root, machine) = machine();
    let state = root.path().join("tuning.json");
    let missing = Change::File {
        path: "/proc/sys/net/core/gone/deep".into(),
        was: "1".to_owned(),
        value: "2".to_owned(),
    };
    let unknown = Change::Ethtool {
        apply: vec!["-G".to_owned(), "eth7".to_owned()],
        undo: vec!["-G".to_owned(), "eth7".to_owned()],
    };
    let steps = apply::apply(&machine, vec![missing, unknown], &state).unwrap();
    assert!(steps[0].to_string().starts_with("failed: sudo sysctl -w net.core.gone.deep=2: "));
    assert!(steps[1].to_string().contains("failed: sudo ethtool -G eth7: no such device"));
    let steps = apply::undo(&machine, &state).unwrap();
    assert_eq!(steps.iter().filter(|step| !step.is_well()).count(), 1);
    assert!(state.exists(), "what could not be taken back is not forgotten");
    fs::write(&state, "{").unwrap();
    let error = format!("{:#}", apply::undo(&machine, &state).unwrap_err());
    assert!(error.contains("remove it to forget the applied changes"), "{error}");
}

#[test]
fn only_interfaces_that_are_named_are_changed() {
    let (_root, machine) = machine();
    let changes = findings(&machine, &[]).into_iter().flat_map(|finding| finding.changes);
    let (of_interface, others): (Vec<_>, Vec<_>) = changes.partition(Change::is_of_interface);
    let commands = |of: &[Change]| of.iter().map(Change::command).collect::<Vec<_>>().join("; ");
    let told = commands(&of_interface);
    assert!(told.contains("mtu 9000") && told.contains("ethtool -G eth0"), "{told}");
    let told = commands(&others);
    assert!(told.contains("rmem_max") && !told.contains("eth0"), "{told}");
}

//! `suiro layers analyze`: captures of others' tools.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use suiro_layers::pcapng::{Capture, Ends, recordings};
use suiro_layers::report::joined;
use suiro_outside::file;

use crate::{Outcome, Usage};

pub(super) const EXAMPLES: &str = "Examples:
  tcpdump -i eth0 -s 96 -w a.pcap udp                              here, and b.pcap on the other
  suiro layers analyze a.pcap b.pcap
  suiro layers analyze a.pcapng b.pcapng --first-address 10.0.0.1 --same-clock --json";

/// The longest capture that is read: it is held in memory.
const FILE_BYTES: u64 = 8 << 30;

/// Arguments of `layers analyze`.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// A capture made on one host, pcapng or pcap.
    first: PathBuf,
    /// A capture made on the other host at the same time.
    second: PathBuf,
    /// An address of the first host, where the captures do not show which host is which.
    #[arg(long, value_name = "ADDRESS")]
    first_address: Option<IpAddr>,
    /// Both captures were made on one machine, by one clock.
    #[arg(long)]
    same_clock: bool,
    /// For programs.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &AnalyzeArgs) -> Result<Outcome> {
    let ends = Ends { first_address: args.first_address, same_clock: args.same_clock };
    let captures = [read(&args.first)?, read(&args.second)?];
    let names = [name(&args.first), name(&args.second)];
    let made = recordings([&captures[0], &captures[1]], [&names[0], &names[1]], ends);
    let [first, second] = made.map_err(|error| Usage(error.to_string()))?;
    super::report::print(&joined(&first, &second), args.json)
}

fn read(path: &Path) -> Result<Capture> {
    let file = match file::read(path, FILE_BYTES) {
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            let hint =
                "hint: `editcap -A TIME -B TIME` keeps a part, `tcpdump -s 96` captures less";
            return Err(Usage::file(path, format!("{error}\n{hint}")).into());
        }
        file => file.map_err(|error| Usage::file(path, error))?,
    };
    let capture = Capture::read(&file).map_err(|error| Usage::file(path, error))?;
    for (count, what) in [
        (capture.others, "packets are not UDP or TCP over IP, or have no timestamp"),
        (capture.short, "packets were captured too short, or are malformed"),
        (capture.lost, "packets were lost by the capturing tool"),
        (capture.cut.into(), "packet at the end is cut short"),
    ] {
        if count > 0 {
            say!("{}: {count} {what}", path.display());
        }
    }
    Ok(capture)
}

/// A host's name from its capture's.
fn name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

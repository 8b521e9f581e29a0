//! `suiro uncompressed`: the 8K stream server by hand.

mod bench;
mod stores;
mod stream;
mod switching;

use anyhow::Result;
use clap::Subcommand;
use suiro_uncompressed::clock::{self, TaiState};

use crate::Outcome;

/// Shown after the help.
pub const EXAMPLES: &str = "Examples:
  suiro uncompressed synth --out nodes --frames 120        eight stores of synthetic pictures
  suiro uncompressed split film.mp4 --out nodes --frames 60
  suiro uncompressed info nodes/*.frames --verify
  suiro uncompressed join nodes/*.frames --out 8k.raw
  suiro uncompressed receive 192.0.2.7:5004 --format raster --duration \"10 s\"
  suiro uncompressed send 192.0.2.7:5004 --format raster --store nodes/node-1.frames
  suiro uncompressed send 239.0.0.1:5004 --source 192.0.2.1 --sdp .
  suiro uncompressed bench both --store nodes/node-1.frames --to 192.0.2.7:5004
  suiro uncompressed bench switching --times 100           frames lost by switching";

/// The commands of `uncompressed`.
#[derive(Debug, Subcommand)]
pub enum UncompressedCommand {
    /// Make frame stores of synthetic pictures, with number and checksum in every frame.
    Synth(stores::SynthArgs),
    /// Split an 8K picture sequence into the frame stores of eight nodes.
    Split(stores::SplitArgs),
    /// Join eight frame stores into raw 8K pictures, bit for bit.
    Join(stores::JoinArgs),
    /// Print what frame stores contain.
    Info(stores::InfoArgs),
    /// Send streams, each packet at its time: frame k of every stream begins k frame times after
    /// the SMPTE epoch, whichever host it is on.
    Send(stream::SendArgs),
    /// Receive streams, and verify every packet and frame.
    Receive(stream::ReceiveArgs),
    /// Measure what this machine can do: read frames, send them, both at once.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
}

/// What was typed after `suiro uncompressed`.
pub fn run(command: &UncompressedCommand) -> Result<Outcome> {
    match command {
        UncompressedCommand::Synth(args) => stores::synth(args),
        UncompressedCommand::Split(args) => stores::split(args),
        UncompressedCommand::Join(args) => stores::join(args),
        UncompressedCommand::Info(args) => stores::info(args),
        UncompressedCommand::Send(args) => {
            tell_of_clock();
            stream::send(args)
        }
        UncompressedCommand::Receive(args) => {
            tell_of_clock();
            stream::receive(args)
        }
        UncompressedCommand::Bench(command) => bench::run(command),
    }
}

/// Frames are in step with those of other hosts if the clocks are.
fn tell_of_clock() {
    if let Some(complaint) = clock::tai_state().and_then(TaiState::complaint) {
        say!(
            "note: in step with this machine only: {complaint}; `suiro doctor --uncompressed` \
            prints how to fix it"
        );
    }
}

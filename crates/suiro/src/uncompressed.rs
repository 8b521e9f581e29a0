//! `suiro uncompressed`: the 8K stream server by hand.

mod stores;

use anyhow::Result;
use clap::Subcommand;

use crate::Outcome;

/// Shown after the help.
pub const EXAMPLES: &str = "Examples:
  suiro uncompressed synth --out nodes --frames 120        eight stores of synthetic pictures
  suiro uncompressed split film.mp4 --out nodes --frames 60
  suiro uncompressed info nodes/*.frames --verify
  suiro uncompressed join nodes/*.frames --out 8k.raw";

/// The commands of `uncompressed`.
#[derive(Debug, Subcommand)]
pub enum UncompressedCommand {
    /// Make frame stores of synthetic pictures, with number and checksum in every frame.
    Synth(stores::SynthArgs),
    /// Split an 8K picture sequence into the frame stores of eight nodes.
    Split(stores::SplitArgs),
    /// Join eight frame stores into raw 8K pictures, bit for bit.
    Join(stores::JoinArgs),
    /// Tell what frame stores hold.
    Info(stores::InfoArgs),
}

/// What was typed after `suiro uncompressed`.
pub fn run(command: &UncompressedCommand) -> Result<Outcome> {
    match command {
        UncompressedCommand::Synth(args) => stores::synth(args),
        UncompressedCommand::Split(args) => stores::split(args),
        UncompressedCommand::Join(args) => stores::join(args),
        UncompressedCommand::Info(args) => stores::info(args),
    }
}

//! `suiro uncompressed`: the 8K stream server by hand.

mod analyze;
mod bench;
mod control;
mod describe;
mod stores;
mod stream;
mod switching;
mod timing_text;

use anyhow::Result;
use clap::Subcommand;
use suiro_uncompressed::clock::{self, TaiState};

use crate::Outcome;

/// Shown after the help.
pub const EXAMPLES: &str = "Examples:
  suiro uncompressed synth --out nodes --frames 120        eight stores of synthetic frames
  suiro uncompressed split film.mp4 --out nodes --frames 60
  suiro uncompressed info nodes/*.frames --verify
  suiro uncompressed join nodes/*.frames --out 8k.raw
  suiro uncompressed receive 192.0.2.7:5004 --format raster --duration \"10 s\"
  suiro uncompressed send 192.0.2.7:5004 --format raster --store nodes/node-1.frames
  suiro uncompressed send 239.0.0.1:5004 --source 192.0.2.1 --sdp .
  suiro uncompressed analyze capture.pcap --sdp stream.sdp   its timing, by ST 2110-21
  suiro uncompressed registry --listen 127.0.0.1:8235
  suiro uncompressed node --name n1 --address 192.0.2.1 --listen 127.0.0.1:8080 \\
      --registry http://127.0.0.1:8235 --stream 0=nodes/node-1.frames
  suiro uncompressed control serve desired.toml --listen 127.0.0.1:8090 \\
      --registry http://127.0.0.1:8235
  suiro uncompressed control move 0 n2
  suiro uncompressed bench both --store nodes/node-1.frames --to 192.0.2.7:5004
  suiro uncompressed bench switching --times 100           frames lost by switching";

/// The commands of `uncompressed`.
#[derive(Debug, Subcommand)]
pub enum UncompressedCommand {
    /// Make frame stores of synthetic frames, with number and checksum in every frame.
    Synth(stores::SynthArgs),
    /// Split an 8K frame sequence into the frame stores of eight nodes.
    Split(stores::SplitArgs),
    /// Join eight frame stores into raw 8K frames, bit for bit.
    Join(stores::JoinArgs),
    /// Print the contents of frame stores.
    Info(stores::InfoArgs),
    /// Send streams, each packet at its time: frame k of every stream begins k frame times after
    /// the SMPTE epoch, whichever host it is on.
    Send(stream::SendArgs),
    /// Receive streams, and verify every packet and frame.
    Receive(stream::ReceiveArgs),
    /// Analyze the timing of video streams in captures: ST 2110-21 (C_INST, VRX, first packet time; narrow or wide), RTP
    /// timestamps, and the skew of two legs of ST 2022-7.
    Analyze(analyze::AnalyzeArgs),
    /// Run a node: it sends the streams that are activated over AMWA NMOS IS-05.
    Node(control::NodeArgs),
    /// Run a registry of nodes: AMWA NMOS IS-04.
    Registry(control::RegistryArgs),
    /// Command nodes: which stream is sent by which, with standbys for nodes that fail.
    #[command(subcommand)]
    Control(control::ControlCommand),
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
        UncompressedCommand::Analyze(args) => analyze::run(args),
        UncompressedCommand::Node(args) => {
            tell_of_clock();
            control::node(args)
        }
        UncompressedCommand::Registry(args) => control::registry(args),
        UncompressedCommand::Control(command) => control::control(command),
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

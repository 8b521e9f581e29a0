//! Prepares a package and prints what came out:
//! `cargo run --release -p suiro-media --example prepare -- CACHE '{"source": "synthetic"}'`.

use std::path::Path;

use suiro_media::{MediaSpec, prepare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cache, spec] = &arguments[..] else {
        return Err("usage: prepare CACHE '{\"source\": \"bbb\"}'".into());
    };
    let spec: MediaSpec = serde_json::from_str(spec)?;
    let mut told = String::new();
    let package = prepare(&spec, Path::new(cache), &mut |done, phase| {
        if told != phase {
            eprintln!("{:3.0} % {phase}", done * 100.0);
            phase.clone_into(&mut told);
        }
    })?;
    eprintln!("{}: {} in {}", package.source.name, package.size(), package.folder.display());
    for track in package.tracks() {
        for rendition in track.fmp4.iter().chain(&track.ts) {
            eprintln!(
                "{} {} {}: asked {}, mean {}, most {}, {} segments",
                track.id,
                track.label,
                track.codec,
                track.bitrate,
                rendition.bitrate_mean,
                rendition.bitrate_max,
                rendition.segments.len(),
            );
        }
    }
    Ok(())
}

//! Our Opus and libopus, which ffmpeg has: each decodes what the other made.

use std::path::Path;
use std::process::{Command, Stdio};

use suiro_media::Ffmpeg;
use suiro_media::sound::{Decoder, Ear, Encoder, RATE, SAMPLES, tones};
use suiro_units::BitRate;

use crate::common;

const FRAMES: u64 = 300;
/// The encoder looks ahead so far, and its first frames are made of nothing.
const SETTLED: usize = 10 * SAMPLES;

/// Packets of 20 ms as a stream of Ogg (RFC 3533, RFC 7845), one in a page.
fn ogg(packets: &[Vec<u8>]) -> Vec<u8> {
    let head = [&b"OpusHead\x01\x01\0\0"[..], &RATE.to_le_bytes(), &[0; 3]].concat();
    let tags = b"OpusTags\0\0\0\0\0\0\0\0".to_vec();
    let all = [(head, 2, 0), (tags, 0, 0)].into_iter();
    let all =
        all.chain((1..).zip(packets).map(|(n, packet)| (packet.clone(), 0, n * SAMPLES as u64)));
    let mut file = Vec::new();
    for (number, (packet, flags, position)) in (0_u32..).zip(all) {
        let mut page = [&b"OggS\0"[..], &[flags], &position.to_le_bytes(), &[7, 0, 0, 0]].concat();
        page.extend(number.to_le_bytes());
        page.extend([0; 4]);
        let laces = packet.len() / 255 + 1;
        page.push(laces as u8);
        page.extend(vec![255; laces - 1]);
        page.push((packet.len() % 255) as u8);
        page.extend(packet);
        let sum = checksum(&page);
        page[22..26].copy_from_slice(&sum.to_le_bytes());
        file.extend(page);
    }
    file
}

/// RFC 3533 §6: CRC-32, not reflected, from 0.
fn checksum(page: &[u8]) -> u32 {
    page.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| {
            sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 }
        })
    })
}

/// What ffmpeg prints with these arguments.
fn ffmpeg(program: &Ffmpeg, dir: &Path, arguments: &str) -> Vec<u8> {
    let mut command = Command::new(program.path());
    command.args(["-v", "error"]).args(arguments.split(' ')).current_dir(dir);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn samples(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|sample| f32::from_le_bytes(sample.try_into().unwrap())).collect()
}

/// Signal to difference, in decibels.
fn snr_db(one: &[f32], other: &[f32]) -> f64 {
    let square = |value: f32| f64::from(value) * f64::from(value);
    let signal: f64 = one.iter().map(|value| square(*value)).sum();
    let difference: f64 = one.iter().zip(other).map(|(a, b)| square(a - b)).sum();
    10.0 * (signal / difference.max(1e-12)).log10()
}

#[test]
fn libopus_decodes_our_packets_as_we_do() {
    let Some(program) = common::ffmpeg() else { return };
    let dir = tempfile::tempdir().unwrap();
    for kbps in [16, 32, 64] {
        let mut encoder = Encoder::new(BitRate::from_kbps(kbps)).unwrap();
        let packets: Vec<Vec<u8>> =
            (0..FRAMES).map(|n| encoder.encode(&tones::frame(n)).unwrap()).collect();
        std::fs::write(dir.path().join("ours.opus"), ogg(&packets)).unwrap();
        let theirs = "-c:a libopus -i ours.opus -f f32le -ar 48000 -ac 1 -";
        let theirs = samples(&ffmpeg(&program, dir.path(), theirs));
        let mut decoder = Decoder::new().unwrap();
        let ours: Vec<f32> =
            packets.iter().flat_map(|packet| decoder.decode(packet).unwrap().to_vec()).collect();
        assert_eq!(ours.len(), theirs.len());
        let snr = snr_db(&theirs[SETTLED..], &ours[SETTLED..]);
        assert!(snr > 50.0, "{kbps} kbit/s: {snr:.1} dB");
    }
}

#[test]
fn we_decode_the_packets_of_libopus() {
    let Some(program) = common::ffmpeg() else { return };
    let dir = tempfile::tempdir().unwrap();
    let sound: Vec<u8> =
        (0..FRAMES).flat_map(tones::frame).flat_map(|sample| sample.to_le_bytes()).collect();
    std::fs::write(dir.path().join("tones.f32"), sound).unwrap();
    let encode = "-f f32le -ar 48000 -ac 1 -i tones.f32 -map 0:a -c:a libopus -b:a 32k -vbr off \
                  -frame_duration 20 -f data -";
    // All packets have one size: 32 kbit/s for 20 ms.
    let packets = ffmpeg(&program, dir.path(), encode);
    let (mut decoder, mut ear) = (Decoder::new().unwrap(), Ear::default());
    let heard: Vec<Option<u64>> = packets
        .chunks_exact(80)
        .map(|packet| ear.hear(decoder.decode(packet).unwrap()))
        .skip(1)
        .collect();
    let right = (0..).zip(&heard).filter(|(n, heard)| **heard == Some(n % tones::NUMBERS)).count();
    assert!(right as u64 >= FRAMES * 97 / 100, "{right} of {}", heard.len());
}

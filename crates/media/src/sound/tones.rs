//! What the microphone hears: tones that say the number of each frame, modulo 256.
//!
//! One tone is always there, and gives the level that the others are compared with. The other eight are the bits of the
//! number's Gray code, each there or not. From a frame to the next one tone begins or ends, which costs the encoder little.
//! A reader that is off by a part of a frame is off by one at most. The frequencies are multiples of 50 Hz, so that a frame
//! has whole periods of each: a tone goes on without a break, and a window of 20 ms separates the tones exactly. All are
//! below 3 kHz, because Opus codes no more than 4 kHz at its lowest rates. From 24 kbit/s on, nearly all numbers can be read
//! from what a decoder says; at 16 kbit/s two of three.

use std::f64::consts::TAU;

use super::{RATE, SAMPLES};

/// Numbers repeat after so many frames: 5.12 s.
pub const NUMBERS: u64 = 256;
const BITS: usize = 8;
/// The tone that is always there.
const PILOT_HZ: f64 = 400.0;
const FIRST_HZ: f64 = 700.0;
const STEP_HZ: f64 = 300.0;
/// Of each tone, where the largest sample is 1. All nine together stay below 1.
const AMPLITUDE: f64 = 0.1;
/// A tone that begins or ends does so within so many samples: 2.5 ms.
const RAMP: usize = 120;
/// A frame whose first tone is weaker than this share of what was sent says nothing.
const LEAST: f64 = 0.25;
/// A bit is 1 if its tone has more than this share of the first tone's amplitude, and 0 if it has less. What is near
/// is no bit.
const HALF: f64 = 0.5;
const DOUBTFUL: f64 = 0.15;

fn gray(number: u64) -> u64 {
    let number = number % NUMBERS;
    number ^ number >> 1
}

fn frequency(bit: usize) -> f64 {
    FIRST_HZ + STEP_HZ * bit as f64
}

/// A sample of a tone. Every frame begins at the same phase.
fn tone(hertz: f64, sample: usize) -> f64 {
    (TAU * hertz * sample as f64 / f64::from(RATE)).sin()
}

/// The sound of a frame.
pub fn frame(number: u64) -> [f32; SAMPLES] {
    let (before, code) = (gray(number.wrapping_sub(1)), gray(number));
    std::array::from_fn(|sample| {
        // A raised cosine.
        let part = (sample as f64 / RAMP as f64).min(1.0);
        let ramp = 0.5 - 0.5 * (part * TAU / 2.0).cos();
        let bit = |bit: usize| {
            let (was, is) = (before >> bit & 1, code >> bit & 1);
            let level = was as f64 * (1.0 - ramp) + is as f64 * ramp;
            level * tone(frequency(bit), sample)
        };
        let all = tone(PILOT_HZ, sample) + (0..BITS).map(bit).sum::<f64>();
        (AMPLITUDE * all) as f32
    })
}

/// The number that a frame says, modulo 256; `None` if it says none: the tones are too weak, or one is neither there nor
/// not. The frame's samples, from the first on.
pub fn read(samples: &[f32; SAMPLES]) -> Option<u64> {
    let pilot = amplitude(samples, PILOT_HZ);
    if pilot < LEAST * AMPLITUDE {
        return None;
    }
    let mut code = 0;
    for bit in 0..BITS {
        let share = amplitude(samples, frequency(bit)) / pilot;
        if (share - HALF).abs() < DOUBTFUL {
            return None;
        }
        code |= u64::from(share > HALF) << bit;
    }
    // The number of a Gray code: each bit is the sum of those from it upwards.
    Some((0..BITS).fold(0, |number, shift| number ^ code >> shift))
}

/// The amplitude of a tone, in a window that rises and falls (Hann), so that the neighbouring frames' tones count little.
fn amplitude(samples: &[f32], hertz: f64) -> f64 {
    let step = TAU / samples.len() as f64;
    let (mut sine, mut cosine) = (0.0, 0.0);
    for (index, sample) in samples.iter().enumerate() {
        let window = 1.0 - (step * index as f64).cos();
        let (s, c) = (TAU * hertz * index as f64 / f64::from(RATE)).sin_cos();
        let value = window * f64::from(*sample);
        sine += value * s;
        cosine += value * c;
    }
    // glibc has a new version of `hypot` since 2.35, which older systems would lack.
    (sine * sine + cosine * cosine).sqrt() * 2.0 / samples.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_read_and_the_sound_is_not_cut_off() {
        for number in 0..2 * NUMBERS {
            let sound = frame(number);
            assert_eq!(read(&sound), Some(number % NUMBERS));
            assert!(sound.iter().all(|sample| sample.abs() < 1.0));
        }
    }

    #[test]
    fn silence_and_noise_say_nothing() {
        assert_eq!(read(&[0.0; SAMPLES]), None);
        let mut random = suiro_units::Seed(1).random();
        let mut noise =
            || std::array::from_fn(|_| (random.next_u64() % 1000) as f32 / 2500.0 - 0.2);
        let said = (0..200).filter(|_| read(&noise()).is_some()).count();
        assert!(said < 20, "{said} of 200 frames of noise say a number");
    }

    #[test]
    fn a_window_between_two_frames_says_one_of_them_or_nothing() {
        for number in 1..NUMBERS - 1 {
            let both = [frame(number), frame(number + 1)].concat();
            for from in [200, 480, 700] {
                let window = both[from..from + SAMPLES].try_into().unwrap();
                let said = read(&window);
                assert!(said.is_none_or(|said| said == number || said == number + 1), "{said:?}");
            }
        }
    }
}

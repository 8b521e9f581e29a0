//! What a listener hears in what a decoder says.

use super::{CODEC_DELAY, RATE, SAMPLES, tones};

/// Samples by which a decoder is behind.
const BEHIND: usize = CODEC_DELAY.as_nanos() as usize * RATE as usize / 1_000_000_000;

/// Reads the numbers of frames in the sound. The last samples of a frame come with the next one.
#[derive(Debug, Clone)]
pub struct Ear {
    /// The frame that was said last, whose first samples belong to the one before.
    last: Box<[f32; SAMPLES]>,
    has: bool,
}

impl Default for Ear {
    fn default() -> Self {
        Self { last: Box::new([0.0; SAMPLES]), has: false }
    }
}

impl Ear {
    /// What was said next: the number that the frame before says, modulo [`tones::NUMBERS`]; `None` if it says none.
    pub fn hear(&mut self, said: &[f32]) -> Option<u64> {
        let Ok(said) = <&[f32; SAMPLES]>::try_from(said) else {
            self.has = false;
            return None;
        };
        let mut window = [0.0; SAMPLES];
        let (first, rest) = window.split_at_mut(SAMPLES - BEHIND);
        first.copy_from_slice(&self.last[BEHIND..]);
        rest.copy_from_slice(&said[..BEHIND]);
        let had = std::mem::replace(&mut self.has, true);
        *self.last = *said;
        tones::read(&window).filter(|_| had)
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::BitRate;

    use super::*;
    use crate::sound::{Decoder, Encoder};

    /// The numbers heard of `count` frames at a bit rate, of which those are lost; and the bit rate of the packets.
    fn heard(kbps: u64, count: u64, lost: impl Fn(u64) -> bool) -> (Vec<Option<u64>>, f64) {
        let mut encoder = Encoder::new(BitRate::from_kbps(kbps)).unwrap();
        let (mut decoder, mut ear) = (Decoder::new().unwrap(), Ear::default());
        let (mut all, mut bytes) = (Vec::new(), 0);
        for number in 0..count {
            let packet = encoder.encode(&tones::frame(number)).unwrap();
            bytes += packet.len();
            let said = match lost(number) {
                true => decoder.conceal(),
                false => decoder.decode(&packet),
            };
            all.push(ear.hear(said.unwrap()));
        }
        // The first call says nothing of a frame.
        (all.split_off(1), bytes as f64 * 8.0 / (0.02 * count as f64) / 1000.0)
    }

    #[test]
    fn opus_keeps_the_numbers_from_24_kbps_on() {
        for (kbps, least) in [(24, 0.9), (32, 0.97), (64, 0.99), (128, 0.99)] {
            let (numbers, rate) = heard(kbps, 600, |_| false);
            let right =
                |(number, heard): (u64, &Option<u64>)| *heard == Some(number % tones::NUMBERS);
            let right = (0..).zip(&numbers).filter(|it| right(*it)).count();
            assert!(right as f64 >= least * numbers.len() as f64, "{kbps} kbit/s: {right} right");
            assert!((rate / kbps as f64 - 1.0).abs() < 0.02, "{kbps} kbit/s: {rate}");
        }
    }

    #[test]
    fn after_a_loss_the_next_frames_are_heard() {
        let (numbers, _) = heard(32, 500, |number| number % 50 == 25);
        let right =
            |(number, heard): &(u64, &Option<u64>)| **heard == Some(number % tones::NUMBERS);
        let right = (0..).zip(&numbers).filter(right).count();
        // Opus predicts the energy of a frame from the one before: after each loss, some say nothing.
        assert!(right >= 499 - 10 * 5, "{right} of {}", numbers.len());
        let wrong = |(number, heard): &(u64, &Option<u64>)| {
            heard.is_some_and(|heard| heard != number % tones::NUMBERS)
        };
        let wrong = (0..).zip(&numbers).filter(wrong).count();
        assert!(wrong <= 10, "{wrong} say another number");
    }
}

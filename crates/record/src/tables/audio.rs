//! Sound in real time, at both ends.

use suiro_units::{BitRate, Duration, Time};

use crate::table;
use crate::table::Text;
use crate::words::AudioFate;

table! {
    /// One frame of sound (20 ms) that a receiver was to play, from the first that came to the last that was due. A loudspeaker
    /// takes 20 ms of sound every 20 ms; what is missing is concealed by the decoder. Every piece of 20 ms between the first
    /// and the last frame is a frame that was played, or one of `concealed`.
    AudioRow = "audio" {
        /// When it was played, or its place was passed: its first sample, with the delay of the codec (6.5 ms).
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Its number: for senders of suiro, how many frames of 20 ms the trial's clock had had when it was captured; of
        /// others, counted by the timestamps of RTP, from 0.
        frame: i64,
        /// When its first sample was captured, by the sender's clock; null if the receiver does not know it.
        captured_ns: Option<i64>,
        /// Its size as encoded; null if it never came.
        encoded_bytes: Option<u64>,
        /// When it came; null if it never did.
        received_ns: Option<Time>,
        /// What became of it.
        fate: AudioFate,
        /// When its first sample was played, with the delay of the codec; null if it was not.
        played_ns: Option<Time>,
        /// Pieces of 20 ms that were concealed since the frame before, in its place or before it was played.
        concealed: u64,
        /// For how long frames were to be held then, beyond what the fastest recent one took: what the jitter buffer aims at.
        buffer_target_ns: Duration,
        /// The number that the sound itself says, modulo 256: what the microphone of suiro hears are tones that number its
        /// frames. Null if the sound says none, as after a concealed piece.
        heard: Option<u64>,
    }
}

table! {
    /// One frame of sound (20 ms) that a sender passed to its transport.
    AudioSentRow = "audio_sent" {
        /// When it was passed on.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Its number, as in `audio`.
        frame: i64,
        /// When its first sample was captured.
        captured_ns: i64,
        /// Its size as encoded.
        encoded_bytes: u64,
        /// The bit rate that the encoder was set to.
        target_bps: BitRate,
    }
}

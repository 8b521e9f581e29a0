//! What viewers saw, and why.

use crate::table;
use crate::table::Text;
use crate::words::{Cause, Effect, Proof};

table! {
    /// One source frame that a viewer received, or should have shown. Written when it is shown, or
    /// when it is certain that it will not be. A gap has at most 100 000 rows.
    FrameRow = "frames" {
        /// When it was shown; for one that never was, when it was received; for one that was not
        /// received either, when it was skipped.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Its number in the source, from 0 at media time zero; looped footage counts on.
        frame: i64,
        /// When it was captured; null unless live.
        captured_ns: Option<i64>,
        /// Bit rate that the manifest gives for its rung, its peak; for real-time video, the rate that its encoder is
        /// set to, or the mean rate of its version; null if it was not received.
        rung_bps: Option<i64>,
        /// Its size as encoded; null where a transport does not show it (a segment holds many).
        encoded_bytes: Option<i64>,
        /// When its sender began to send it; null if unknown.
        sent_ns: Option<i64>,
        /// When the last of its bytes that came had arrived, for segmented media the segment's last byte; null if none
        /// came.
        received_ns: Option<i64>,
        /// True if a decoder could decode it.
        decodable: bool,
        /// True if it was decoded although parts of it, or of frames that it refers to, were
        /// missing, so that a decoder had to conceal them.
        damaged: bool,
        /// When it was shown; null if it never was.
        displayed_ns: Option<i64>,
    }
}

table! {
    /// The frame on the screen at one tick of the source's frame rate, from the first frame on, and its scores. The
    /// columns `picture_…` compare the frame with its own source frame; the columns `experience_…` compare it with the
    /// frame that should have been there at a constant delay, so that freezes count. The two are never mixed. VMAF is
    /// at 1080 lines, the size of its model, against the source in its own size; the columns `…_native`, and all
    /// columns in tables without these, are at the size of the tallest rung, or of the camera. `screens.json` has both
    /// sizes.
    QualityRow = "quality" {
        /// The tick.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// The source frame on the screen; null before the first.
        frame: Option<i64>,
        /// True if it was there at the tick before.
        repeated: bool,
        /// VMAF of the frame at 1080 lines, 0 to 100; null if repeated.
        picture_vmaf: Option<f64>,
        /// Structural similarity of the frame's luma, up to 1; null if repeated.
        picture_ssim: Option<f64>,
        /// Peak signal-to-noise ratio of the frame's luma in dB, 60 at most for 8 bits; null if
        /// repeated.
        picture_psnr_db: Option<f64>,
        /// VMAF of the experience at 1080 lines, 0 to 100.
        experience_vmaf: Option<f64>,
        /// Structural similarity of the experience.
        experience_ssim: Option<f64>,
        /// Peak signal-to-noise ratio of the experience in dB.
        experience_psnr_db: Option<f64>,
        /// VMAF of the frame at the native size; null if repeated, or `picture_vmaf` is that.
        picture_vmaf_native: Option<f64>,
        /// VMAF of the experience at the native size; null if `experience_vmaf` is that.
        experience_vmaf_native: Option<f64>,
    }
}

table! {
    /// Causes: what limited each flow, and the causes of each stall, freeze, late period and fall of the quality.
    /// Derived from the other tables: `suiro report` writes it into the trial's folder, and replaces it. An effect has
    /// a row for each of its causes, the greatest share first.
    CauseRow = "causes" {
        /// When it began.
        t_ns: i64,
        /// When it ended.
        to_ns: i64,
        /// The viewer's endpoint, or the flow as table `tcp` or `link` names it.
        subject: Text,
        /// The kind of effect.
        effect: Effect,
        /// Number of the effect in its trial, from 0; rows of one effect share it.
        number: u64,
        /// Its cause.
        cause: Cause,
        /// Share of the effect's time that this cause explains, 0 to 1.
        share: f64,
        /// The rows that show it: `TABLE[ROW]` or `TABLE[FIRST..LAST]`, separated by `; `. Rows count from 0 over all
        /// files of the table, in the order of their names. Conditions in braces after several rows select those that
        /// fulfil all of them: `COLUMN=VALUE`, `COLUMN=FROM..TO` (`TO` excluded), `COLUMN<VALUE`, `COLUMN>COLUMN` or
        /// `COLUMN-COLUMN>VALUE`.
        evidence: Text,
        /// A sentence about the whole effect; null unless it is the first row of an effect that a viewer saw.
        sentence: Option<Text>,
        /// What the trial without this cause showed; null unless `suiro why --prove` was asked.
        proof: Option<Proof>,
    }
}

//! Sound in real time.

use suiro_record::words::AudioFate;

use crate::audio::{Listener, listeners, values};
use crate::family::{Curve, Family, Measure, Subject};
use crate::instance::Instance;
use crate::view::View;

/// Each receiver of sound.
pub(super) struct Listeners;

impl Subject for Listeners {
    type One<'v> = Listener<'v>;

    const HAS_MEAN: bool = true;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Listener<'v>)> {
        let all = listeners(view);
        let several = all.len() > 1;
        let named = |one: Listener<'v>| (Instance::among(several, one.name), one);
        all.into_iter().map(named).collect()
    }
}

pub(super) static FAMILY: Family<Listeners> = Family { metrics: METRICS, series: SERIES };

static METRICS: &[Measure<Listeners>] = metrics! {
    #[main] audio.lip_sync_p50_ms ["ms", Neither, 3] "Lip sync, median",
        "How much earlier the sound of a capture time was played than the frame of video of that time was displayed, median over \
         the frames displayed whose sound was played. As in ITU-R BT.1359: positive if the sound is ahead, negative if it is \
         behind. Viewers notice more than +45 ms and less than −125 ms.",
        |l| values(l.skews_ms()).percentile(0.5);
    audio.lip_sync_p5_ms ["ms", Neither, 3] "Lip sync, 5 %",
        "The same, 5th percentile: how far behind the sound was at times.",
        |l| values(l.skews_ms()).percentile(0.05);
    audio.lip_sync_p95_ms ["ms", Neither, 3] "Lip sync, 95 %",
        "The same, 95th percentile: how far ahead the sound was at times.",
        |l| values(l.skews_ms()).percentile(0.95);
    audio.lip_sync_noticed_ratio ["ratio", Lower, 3] "Lip sync that viewers notice",
        "Share of these frames of video whose sound was more than 45 ms ahead or more than 125 ms behind, which ITU-R BT.1359-1 \
         has as the limits of what viewers notice.",
        |l| l.noticed_ratio();
    #[main] audio.concealed_ratio ["ratio", Lower, 3] "Sound concealed",
        "Share of the time played in which the decoder made the sound up, because no frame was there: lost, late, or waited for.",
        |l| l.concealed_ratio();
    #[main] audio.loss_ratio ["ratio", Lower, 3] "Sound lost",
        "Frames of sound (20 ms) that never came, as a share of all from the first that came to the last that was due. When nothing \
         comes any more, a frame counts 2 s after its place was passed.",
        |l| l.share(AudioFate::Lost);
    audio.late_ratio ["ratio", Lower, 3] "Sound too late",
        "Frames that came after their place had been passed, as a share of all.",
        |l| l.share(AudioFate::Late);
    audio.skipped_ratio ["ratio", Lower, 3] "Sound left out",
        "Frames that were there and left out because the jitter buffer was longer than it needed to be, as a share of all.",
        |l| l.share(AudioFate::Skipped);
    #[main] audio.latency_p50_ms ["ms", Lower, 4] "Mouth to ear, median",
        "From the capture of a sample to when it was played, with encoder, network, jitter buffer and decoder, median over the \
         frames played.",
        |l| values(l.ages_ms()).percentile(0.5);
    audio.latency_p95_ms ["ms", Lower, 4] "Mouth to ear, 95 %",
        "The same, 95th percentile.",
        |l| values(l.ages_ms()).percentile(0.95);
    audio.buffer_mean_ms ["ms", Lower, 3] "Sound in the jitter buffer",
        "From when a frame came until it was played, with the delay of the codec (6.5 ms), mean over the frames played.",
        |l| values(l.held_ms()).mean();
    audio.buffer_p95_ms ["ms", Lower, 3] "Sound in the jitter buffer, 95 %",
        "The same, 95th percentile.",
        |l| values(l.held_ms()).percentile(0.95);
    audio.frames ["frames", Higher, 4] "Frames of sound",
        "Frames of sound (20 ms) from the first that came to the last that was due.",
        |l| Some(l.frames());
    audio.misread ["frames", Lower, 3] "Sound of another frame",
        "Frames played whose sound says another number than they have, where nothing was concealed or left out just before or \
         after: a check of the path from the microphone to the loudspeaker. Null if no sound says a number, as that of other \
         programs.",
        |l| l.misread();
};

static SERIES: &[Curve<Listeners>] = series! {
    audio.latency_ms [MouthToEar, "ms", Line] "mouth to ear",
        "from the capture of a sample to when it was played, mean",
        |l, bins| bins.mean(l.ages_ms());
    audio.buffer_ms [MouthToEar, "ms", Context] "in the jitter buffer",
        "from when a frame of sound came until it was played, mean",
        |l, bins| bins.mean(l.held_ms());
    audio.lip_sync_ms [LipSync, "ms", Line] "sound ahead of the video",
        "how much earlier the sound of a capture time was played than the video of that time was displayed, mean; negative if the \
         sound is behind",
        |l, bins| bins.mean(l.skews_ms());
    audio.concealed_ms [Concealed, "ms", Bar] "concealed",
        "sound that the decoder made up",
        |l, bins| bins.sum(l.concealed_ms()).into_iter().map(Some).collect();
};

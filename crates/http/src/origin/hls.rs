//! Writes HLS playlists (RFC 8216).

use std::fmt::Write;

use suiro_scenario::Protocol;

use super::catalogue::{Catalogue, Container, RungEntry};
use super::timeline::Schedule;
use crate::iso8601::{decimal, format_date_time};
use crate::presentation::TrackKind;

const INFALLIBLE: &str = "writing to a string does not fail";

/// The playlist that names the rungs.
pub(crate) fn multivariant(catalogue: &Catalogue) -> String {
    let mut out = String::from("#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n");
    let container = catalogue.container(Protocol::Hls);
    let audio = catalogue.sound_in_hls();
    if let Some(audio) = audio {
        rendition(&mut out, audio).expect(INFALLIBLE);
    }
    let video = catalogue.tracks_in(container).find(|track| track.kind == TrackKind::Video);
    for rung in video.iter().flat_map(|video| &video.rungs[catalogue.first_in_hls(video)..]) {
        variant(&mut out, rung, audio).expect(INFALLIBLE);
    }
    out
}

/// §4.3.4.1. Each rendition of sound should say how many channels it has (also draft-pantos-hls-rfc8216bis §4.4.6.1).
fn rendition(out: &mut String, audio: &RungEntry) -> std::fmt::Result {
    write!(out, "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"audio\",NAME=\"audio\",LANGUAGE=\"und\",")?;
    write!(out, "DEFAULT=YES,AUTOSELECT=YES")?;
    if let Some(channels) = audio.channels {
        write!(out, ",CHANNELS=\"{channels}\"")?;
    }
    writeln!(out, ",URI=\"{}.m3u8\"", audio.id)
}

/// §4.3.4.2. BANDWIDTH is of everything that is played with the variant, its sound included.
fn variant(out: &mut String, rung: &RungEntry, audio: Option<&RungEntry>) -> std::fmt::Result {
    let sound_bps = audio.map_or(0, |audio| audio.declared.as_bps());
    write!(out, "#EXT-X-STREAM-INF:BANDWIDTH={}", rung.declared.as_bps() + sound_bps)?;
    let mean_bps = audio.map_or(0, |audio| audio.mean_rate.as_bps());
    write!(out, ",AVERAGE-BANDWIDTH={}", rung.mean_rate.as_bps() + mean_bps)?;
    let codecs = match audio {
        Some(audio) => format!("{},{}", rung.codecs, audio.codecs),
        None => rung.codecs.clone(),
    };
    write!(out, ",CODECS=\"{codecs}\"")?;
    if let Some((width, height)) = rung.size {
        write!(out, ",RESOLUTION={width}x{height}")?;
    }
    if let Some((frames, seconds)) = rung.frame_rate {
        write!(out, ",FRAME-RATE={:.3}", f64::from(frames) / f64::from(seconds.max(1)))?;
    }
    if audio.is_some() {
        write!(out, ",AUDIO=\"audio\"")?;
    }
    writeln!(out, "\n{}.m3u8", rung.id)
}

/// The playlist of one rung at a moment of the wall clock.
pub(crate) fn media(
    container: Container,
    rung: &RungEntry,
    schedule: &Schedule,
    unix_ns: u64,
) -> String {
    let mut out = String::from("#EXTM3U\n#EXT-X-VERSION:7\n");
    write_media(&mut out, container, rung, schedule, unix_ns).expect(INFALLIBLE);
    out
}

fn write_media(
    out: &mut String,
    container: Container,
    rung: &RungEntry,
    schedule: &Schedule,
    unix_ns: u64,
) -> std::fmt::Result {
    let timeline = &rung.timeline;
    let listed = schedule.listed(timeline, unix_ns);
    // §4.3.3.1: no EXTINF, rounded to whole seconds, exceeds it.
    let target = (timeline.longest().as_nanos() + 500_000_000) / 1_000_000_000;
    writeln!(out, "#EXT-X-TARGETDURATION:{}", target.max(1))?;
    writeln!(out, "#EXT-X-MEDIA-SEQUENCE:{}", listed.start)?;
    if let Schedule::Vod { .. } = schedule {
        writeln!(out, "#EXT-X-PLAYLIST-TYPE:VOD")?;
    }
    if container == Container::Fmp4 {
        writeln!(out, "#EXT-X-MAP:URI=\"{}/init.mp4\"", rung.id)?;
    }
    for number in listed {
        let place = timeline.place(number);
        let start = timeline.time(place.start);
        if let Schedule::Live { zero_unix_ns, .. } = schedule {
            let date = format_date_time(zero_unix_ns + start.as_nanos());
            writeln!(out, "#EXT-X-PROGRAM-DATE-TIME:{date}")?;
        }
        let end = timeline.time(place.start + place.duration);
        // Exact, so that a player that adds them up does not drift.
        writeln!(out, "#EXTINF:{},", decimal(end.saturating_sub(start).as_nanos()))?;
        writeln!(out, "{}/{number}.{}", rung.id, container.extension())?;
    }
    if let Schedule::Vod { .. } = schedule {
        writeln!(out, "#EXT-X-ENDLIST")?;
    }
    Ok(())
}

//! ffmpeg and what it was built with.

use suiro_media::ffmpeg::{Feature, Ffmpeg};
use suiro_screens::p1203::Program;

use super::{Check, State};
use crate::interrupt;

const GROUP: &str = "media";
const MEND: &str = "make setup (installs an ffmpeg with all of these), or set SUIRO_FFMPEG";

/// All checks of this module.
pub fn checks() -> Vec<Check> {
    let mut checks = ffmpeg_checks();
    checks.push(p1203_check());
    checks
}

/// The model of ITU-T P.1203, which the user may install and we may not ship.
fn p1203_check() -> Check {
    let check = |found: &str| {
        let purpose = "adds the metric `video.p1203_mos` (ITU-T P.1203), nothing else";
        Check::ok(GROUP, "p1203-standalone", purpose, found)
    };
    let mend = "pip install itu-p1203, if its licence allows your use; or set SUIRO_P1203";
    let program = match Program::locate() {
        Ok(Some(program)) => program,
        Ok(None) => return check("not found").but(State::Missing, mend),
        Err(error) => return check(&format!("{error:#}")).but(State::Missing, mend),
    };
    match program.version(&interrupt::happened) {
        Ok(version) => check(&format!("{version}, {}", program.path().display())),
        Err(error) => check(&format!("{error:#}")).but(State::Limited, mend),
    }
}

fn ffmpeg_checks() -> Vec<Check> {
    let check = |found: &str| {
        Check::ok(GROUP, "ffmpeg", "encodes, packages and decodes all media", found).required()
    };
    match Ffmpeg::locate() {
        Ok(ffmpeg) => {
            let found = format!("{}, {}", ffmpeg.version(), ffmpeg.path().display());
            let features = Feature::ALL.map(|feature| feature_check(&ffmpeg, feature));
            std::iter::once(check(&found)).chain(features).collect()
        }
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            vec![check(first).but(State::Missing, MEND)]
        }
    }
}

fn feature_check(ffmpeg: &Ffmpeg, feature: Feature) -> Check {
    let there = ffmpeg.has(feature);
    let found = if there { "built in" } else { "this ffmpeg was built without" };
    let (purpose, required) = match feature {
        Feature::Libx264 => ("H.264 ladders", true),
        Feature::Aac => ("sound", true),
        Feature::Libvmaf => ("frame quality as a viewer sees it", false),
        Feature::Whip => ("publishing over WebRTC", false),
    };
    let mut check = Check::ok(GROUP, feature.name(), purpose, found);
    if required {
        check = check.required();
    }
    if there { check } else { check.but(State::Missing, MEND) }
}

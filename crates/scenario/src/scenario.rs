//! A scenario: where it comes from, and the way to its plan.

use std::io::ErrorKind;
use std::path::Path;

use crate::document::{self, entry};
use crate::error::Error as ScenarioError;
use crate::files::{Disk, Files, NoFiles, read_text};
use crate::overrides::Overrides;
use crate::plan::{Plan, expand};
use crate::refusal::{Place, Refusal};
use crate::source::Source;

/// The scenarios that come with suiro, by subject: name and text of each.
const SUBJECTS: &[(&str, &[(&str, &str)])] = &[
    (
        "First steps",
        &[
            ("quick", include_str!("../../../scenarios/quick.toml")),
            ("ping", include_str!("../../../scenarios/ping.toml")),
            ("players", include_str!("../../../scenarios/players.toml")),
            ("chain", include_str!("../../../scenarios/chain.toml")),
        ],
    ),
    (
        "HTTP streaming",
        &[
            ("dash-hls-wireless", include_str!("../../../scenarios/dash-hls-wireless.toml")),
            ("http-streaming", include_str!("../../../scenarios/http-streaming.toml")),
            ("low-latency", include_str!("../../../scenarios/low-latency.toml")),
            ("low-latency-abr", include_str!("../../../scenarios/low-latency-abr.toml")),
            ("low-latency-cache", include_str!("../../../scenarios/low-latency-cache.toml")),
            ("player-estimates", include_str!("../../../scenarios/player-estimates.toml")),
        ],
    ),
    (
        "WebRTC and Media over QUIC",
        &[
            ("webrtc", include_str!("../../../scenarios/webrtc.toml")),
            ("moq-webrtc", include_str!("../../../scenarios/moq-webrtc.toml")),
            ("moq-why", include_str!("../../../scenarios/moq-why.toml")),
            ("moq-adapt", include_str!("../../../scenarios/moq-adapt.toml")),
            ("webrtc-axes", include_str!("../../../scenarios/webrtc-axes.toml")),
            ("webrtc-fanout", include_str!("../../../scenarios/webrtc-fanout.toml")),
            ("webrtc-simulcast", include_str!("../../../scenarios/webrtc-simulcast.toml")),
        ],
    ),
    (
        "Rate control of RTP",
        &[
            ("rtp", include_str!("../../../scenarios/rtp.toml")),
            ("tfrcp", include_str!("../../../scenarios/tfrcp.toml")),
            ("tfrc-friendly", include_str!("../../../scenarios/tfrc-friendly.toml")),
            ("media-fairness", include_str!("../../../scenarios/media-fairness.toml")),
            ("media-crowd", include_str!("../../../scenarios/media-crowd.toml")),
            ("rmcat", include_str!("../../../scenarios/rmcat.toml")),
            ("rmcat-wireless", include_str!("../../../scenarios/rmcat-wireless.toml")),
            ("rmcat-cellular", include_str!("../../../scenarios/rmcat-cellular.toml")),
            ("fairness", include_str!("../../../scenarios/fairness.toml")),
        ],
    ),
    ("Layers of a host", &[("layered-qos", include_str!("../../../scenarios/layered-qos.toml"))]),
    (
        "Uncompressed 8K",
        &[
            ("uncompressed-8k", include_str!("../../../scenarios/uncompressed-8k.toml")),
            ("8k-multicast", include_str!("../../../scenarios/8k-multicast.toml")),
            ("8k-standby", include_str!("../../../scenarios/8k-standby.toml")),
            ("8k-faults", include_str!("../../../scenarios/8k-faults.toml")),
        ],
    ),
];

/// Name and text of each scenario that comes with suiro.
fn texts() -> impl Iterator<Item = &'static (&'static str, &'static str)> + Clone {
    SUBJECTS.iter().flat_map(|(_, scenarios)| *scenarios)
}

/// A scenario whose text is TOML; what it says is checked by [`Scenario::plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// One line on what it shows; empty if the text has none.
    pub title: String,
    file: String,
    text: String,
}

/// The scenarios that come with suiro.
pub fn built_in() -> Vec<Scenario> {
    built_in_by_subject().flat_map(|(_, scenarios)| scenarios).collect()
}

/// The scenarios that come with suiro, under the name of each subject; the best one to begin with is the first.
pub fn built_in_by_subject() -> impl Iterator<Item = (&'static str, Vec<Scenario>)> {
    let parse = |(name, text): &(&str, &str)| {
        parse(text, &format!("{name}.toml")).expect("built-in scenarios are TOML: tested")
    };
    SUBJECTS
        .iter()
        .map(move |(subject, scenarios)| (*subject, scenarios.iter().map(parse).collect()))
}

impl Scenario {
    /// Where it comes from, as errors call it: a path, or `NAME.toml` of a built-in one.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Its text, as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Loads a built-in scenario by name, or a file: what holds a `/` or ends in `.toml`.
    ///
    /// # Errors
    /// If there is no such scenario or file, or its text is not TOML.
    pub fn load(name_or_path: &str) -> Result<Self, ScenarioError> {
        let is_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
        if !is_path {
            let built_in = texts().find(|(name, _)| *name == name_or_path);
            let Some((name, text)) = built_in else { return Err(no_such(name_or_path).into()) };
            return parse(text, &format!("{name}.toml"));
        }
        let text = read_text(Path::new(name_or_path)).map_err(|error| {
            let (reason, hint) = match error.kind() {
                ErrorKind::InvalidData => {
                    ("the file is not UTF-8 text".to_owned(), Some("save it as UTF-8"))
                }
                ErrorKind::NotFound => (
                    format!("cannot read the scenario: {error}"),
                    Some("suiro list prints the built-in scenarios"),
                ),
                _ => (format!("cannot read the scenario: {error}"), None),
            };
            let refusal = Refusal::<Place>::new(name_or_path, reason);
            match hint {
                Some(hint) => refusal.hint(hint),
                None => refusal,
            }
        })?;
        parse(&text, name_or_path)
    }

    /// Expands the scenario, with these changes, into trials, and checks every cell.
    ///
    /// Files that it names are looked for on disk, relative ones next to the scenario's file.
    ///
    /// # Errors
    /// Everything that is wrong with the scenario or the overrides, up to a bound.
    pub fn plan(&self, overrides: &Overrides) -> Result<Plan, ScenarioError> {
        let is_built_in =
            texts().any(|(name, text)| *text == self.text && self.file == format!("{name}.toml"));
        match Path::new(&self.file).parent() {
            Some(folder) if !is_built_in => self.plan_with(overrides, &Disk::new(folder)),
            _ => self.plan_with(overrides, &NoFiles),
        }
    }

    /// [`Scenario::plan`] with its files from elsewhere. Pure if `files` is.
    ///
    /// # Errors
    /// As [`Scenario::plan`].
    pub fn plan_with(
        &self,
        overrides: &Overrides,
        files: &dyn Files,
    ) -> Result<Plan, ScenarioError> {
        let mut source = Source::new(&self.file, &self.text);
        let mut refusals = overrides.apply(&mut source);
        match expand(&source, overrides, files) {
            Ok(plan) if refusals.is_empty() => Ok(plan),
            Ok(_) => Err(ScenarioError { refusals, more: 0 }),
            Err(error) => {
                refusals.extend(error.refusals);
                Err(ScenarioError { refusals, more: error.more })
            }
        }
    }
}

/// Reads a text as a scenario; `name` is what errors call it. Never panics, whatever the text.
///
/// # Errors
/// If the text is not TOML: every fault of syntax.
pub fn parse(text: &str, name: &str) -> Result<Scenario, ScenarioError> {
    let source = Source::new(name, text);
    let root = document::parse(text).map_err(|refusals| source.error(refusals))?;
    let word = |key| entry(&root, key).and_then(|node| node.get_ref().as_str()).map(str::to_owned);
    let stem = || Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Scenario {
        name: word("name").unwrap_or_else(stem),
        title: word("title").unwrap_or_default(),
        file: name.to_owned(),
        text: text.to_owned(),
    })
}

fn no_such(name: &str) -> Refusal<Place> {
    let names = || texts().map(|(name, _)| *name);
    let refusal = Refusal::new(name, "no built-in scenario has this name");
    refusal.instead(name, names()).or_hint(format!("for a file of that name, give ./{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_scenarios_are_the_folder() {
        let folder = Path::new("../../scenarios");
        let mut on_disk: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".toml"))
            .collect();
        on_disk.sort();
        let mut embedded: Vec<String> = texts().map(|(name, _)| format!("{name}.toml")).collect();
        embedded.sort();
        assert_eq!(on_disk, embedded);
    }
}

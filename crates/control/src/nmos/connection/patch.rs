//! What a request to stage parameters says: read strictly, before anything changes. Pure.

use std::str::FromStr;

use serde_json::{Map, Value, json};
use suiro_uncompressed::sdp::Description;
use suiro_units::Duration;

use super::Side;
use super::params::{self, Changes, Own};
use crate::nmos::{Id, Tai, found};

/// The type of transport files.
pub const SDP: &str = "application/sdp";

/// A request to change what is staged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// The other end: `receiver_id` of a sender, `sender_id` of a receiver.
    pub peer: Option<Option<Id>>,
    /// `master_enable`.
    pub enabled: Option<bool>,
    /// The activation that is asked for.
    pub activation: Option<Asked>,
    /// A transport file, or that there is none.
    pub file: Option<Option<String>>,
    /// What the transport file describes.
    pub description: Option<Description>,
    /// Changes of each leg; empty: none.
    pub legs: Vec<Changes>,
}

/// An activation that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// `mode` is null: a scheduled activation is cancelled.
    Cancel,
    /// At once.
    Immediate,
    /// At this time.
    At(Tai),
    /// So much later.
    After(Duration),
}

impl Asked {
    /// The `mode`; `None` for a cancellation.
    pub const fn mode(self) -> Option<&'static str> {
        match self {
            Self::Cancel => None,
            Self::Immediate => Some("activate_immediate"),
            Self::At(_) => Some("activate_scheduled_absolute"),
            Self::After(_) => Some("activate_scheduled_relative"),
        }
    }

    /// The `requested_time`.
    pub fn requested(self) -> Option<Tai> {
        match self {
            Self::Cancel | Self::Immediate => None,
            Self::At(time) => Some(time),
            Self::After(span) => Some(Tai::from_nanos(span.as_nanos())),
        }
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It does not match the schema or the constraints: status 400.
    Request(String),
    /// The transport file cannot be used: status 500, as IS-05 has it.
    File(String),
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self::Request(reason)
    }
}

impl Patch {
    /// Reads a request for a sender or receiver with so many legs as `own` has interfaces.
    ///
    /// # Errors
    /// [`Refused`], with the place, what was expected and what was found.
    pub fn read(side: Side, body: &Value, own: &Own) -> Result<Self, Refused> {
        let Value::Object(pairs) = body else {
            return Err(format!("expected an object, found {}", found(body)).into());
        };
        let mut patch = Self::default();
        for (key, value) in pairs {
            match (side, key.as_str()) {
                (Side::Sender, "receiver_id") | (Side::Receiver, "sender_id") => {
                    patch.peer = Some(peer(key, value)?);
                }
                (_, "master_enable") => patch.enabled = Some(flag(key, value)?),
                (_, "activation") => patch.activation = Some(activation(value)?),
                (Side::Receiver, "transport_file") => patch.file = Some(file(value)?),
                (_, "transport_params") => patch.legs = legs(side, value, own)?,
                _ => {
                    let (peer, also) = match side {
                        Side::Sender => ("receiver_id", ""),
                        Side::Receiver => ("sender_id", ", transport_file"),
                    };
                    let known =
                        format!("{peer}, master_enable, activation{also}, transport_params");
                    let key = found(&json!(key));
                    return Err(format!("expected only {known}, found {key}").into());
                }
            }
        }
        patch.describe(own)
    }

    /// Puts what the transport file says below what the request says itself (IS-05 v1.1, Staged Requests Precedence).
    fn describe(mut self, own: &Own) -> Result<Self, Refused> {
        let Some(Some(text)) = &self.file else { return Ok(self) };
        let described = Description::from_str(text)
            .map_err(|error| Refused::File(format!("transport_file.data: {error}")))?;
        // Legs that the description does not have carry nothing (IS-05 v1.1, Receivers: fewer legs).
        let mut legs = vec![Changes::unused(); own.interfaces.len()];
        for (leg, path) in
            legs.iter_mut().zip(std::iter::once(&described.path).chain(&described.twin))
        {
            *leg = Changes::described(path.destination, path.source, path.port);
        }
        for (leg, asked) in legs.iter_mut().zip(&self.legs) {
            *leg = leg.then(asked);
        }
        self.legs = legs;
        self.description = Some(described);
        Ok(self)
    }
}

fn peer(key: &str, value: &Value) -> Result<Option<Id>, String> {
    let id = match value {
        Value::Null => return Ok(None),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    id.map(Some).ok_or_else(|| {
        format!("{key}: expected a UUID in lower case or null, found {}", found(value))
    })
}

fn flag(key: &str, value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("{key}: expected true or false, found {}", found(value)))
}

fn object<'a>(
    at: &str,
    value: &'a Value,
    known: [&str; 2],
) -> Result<&'a Map<String, Value>, String> {
    let Value::Object(pairs) = value else {
        return Err(format!("{at}: expected an object, found {}", found(value)));
    };
    match pairs.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let key = found(&json!(key));
            Err(format!("{at}: expected only {} and {}, found {key}", known[0], known[1]))
        }
        None => Ok(pairs),
    }
}

fn activation(value: &Value) -> Result<Asked, String> {
    let pairs = object("activation", value, ["mode", "requested_time"])?;
    let time = match pairs.get("requested_time") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let time = value.as_str().ok_or("SECONDS:NANOSECONDS").and_then(Tai::from_str);
            let wrong = |expected| {
                format!("activation.requested_time: expected {expected}, found {}", found(value))
            };
            Some(time.map_err(wrong)?)
        }
    };
    let needs = |mode| format!("activation.requested_time: {mode} needs a time, found none");
    match pairs.get("mode") {
        Some(Value::Null) => Ok(Asked::Cancel),
        Some(Value::String(mode)) => match mode.as_str() {
            "activate_immediate" => Ok(Asked::Immediate),
            "activate_scheduled_absolute" => time.map(Asked::At).ok_or_else(|| needs(mode)),
            "activate_scheduled_relative" => {
                let span = time.map(|time| Asked::After(time.since(Tai::default())));
                span.ok_or_else(|| needs(mode))
            }
            _ => Err(wrong_mode(pairs.get("mode"))),
        },
        other => Err(wrong_mode(other)),
    }
}

fn wrong_mode(value: Option<&Value>) -> String {
    let expected =
        "activate_immediate, activate_scheduled_absolute, activate_scheduled_relative or null";
    let found = value.map_or_else(|| "none".to_owned(), found);
    format!("activation.mode: expected {expected}, found {found}")
}

fn file(value: &Value) -> Result<Option<String>, Refused> {
    let pairs = object("transport_file", value, ["data", "type"])?;
    match (pairs.get("data"), pairs.get("type")) {
        (Some(Value::Null), Some(Value::Null | Value::String(_))) => Ok(None),
        (Some(Value::String(data)), Some(Value::String(kind))) => {
            if !kind.eq_ignore_ascii_case(SDP) {
                let kind = found(&json!(kind));
                return Err(format!("transport_file.type: expected {SDP}, found {kind}").into());
            }
            Ok(Some(data.clone()))
        }
        _ => Err(format!(
            "transport_file: expected data and type, both texts or both null, found {}",
            found(value)
        )
        .into()),
    }
}

fn legs(side: Side, value: &Value, own: &Own) -> Result<Vec<Changes>, String> {
    let count = own.interfaces.len();
    let Value::Array(legs) = value else {
        return Err(format!("transport_params: expected an array, found {}", found(value)));
    };
    if legs.len() != count {
        let found = legs.len();
        return Err(format!(
            "transport_params: expected {count} entries, one for each leg, found {found}"
        ));
    }
    let leg = |(at, leg)| {
        let at = format!("transport_params[{at}]");
        let changes = Changes::read(side, leg, &at, own)?;
        params::check_source(side, &changes, &at, own)?;
        Ok(changes)
    };
    legs.iter().enumerate().map(leg).collect()
}

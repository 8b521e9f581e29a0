//! WebRTC statistics of a browser: dumps of `chrome://webrtc-internals`, and logs of `getStats()` (W3C, Identifiers for
//! WebRTC's Statistics API).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::SourceError;
use crate::times::{self, from_ms};

/// Most values of one file.
const VALUES_MAX: usize = 50_000_000;

/// Statistics of one object over time, such as of an incoming RTP stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Object {
    /// The peer connection that it is of.
    pub connection: String,
    pub id: String,
    /// Its type, such as `inbound-rtp`.
    pub kind: String,
    /// Its members over time.
    pub members: BTreeMap<String, Vec<(i64, Member)>>,
}

/// The value of a member.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Member {
    Number(f64),
    Text(String),
}

/// A change of a connection's state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    pub connection: String,
    pub t_ns: i64,
    pub what: String,
    pub state: String,
}

/// A file of statistics.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    pub name: String,
    pub objects: Vec<Object>,
    pub changes: Vec<Change>,
    /// Lines that are not statistics.
    pub others: usize,
}

impl Statistics {
    /// The first time in it.
    pub fn began(&self) -> Option<i64> {
        let points = self.objects.iter().flat_map(|it| it.members.values());
        points.filter_map(|points| Some(points.first()?.0)).min()
    }
}

impl Object {
    /// A member over time, as numbers.
    pub fn numbers(&self, member: &str) -> Vec<(i64, f64)> {
        let numbers = self.members.get(member).into_iter().flatten();
        let number = |(t_ns, value): &(i64, Member)| match value {
            Member::Number(number) => Some((*t_ns, *number)),
            Member::Text(_) => None,
        };
        numbers.filter_map(number).collect()
    }

    /// A member that does not change.
    pub fn text(&self, member: &str) -> Option<String> {
        Some(match &self.members.get(member)?.last()?.1 {
            Member::Number(number) => number.to_string(),
            Member::Text(text) => text.clone(),
        })
    }

    /// How much a counter grew between two times; none if it is not there.
    pub fn grew(&self, member: &str, from_ns: i64, to_ns: i64) -> Option<f64> {
        let numbers = self.numbers(member);
        let before = numbers.iter().rev().find(|(t, _)| *t <= from_ns).or(numbers.first())?;
        let after = numbers.iter().rev().find(|(t, _)| *t <= to_ns).or(numbers.first())?;
        Some(after.1 - before.1)
    }

    pub fn ssrc(&self) -> Option<u32> {
        self.text("ssrc")?.parse().ok()
    }

    pub fn is_video(&self) -> bool {
        let kind = self.text("kind").or_else(|| self.text("mediaType"));
        kind.map_or_else(|| self.members.contains_key("framesDecoded"), |kind| kind == "video")
    }
}

/// A dump of `chrome://webrtc-internals`.
pub(crate) fn internals(name: &str, document: &Value) -> Result<Statistics, SourceError> {
    let broken = |what: String| SourceError::broken(name, what);
    let connections = document["PeerConnections"]
        .as_object()
        .ok_or_else(|| broken("key `PeerConnections` is not an object".into()))?;
    let mut statistics = Statistics { name: name.to_owned(), ..Statistics::default() };
    let mut values = 0;
    for (connection, content) in connections {
        let mut objects: BTreeMap<&str, Object> = BTreeMap::new();
        for (key, series) in content["stats"].as_object().into_iter().flatten() {
            // Ids may have hyphens; members of the standard have none. Those in brackets are computed by the page.
            let Some((id, member)) = key.rsplit_once('-').filter(|(_, it)| !it.starts_with('['))
            else {
                continue;
            };
            let Some(points) = points(series, &mut values) else {
                return Err(broken(format!("`{key}` has values that are not a list")));
            };
            let object = objects.entry(id).or_insert_with(|| Object {
                connection: connection.clone(),
                id: id.to_owned(),
                kind: series["statsType"].as_str().unwrap_or_default().to_owned(),
                members: BTreeMap::new(),
            });
            object.members.insert(member.to_owned(), points);
        }
        for object in objects.values_mut() {
            by_own_times(object);
        }
        statistics.objects.extend(objects.into_values());
        for update in content["updateLog"].as_array().into_iter().flatten() {
            let what = update["type"].as_str().unwrap_or_default();
            let state = update["value"].as_str().unwrap_or_default().trim_matches('"');
            if let (true, Some(t_ns)) = (what.ends_with("statechange"), time(&update["time"])) {
                let (what, state) = (what.to_owned(), state.to_owned());
                statistics.changes.push(Change {
                    connection: connection.clone(),
                    t_ns,
                    what,
                    state,
                });
            }
        }
    }
    Ok(statistics)
}

/// The values of a series, evenly between its first and last time; none if they are no list.
fn points(series: &Value, values: &mut usize) -> Option<Vec<(i64, Member)>> {
    let list = match &series["values"] {
        Value::String(text) => serde_json::from_str::<Vec<Value>>(text).ok()?,
        Value::Array(list) => list.clone(),
        _ => return None,
    };
    *values = values.saturating_add(list.len());
    if *values > VALUES_MAX {
        return None;
    }
    let (from, to) = (time(&series["startTime"])?, time(&series["endTime"])?);
    let steps = list.len().saturating_sub(1).max(1) as i128;
    let at = |n: usize| {
        (i128::from(from) + (i128::from(to) - i128::from(from)) * n as i128 / steps) as i64
    };
    let known = list.iter().enumerate().filter_map(|(n, value)| Some((at(n), member(value)?)));
    Some(known.collect())
}

/// Newer dumps have the time of each value, as a member of its own.
fn by_own_times(object: &mut Object) {
    let times: Vec<i64> =
        object.numbers("timestamp").iter().filter_map(|(_, ms)| from_ms(*ms)).collect();
    if !times.is_sorted() {
        return;
    }
    for points in object.members.values_mut().filter(|points| points.len() == times.len()) {
        points.iter_mut().zip(&times).for_each(|(point, time)| point.0 = *time);
    }
}

fn member(value: &Value) -> Option<Member> {
    match value {
        Value::Number(number) => number.as_f64().map(Member::Number),
        Value::Bool(flag) => Some(Member::Number(f64::from(u8::from(*flag)))),
        Value::String(text) => Some(Member::Text(text.clone())),
        _ => None,
    }
}

/// A time as a date in text, or as milliseconds since 1970.
fn time(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => times::date(text).or_else(|| from_ms(text.parse().ok()?)),
        other => from_ms(other.as_f64()?),
    }
}

/// Whether a document is a report of `getStats()`, or a list of reports.
pub(crate) fn is_report(document: &Value) -> bool {
    let is_object = |value: &Value| {
        value["timestamp"].is_number() && value["type"].is_string() && value["id"].is_string()
    };
    match document {
        Value::Array(list) => list.first().is_some_and(|it| is_object(it) || is_report(it)),
        Value::Object(map) => {
            is_object(document)
                || map
                    .values()
                    .next()
                    .is_some_and(|it| is_object(it) || it.is_array() && is_report(it))
        }
        _ => false,
    }
}

/// Reports of `getStats()`: in one document, or one in each line.
pub(crate) fn reports<'v>(
    name: &str,
    documents: impl Iterator<Item = &'v Value>,
) -> Result<Statistics, SourceError> {
    let mut statistics = Statistics { name: name.to_owned(), ..Statistics::default() };
    let mut objects: BTreeMap<String, Object> = BTreeMap::new();
    let mut values = 0;
    for document in documents {
        gather(document, &mut objects, &mut statistics.others, &mut values);
        if values > VALUES_MAX {
            return Err(SourceError::broken(name, format!("more than {VALUES_MAX} values")));
        }
    }
    for object in objects.values_mut() {
        object.members.values_mut().for_each(|points| points.sort_by_key(|(t_ns, _)| *t_ns));
    }
    statistics.objects = objects.into_values().collect();
    Ok(statistics)
}

fn gather(
    value: &Value,
    objects: &mut BTreeMap<String, Object>,
    others: &mut usize,
    values: &mut usize,
) {
    let own = (
        value["id"].as_str(),
        value["type"].as_str(),
        value["timestamp"].as_f64().and_then(from_ms),
    );
    match (own, value) {
        ((Some(id), Some(kind), Some(t_ns)), Value::Object(members)) => {
            let object = objects.entry(id.to_owned()).or_insert_with(|| Object {
                connection: String::new(),
                id: id.to_owned(),
                kind: kind.to_owned(),
                members: BTreeMap::new(),
            });
            for (key, value) in members.iter().filter(|(key, _)| *key != "id" && *key != "type") {
                if let Some(member) = member(value) {
                    *values += 1;
                    object.members.entry(key.clone()).or_default().push((t_ns, member));
                }
            }
        }
        (_, Value::Array(list)) => list.iter().for_each(|it| gather(it, objects, others, values)),
        (_, Value::Object(map)) => map.values().for_each(|it| gather(it, objects, others, values)),
        _ => *others += 1,
    }
}

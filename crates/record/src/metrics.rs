//! The metrics of a trial, by name.

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// The metrics of one trial: name to number; null where it could not be measured. In the order of their names.
///
/// The trials of a run have the same metrics, so they can share the names ([`Metrics::share`]): in a map of its own, each of
/// 100,000 trials needs some 6 kB more.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(from = "BTreeMap<String, Option<f64>>")]
#[schemars(with = "BTreeMap<String, Option<f64>>")]
pub struct Metrics {
    /// Rising, each once.
    names: Arc<Vec<String>>,
    /// One for each name.
    values: Vec<Option<f64>>,
}

impl Metrics {
    /// The value of this name; `None` if the trial does not have the metric.
    pub fn get(&self, name: &str) -> Option<&Option<f64>> {
        self.place(name).ok().map(|at| &self.values[at])
    }

    /// Whether the trial has the metric.
    pub fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_ok()
    }

    /// Sets the value of a name, and returns the one before.
    pub fn insert(&mut self, name: String, value: Option<f64>) -> Option<Option<f64>> {
        match self.place(&name) {
            Ok(at) => Some(std::mem::replace(&mut self.values[at], value)),
            Err(at) => {
                Arc::make_mut(&mut self.names).insert(at, name);
                self.values.insert(at, value);
                None
            }
        }
    }

    /// The names, rising.
    pub fn keys(&self) -> std::slice::Iter<'_, String> {
        self.names.iter()
    }

    /// The names with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Option<f64>)> {
        self.names.iter().zip(&self.values)
    }

    /// Takes the names of `other` instead of its own, if they are the same. True if so.
    pub fn share(&mut self, other: &Self) -> bool {
        let same = self.has_names_of(other);
        if same {
            self.names = Arc::clone(&other.names);
        }
        same
    }

    /// Whether both have the same names. Of those that share them, this is known at once.
    pub fn has_names_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.names, &other.names) || self.names == other.names
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.names.binary_search_by(|it| it.as_str().cmp(name))
    }
}

impl From<BTreeMap<String, Option<f64>>> for Metrics {
    fn from(map: BTreeMap<String, Option<f64>>) -> Self {
        let (names, values): (Vec<_>, Vec<_>) = map.into_iter().unzip();
        Self { names: Arc::new(names), values }
    }
}

impl FromIterator<(String, Option<f64>)> for Metrics {
    fn from_iter<I: IntoIterator<Item = (String, Option<f64>)>>(metrics: I) -> Self {
        metrics.into_iter().collect::<BTreeMap<_, _>>().into()
    }
}

impl<const N: usize> From<[(String, Option<f64>); N]> for Metrics {
    fn from(metrics: [(String, Option<f64>); N]) -> Self {
        metrics.into_iter().collect()
    }
}

impl Index<&str> for Metrics {
    type Output = Option<f64>;

    fn index(&self, name: &str) -> &Option<f64> {
        self.get(name).unwrap_or_else(|| panic!("there is no metric {name}"))
    }
}

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_a_map_whose_names_can_be_shared() {
        let text = r#"{"b":null,"a":0.5}"#;
        let mut one: Metrics = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&one).unwrap(), r#"{"a":0.5,"b":null}"#);
        let other = Metrics::from([("a".to_owned(), None), ("b".to_owned(), Some(2.0))]);
        assert!(one.share(&other) && Arc::ptr_eq(&one.names, &other.names));
        assert_eq!((one["a"], one.get("b"), one.get("c")), (Some(0.5), Some(&None), None));
        assert_eq!(one.insert("aa".to_owned(), Some(1.0)), None);
        assert_eq!(one.insert("b".to_owned(), Some(3.0)), Some(None));
        let all: Vec<_> = one.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(all, [("a", Some(0.5)), ("aa", Some(1.0)), ("b", Some(3.0))]);
        assert!(!one.share(&other), "a further metric");
        assert_eq!(other.keys().collect::<Vec<_>>(), ["a", "b"], "those of others are as before");
    }
}

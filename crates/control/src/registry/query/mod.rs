//! What a client asks the Query API for (IS-04 v1.3, Query Parameters): attributes, an expression in RQL, and a page. Pure.

mod rql;
mod steps;

use serde_json::{Map, Value};

use super::RESOURCES_MAX;
use crate::nmos::{Reply, Tai};

use self::rql::Expression;
pub(super) use self::steps::Steps;

/// Parameters of a query at most.
const PARAMETERS_MAX: usize = 64;

/// Which resources are asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Filter {
    /// Attributes and the values that they must have.
    equal: Vec<(String, String)>,
    rql: Option<Expression>,
}

/// Which page of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Paging {
    limit: Option<usize>,
    since: Option<Tai>,
    until: Option<Tai>,
    /// By the time of creation, not of the last change.
    by_creation: bool,
}

/// A parsed query.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Query {
    pub filter: Filter,
    pub paging: Paging,
    /// The parameters that are not of paging, as they came, for the links to other pages.
    kept: Vec<String>,
}

/// A page of resources.
pub(super) struct Page<'a> {
    /// The newest first.
    pub resources: Vec<&'a Value>,
    limit: usize,
    since: Tai,
    until: Tai,
}

impl Query {
    /// Reads a query string.
    ///
    /// # Errors
    /// The reply: 400 for what is wrong, 501 for what this registry cannot do.
    pub fn parse(text: &str) -> Result<Self, Reply> {
        let mut query = Self::default();
        let pairs: Vec<&str> = text.split('&').filter(|pair| !pair.is_empty()).collect();
        if pairs.len() > PARAMETERS_MAX {
            return Err(Reply::refusal(
                400,
                format!("expected {PARAMETERS_MAX} parameters at most"),
            ));
        }
        for pair in pairs {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, decoded) = (decode(key)?, decode(value)?);
            if let Some(name) = key.strip_prefix("paging.") {
                query.paging.set(name, &decoded)?;
                continue;
            }
            query.kept.push(pair.to_owned());
            match key.strip_prefix("query.") {
                // The expression decodes its own values: an escaped comma is no separator.
                Some("rql") => query.filter.rql = Some(Expression::parse(value)?),
                Some(name) => return Err(unknown("query", name)),
                None => query.filter.equal.push((key, decoded)),
            }
        }
        let Paging { since, until, .. } = query.paging;
        if since.zip(until).is_some_and(|(since, until)| since > until) {
            return Err(Reply::refusal(400, "paging.since: expected a time before paging.until"));
        }
        Ok(query)
    }

    /// The page of resources that it asks for; each has the times of its creation and of its last change.
    ///
    /// # Errors
    /// The reply: 400 if finding it takes too long.
    pub fn page<'a>(
        &self,
        all: impl Iterator<Item = (Tai, Tai, &'a Value)>,
    ) -> Result<Page<'a>, Reply> {
        let mut steps = Steps::of_query();
        let Paging { since, until, by_creation, .. } = self.paging;
        let limit = self.paging.limit.unwrap_or(RESOURCES_MAX).min(RESOURCES_MAX);
        let mut newest = Tai::default();
        let mut found: Vec<(Tai, &Value)> = all
            .map(|(created, updated, value)| (if by_creation { created } else { updated }, value))
            .inspect(|(at, _)| newest = newest.max(*at))
            .filter(|(at, value)| {
                let is_in =
                    since.is_none_or(|since| *at > since) && until.is_none_or(|until| *at <= until);
                is_in && self.filter.fits(value, &mut steps)
            })
            .collect();
        if steps.is_over() {
            return Err(Steps::refusal());
        }
        found.sort_by_key(|(at, _)| *at);
        let left = found.len().saturating_sub(limit);
        let mut until = until.unwrap_or_else(|| newest.max(since.unwrap_or_default()));
        // From a time on, the page has the resources that follow it; else it has the newest ones.
        let (since, kept) = match since {
            Some(since) => {
                if left > 0 {
                    until = found.get(limit.wrapping_sub(1)).map_or(since, |(at, _)| *at);
                }
                (since, &found[..found.len() - left])
            }
            None if limit == 0 => (until, &found[..0]),
            None => {
                let before = left.checked_sub(1).map_or(Tai::default(), |last| found[last].0);
                (before, &found[left..])
            }
        };
        let resources = kept.iter().rev().map(|(_, value)| *value).collect();
        Ok(Page { resources, limit, since, until })
    }
}

impl Page<'_> {
    /// The headers of the reply; `base` is the URL without parameters.
    pub fn headers(&self, query: &Query, base: &str) -> Vec<(&'static str, String)> {
        let Self { limit, since, until, .. } = self;
        let order = if query.paging.by_creation { "&paging.order=create" } else { "" };
        let kept: String = query.kept.iter().map(|pair| format!("{pair}&")).collect();
        let link = |rel: &str, more: String| {
            format!("<{base}?{kept}{more}paging.limit={limit}{order}>; rel=\"{rel}\"")
        };
        let links = [
            link("prev", format!("paging.until={since}&")),
            link("next", format!("paging.since={until}&")),
            link("first", "paging.since=0:0&".to_owned()),
            link("last", String::new()),
        ];
        vec![
            ("link", links.join(", ")),
            ("x-paging-limit", limit.to_string()),
            ("x-paging-since", since.to_string()),
            ("x-paging-until", until.to_string()),
        ]
    }
}

impl Paging {
    fn set(&mut self, name: &str, value: &str) -> Result<(), Reply> {
        let wrong = |expected: &str| {
            let shown: String = value.chars().take(40).collect();
            Reply::refusal(400, format!("paging.{name}: expected {expected}, found {shown:?}"))
        };
        match name {
            "limit" => {
                let plain = value.bytes().all(|c| c.is_ascii_digit()).then(|| value.parse().ok());
                self.limit = Some(plain.flatten().ok_or_else(|| wrong("a number"))?);
            }
            "since" => self.since = Some(value.parse().map_err(wrong)?),
            "until" => self.until = Some(value.parse().map_err(wrong)?),
            "order" => {
                self.by_creation = match value {
                    "create" => true,
                    "update" => false,
                    _ => return Err(wrong("create or update")),
                };
            }
            _ => return Err(unknown("paging", name)),
        }
        Ok(())
    }
}

impl Filter {
    /// From the parameters of a subscription.
    ///
    /// # Errors
    /// The reply, as of [`Query::parse`].
    pub fn of(params: &Map<String, Value>) -> Result<Self, Reply> {
        let mut filter = Self::default();
        if params.len() > PARAMETERS_MAX {
            return Err(Reply::refusal(400, format!("params: expected {PARAMETERS_MAX} at most")));
        }
        for (key, value) in params {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match key.split_once('.') {
                Some(("query", "rql")) => filter.rql = Some(Expression::parse(&text)?),
                Some((kind @ ("query" | "paging"), name)) => return Err(unknown(kind, name)),
                _ => filter.equal.push((key.clone(), text)),
            }
        }
        Ok(filter)
    }

    /// Whether a resource is one of those.
    pub fn fits(&self, value: &Value, steps: &mut Steps) -> bool {
        let equal = |(path, wanted): &(String, String)| {
            values(value, path, steps).iter().any(|found| is_text(found, wanted))
        };
        self.equal.iter().all(equal) && self.rql.as_ref().is_none_or(|rql| rql.holds(value, steps))
    }
}

/// The values of an attribute, with dots for those of objects. Those of lists are the values of all their entries. None if no
/// steps are left.
fn values<'a>(of: &'a Value, path: &str, steps: &mut Steps) -> Vec<&'a Value> {
    let mut found = vec![of];
    for key in path.split('.') {
        let all: Vec<&Value> = found.into_iter().flat_map(entries).collect();
        if !steps.take_values(all.len()) {
            return Vec::new();
        }
        found = all.into_iter().filter_map(|value| value.get(key)).collect();
    }
    let found: Vec<&Value> = found.into_iter().flat_map(entries).collect();
    if steps.take_values(found.len()) { found } else { Vec::new() }
}

fn entries(value: &Value) -> &[Value] {
    match value {
        Value::Array(list) => list,
        other => std::slice::from_ref(other),
    }
}

fn is_text(found: &Value, wanted: &str) -> bool {
    match found {
        Value::String(text) => text == wanted,
        Value::Bool(_) | Value::Number(_) => {
            let text = found.to_string();
            text == wanted
        }
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn unknown(kind: &str, name: &str) -> Reply {
    let shown: String = name.chars().take(40).collect();
    Reply::refusal(501, format!("{kind}.{shown}: this registry cannot do that"))
}

/// Text without its percent signs (RFC 3986 §2.1); a plus is a space, as forms write it.
fn decode(text: &str) -> Result<String, Reply> {
    let wrong = || Reply::refusal(400, "the query: expected two hexadecimal digits after each %");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|c| char::from(c).to_digit(16));
                let both = digit().zip(digit()).ok_or_else(wrong)?;
                (both.0 * 16 + both.1) as u8
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(text: &str) -> Query {
        Query::parse(text).unwrap()
    }

    /// Resources 1 to 20, changed at the second of their number.
    fn resources() -> Vec<Value> {
        (1..=20)
            .map(|n| json!({ "n": n, "label": if n % 5 < 3 { "foo" } else { "bar" } }))
            .collect()
    }

    /// The first and last resource of a page, and its bounds in seconds.
    fn page(text: &str) -> (Vec<u64>, u64, u64) {
        let all = resources();
        let second = |n: usize| Tai::from_nanos(n as u64 * 1_000_000_000);
        let query = query(text);
        let all = all.iter().enumerate().map(|(at, own)| (second(20 - at), second(at + 1), own));
        let page = query.page(all).unwrap_or_else(|reply| panic!("{}", reply.body));
        let numbers = page.resources.iter().map(|own| own["n"].as_u64().unwrap()).collect();
        (numbers, page.since.as_nanos() / 1_000_000_000, page.until.as_nanos() / 1_000_000_000)
    }

    fn down(from: u64, to: u64) -> Vec<u64> {
        (to..=from).rev().collect()
    }

    #[test]
    fn pages_are_those_of_the_specifications_examples() {
        assert_eq!(page("paging.limit=10"), (down(20, 11), 10, 20));
        assert_eq!(page("paging.limit=5"), (down(20, 16), 15, 20));
        assert_eq!(page("paging.since=4:0&paging.limit=10"), (down(14, 5), 4, 14));
        assert_eq!(page("paging.until=16:0&paging.limit=10"), (down(16, 7), 6, 16));
        assert_eq!(
            page("paging.since=4:0&paging.until=16:0&paging.limit=10"),
            (down(14, 5), 4, 14)
        );
        assert_eq!(page(""), (down(20, 1), 0, 20));
        assert_eq!(page("paging.since=20:0"), (vec![], 20, 20));
        assert_eq!(page("paging.since=30:0"), (vec![], 30, 30));
        assert_eq!(page("paging.since=12:0&paging.limit=0"), (vec![], 12, 12));
        assert_eq!(page("paging.until=12:0&paging.limit=0"), (vec![], 12, 12));
        assert_eq!(page("paging.order=create&paging.limit=2"), (vec![1, 2], 18, 20));
    }

    #[test]
    fn a_filter_and_a_page_go_together() {
        assert_eq!(page("label=bar&paging.limit=3"), (vec![19, 18, 14], 13, 20));
        assert_eq!(
            page("label=bar&paging.since=9:0&paging.until=13:0&paging.limit=3"),
            (vec![13], 9, 13)
        );
        assert_eq!(page("query.rql=and(eq(label,foo),gt(n,15))"), (vec![20, 17, 16], 0, 20));
    }

    #[test]
    fn links_lead_to_the_other_pages() {
        let query = query("label=foo%26bar&paging.limit=3&paging.order=create");
        let Ok(page) = query.page(std::iter::empty()) else { panic!("an empty page") };
        let headers = page.headers(&query, "http://h/nodes");
        let (_, link) = &headers[0];
        let last =
            "<http://h/nodes?label=foo%26bar&paging.limit=3&paging.order=create>; rel=\"last\"";
        assert!(link.ends_with(last), "{link}");
        assert!(
            link.contains("paging.since=0:0&paging.limit=3&paging.order=create>; rel=\"first\"")
        );
        assert_eq!(headers[1], ("x-paging-limit", "3".to_owned()));
    }

    #[test]
    fn what_cannot_be_asked_is_refused() {
        let status = |text: &str| Query::parse(text).unwrap_err().status;
        assert_eq!(status("paging.since=2:0&paging.until=1:0"), 400);
        assert_eq!(status("paging.limit=-1"), 400);
        assert_eq!(status("paging.limit=99999999999999999999999"), 400);
        assert_eq!(status("paging.order=size"), 400);
        assert_eq!(status("paging.colour=red"), 501);
        assert_eq!(status("query.downgrade=v1.0"), 501);
        assert_eq!(status("label=%4"), 400);
        assert_eq!(status("label=%ff"), 400);
        assert_eq!(status(&"a=b&".repeat(PARAMETERS_MAX + 1)), 400);
    }
}

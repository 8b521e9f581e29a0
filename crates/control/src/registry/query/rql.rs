//! Resource Query Language, the part that IS-04 v1.3 describes: calls such as `and(eq(label,x),gt(a.b,3))`. Pure.

use std::cmp::Ordering;

use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;

use super::steps::Steps;
use super::{decode, values};
use crate::nmos::Reply;

/// How deep calls may be nested.
const DEPTH_MAX: usize = 16;
/// Longest expression, in bytes.
const BYTES_MAX: usize = 4096;
/// Patterns of an expression at most.
const PATTERNS_MAX: usize = 8;
/// Sizes of the program of a pattern, each twice the one before, and longest text that it is compared with, in bytes: the time
/// is their product.
const PATTERN_BYTES: [usize; 9] = [64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10];
const TEXT_BYTES_MAX: usize = 4096;

/// What a resource must be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    /// All of them.
    And(Vec<Expression>),
    /// One of them.
    Or(Vec<Expression>),
    /// Not this one.
    Not(Box<Expression>),
    /// An attribute compared with a value.
    Compare(Relation, String, Literal),
    /// An attribute has one of these values.
    In(String, Vec<Literal>),
    /// None of the values of an attribute is one of these.
    Out(String, Vec<Literal>),
    /// An attribute has a text in which a pattern occurs.
    Matches(String, Pattern),
}

/// A regular expression.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    regex: Regex,
    /// The smallest of [`PATTERN_BYTES`] that its program fits into.
    bytes: usize,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Pattern {
    /// From its text; the flag `i` is written into it, as `(?i)`.
    fn of(text: &str, flags: &str) -> Result<Self, Reply> {
        let text = match flags {
            "" => text.to_owned(),
            "i" => format!("(?i){text}"),
            _ => return Err(wrong("no flag of a pattern but i")),
        };
        let made = |bytes: usize| RegexBuilder::new(&text).size_limit(bytes).build();
        let [smaller @ .., largest] = PATTERN_BYTES;
        let mut smaller = smaller.into_iter();
        if let Some(own) = smaller.find_map(|bytes| Some(Self { regex: made(bytes).ok()?, bytes }))
        {
            return Ok(own);
        }
        let made = made(largest).map(|regex| Self { regex, bytes: largest });
        made.map_err(|error| wrong(&format!("a regular expression: {error}")))
    }

    fn is_in(&self, found: &Value, steps: &mut Steps) -> bool {
        let text = found.as_str().filter(|text| text.len() <= TEXT_BYTES_MAX);
        text.is_some_and(|text| {
            steps.take(self.bytes as u64 * text.len() as u64) && self.regex.is_match(text)
        })
    }
}

/// How an attribute is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A value: its text, and what it is if that is a number, true, false or null.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Literal {
    text: String,
    value: Option<Value>,
}

fn wrong(expected: &str) -> Reply {
    Reply::refusal(400, format!("query.rql: expected {expected}"))
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// The reply: 400 if it is none, 501 for a call that this registry does not know.
    pub fn parse(text: &str) -> Result<Self, Reply> {
        if text.len() > BYTES_MAX {
            return Err(wrong(&format!("{BYTES_MAX} bytes at most")));
        }
        let mut parser = Parser { rest: text, patterns: 0 };
        let expression = parser.call(0)?;
        if parser.rest.is_empty() { Ok(expression) } else { Err(wrong("the end after the last )")) }
    }

    /// Whether it holds for a resource; of no meaning if the steps did not suffice.
    pub fn holds(&self, of: &Value, steps: &mut Steps) -> bool {
        if steps.is_over() {
            return false;
        }
        let mut one_of = |path: &str, wanted: &[Literal]| {
            let found = values(of, path, steps);
            steps.take_values(found.len() * wanted.len())
                && found.iter().any(|found| wanted.iter().any(|own| own.equals(found)))
        };
        match self {
            Self::And(all) => all.iter().all(|own| own.holds(of, steps)),
            Self::Or(all) => all.iter().any(|own| own.holds(of, steps)),
            Self::Not(own) => !own.holds(of, steps),
            Self::Compare(Relation::Ne, path, wanted) => {
                !one_of(path, std::slice::from_ref(wanted))
            }
            Self::Compare(relation, path, wanted) => {
                values(of, path, steps).iter().any(|found| wanted.is(*relation, found))
            }
            Self::In(path, wanted) => one_of(path, wanted),
            Self::Out(path, wanted) => !one_of(path, wanted),
            Self::Matches(path, pattern) => {
                values(of, path, steps).iter().any(|found| pattern.is_in(found, steps))
            }
        }
    }
}

impl Literal {
    /// From a value as it stands in an expression, perhaps with its type before it, as in `string:7`.
    fn of(text: &str) -> Result<Self, Reply> {
        let (kind, rest) = match text.split_once(':') {
            Some((kind @ ("string" | "number" | "boolean"), rest)) => (kind, rest),
            _ => ("auto", text),
        };
        let text = decode(rest)?;
        let value = match kind {
            "string" => None,
            _ => serde_json::from_str(&text)
                .ok()
                .filter(|value: &Value| value.is_number() || value.is_boolean() || value.is_null()),
        };
        Ok(Self { text, value })
    }

    fn equals(&self, found: &Value) -> bool {
        match found {
            Value::String(text) => *text == self.text,
            other => {
                self.value.as_ref().is_some_and(|own| compare(own, other) == Some(Ordering::Equal))
            }
        }
    }

    fn is(&self, relation: Relation, found: &Value) -> bool {
        let order = match found {
            Value::String(text) => Some(text.as_str().cmp(&self.text)),
            other => self.value.as_ref().and_then(|own| compare(other, own)),
        };
        order.is_some_and(|order| match relation {
            Relation::Eq => order.is_eq(),
            Relation::Ne => order.is_ne(),
            Relation::Lt => order.is_lt(),
            Relation::Le => order.is_le(),
            Relation::Gt => order.is_gt(),
            Relation::Ge => order.is_ge(),
        })
    }
}

fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one.as_f64().and_then(|one| one.partial_cmp(&other.as_f64()?))
        }
        _ => (one == other).then_some(Ordering::Equal),
    }
}

struct Parser<'a> {
    rest: &'a str,
    /// Patterns that were read.
    patterns: usize,
}

impl<'a> Parser<'a> {
    fn take(&mut self, token: char) -> bool {
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, token: char) -> Result<(), Reply> {
        if self.take(token) {
            Ok(())
        } else {
            Err(wrong(&format!("{token} before {:?}", self.shown())))
        }
    }

    fn shown(&self) -> String {
        self.rest.chars().take(20).collect()
    }

    /// The text up to the next separator.
    fn word(&mut self) -> &'a str {
        let end = self.rest.find(['(', ')', ',']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn call(&mut self, depth: usize) -> Result<Expression, Reply> {
        if depth > DEPTH_MAX {
            return Err(wrong(&format!("calls nested {DEPTH_MAX} deep at most")));
        }
        let name = self.word();
        self.expect('(')?;
        let relation = match name {
            "and" | "or" => {
                let mut all = vec![self.call(depth + 1)?];
                while self.take(',') {
                    all.push(self.call(depth + 1)?);
                }
                self.expect(')')?;
                return Ok(if name == "and" { Expression::And(all) } else { Expression::Or(all) });
            }
            "not" => {
                let own = self.call(depth + 1)?;
                self.expect(')')?;
                return Ok(Expression::Not(Box::new(own)));
            }
            "in" | "out" => {
                let path = self.path()?;
                self.expect(',')?;
                let wanted = self.list()?;
                self.expect(')')?;
                return Ok(if name == "in" {
                    Expression::In(path, wanted)
                } else {
                    Expression::Out(path, wanted)
                });
            }
            "matches" => return self.matches(),
            "eq" | "contains" => Relation::Eq,
            "ne" | "excludes" => Relation::Ne,
            "lt" => Relation::Lt,
            "le" => Relation::Le,
            "gt" => Relation::Gt,
            "ge" => Relation::Ge,
            _ => {
                let shown: String = name.chars().take(40).collect();
                let error = format!("query.rql: this registry does not know the call {shown:?}");
                return Err(Reply::refusal(501, error));
            }
        };
        let path = self.path()?;
        self.expect(',')?;
        let wanted = Literal::of(self.word())?;
        self.expect(')')?;
        Ok(Expression::Compare(relation, path, wanted))
    }

    /// `path,pattern)`, or with flags `path,pattern,i)`. Parentheses and commas of a pattern are encoded: `%28`.
    fn matches(&mut self) -> Result<Expression, Reply> {
        let path = self.path()?;
        self.expect(',')?;
        let text = decode(self.word())?;
        let flags = if self.take(',') { self.word() } else { "" };
        self.expect(')')?;
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return Err(wrong(&format!("{PATTERNS_MAX} patterns at most")));
        }
        Ok(Expression::Matches(path, Pattern::of(&text, flags)?))
    }

    /// An attribute: its name, or the names that lead to it in parentheses.
    fn path(&mut self) -> Result<String, Reply> {
        if !self.take('(') {
            let name = decode(self.word())?;
            return if name.is_empty() { Err(wrong("the name of an attribute")) } else { Ok(name) };
        }
        let mut names = vec![decode(self.word())?];
        while self.take(',') {
            names.push(decode(self.word())?);
        }
        self.expect(')')?;
        Ok(names.join("."))
    }

    fn list(&mut self) -> Result<Vec<Literal>, Reply> {
        self.expect('(')?;
        let mut all = vec![Literal::of(self.word())?];
        while self.take(',') {
            all.push(Literal::of(self.word())?);
        }
        self.expect(')')?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(text: &str) -> bool {
        let resource = json!({ "label": "a b", "n": 7, "on": true, "none": null, "tags": { "x": ["1", "two"] },
            "list": [{ "name": "eth0" }, { "name": "eth1" }] });
        let mut steps = Steps::of_query();
        let holds = Expression::parse(text).unwrap().holds(&resource, &mut steps);
        assert!(!steps.is_over(), "{text}");
        holds
    }

    #[test]
    fn attributes_are_compared_by_their_kind() {
        assert!(holds("eq(label,a%20b)") && !holds("eq(label,a)"));
        assert!(holds("eq(n,7)") && holds("eq(n,number:7)") && !holds("eq(n,string:7)"));
        assert!(holds("gt(n,6)") && holds("ge(n,7)") && !holds("lt(n,7)") && holds("le(n,7.0)"));
        assert!(holds("ne(n,8)") && holds("ne(absent,8)") && !holds("ne(n,7)"));
        assert!(holds("eq(on,true)") && holds("eq(none,null)") && !holds("gt(absent,1)"));
        assert!(holds("gt(label,a)") && !holds("gt(n,x)"));
    }

    #[test]
    fn entries_of_lists_are_values() {
        assert!(holds("eq(tags.x,two)") && holds("contains((tags,x),1)"));
        assert!(holds("eq(list.name,eth1)") && !holds("eq(list.name,eth2)"));
        assert!(holds("in(list.name,(eth9,eth0))") && !holds("out(list.name,(eth9,eth0))"));
    }

    #[test]
    fn patterns_occur_in_texts() {
        assert!(holds("matches(label,%5Ea.b$)") && !holds("matches(label,%5Eb)"));
        assert!(
            holds("matches(list.name,eth%5B1-3%5D)") && !holds("matches(list.name,eth%5B2-3%5D)")
        );
        assert!(holds("matches(label,A%20%28B|C%29,i)") && !holds("matches(label,A%20B)"));
        assert!(!holds("matches(n,7)"), "a number is no text");
        assert!(!holds("matches(absent,.)"));
    }

    #[test]
    fn calls_are_joined() {
        assert!(holds("and(eq(n,7),or(eq(n,8),not(eq(label,x))))"));
        assert!(!holds("and(eq(n,7),eq(n,8))"));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        let status = |text: &str| Expression::parse(text).unwrap_err().status;
        for text in [
            "", "eq", "eq(", "eq(a", "eq(a,b", "eq(a,b))", "eq(,b)", "in(a,b)", "and()", "eq(a,%x)",
        ] {
            assert!(matches!(status(text), 400 | 501), "{text}");
        }
        assert_eq!(status("sort(label)"), 501);
        assert_eq!(status("matches(label,%5B)"), 400, "[ is no pattern");
        assert_eq!(status("matches(label,a%7B1000%7D%7B1000%7D)"), 400, "too large");
        assert_eq!(status("matches(label,a,x)"), 400);
        let many = ["matches(label,a)"; 200].join(",");
        assert_eq!(status(&format!("or({many})")), 400);
        assert_eq!(status(&"not(".repeat(DEPTH_MAX + 2)), 400);
        assert_eq!(status(&"x".repeat(BYTES_MAX + 1)), 400);
    }
}

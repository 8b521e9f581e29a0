//! What the command line changes in a scenario: put into its text, so that what is run can be read
//! and run again.

use std::ops::Range;

use suiro_units::{Duration, Seed};
use toml::de::DeValue;

use crate::document::{self, Node, entries, entry, words};
use crate::error::Error as ScenarioError;
use crate::header::{BODY, CELLS, HEADER};
use crate::refusal::{Place, Refusal};
use crate::sections::{extent, inline, is_section, key_of, quote};
use crate::source::Source;

/// Changes to a scenario, as typed. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `PATH=VALUE`: a parameter's name, an axis's name (which fixes it, or with an array replaces its values), or the dotted path of
    /// any key. A value is TOML, or else a text without its quotes.
    pub set: Vec<String>,
    /// `AXIS=VALUE`: cells to keep. Values of one axis add up, axes intersect.
    pub only: Vec<String>,
    /// How long each trial measures.
    pub duration: Option<Duration>,
    /// Repetitions of each cell.
    pub repetitions: Option<u32>,
    /// The seed of the run.
    pub seed: Option<Seed>,
    /// Run the trials in virtual time.
    pub virtual_time: bool,
    /// Take the scenario's `[quick]` form. What else is given here wins over it.
    pub quick: bool,
}

/// One value to put into the text.
#[derive(Debug)]
struct Change {
    /// What asks for it, such as `--set tcp=reno`.
    by: String,
    path: Vec<String>,
    /// The value as TOML.
    value: String,
}

impl Overrides {
    /// Puts every change into the text; returns those that are impossible.
    pub(crate) fn apply(&self, source: &mut Source) -> Vec<Refusal<Place>> {
        let mut refusals = Vec::new();
        let mut try_to = |change: &dyn Fn(&mut Source) -> Result<(), ScenarioError>| {
            refusals.extend(change(source).err().into_iter().flat_map(|error| error.refusals));
        };
        if self.quick {
            try_to(&|source| quick(source)?.iter().try_for_each(|change| put(source, change)));
        }
        for change in self.options() {
            try_to(&|source| put(source, &change));
        }
        for set in &self.set {
            try_to(&|source| put(source, &understand(source, set)?));
        }
        refusals
    }

    /// The changes that have an option of their own.
    fn options(&self) -> Vec<Change> {
        let change = |option: &str, key: &str, typed: String, value: String| Change {
            by: format!("--{option} {typed}"),
            path: vec![key.to_owned()],
            value,
        };
        let duration = self
            .duration
            .map(|d| change("duration", "duration", d.to_string(), quote(&d.to_string())));
        let repetitions =
            self.repetitions.map(|n| change("repeat", "repetitions", n.to_string(), n.to_string()));
        let seed = self.seed.map(|seed| change("seed", "seed", seed.to_string(), seed.to_string()));
        let time = self.virtual_time.then(|| Change {
            by: "--virtual".to_owned(),
            path: vec!["time".to_owned()],
            value: quote("virtual"),
        });
        [duration, repetitions, seed, time].into_iter().flatten().collect()
    }
}

/// The tree of a text that has been parsed before.
fn tree(source: &Source) -> Node<'_> {
    document::parse(source.text()).expect("every edit leaves TOML: checked by put")
}

/// What `[quick]` changes.
fn quick(source: &Source) -> Result<Vec<Change>, ScenarioError> {
    let root = tree(source);
    let Some(quick) = entry(&root, "quick") else {
        let refusal = Refusal::<Place>::new("--quick", "the scenario has no short form");
        let hint =
            "add [quick] with duration, repetitions, parameters or matrix; or give --duration";
        return Err(refusal.hint(hint).into());
    };
    let change = |path: &[&str], value: &Node<'_>| Change {
        by: "--quick".into(),
        path: path.iter().map(|step| (*step).to_owned()).collect(),
        value: inline(source.text(), value),
    };
    let mut changes = Vec::new();
    for (key, _, value) in entries(quick) {
        match key {
            "parameters" | "matrix" => {
                changes.extend(entries(value).map(|(name, _, value)| change(&[key, name], value)));
            }
            _ => changes.push(change(&[key], value)),
        }
    }
    Ok(changes)
}

/// What a `--set` means for this scenario.
fn understand(source: &Source, set: &str) -> Result<Change, ScenarioError> {
    let by = format!("--set {set}");
    let Some((path, value)) = set.split_once('=') else {
        let refusal = Refusal::<Place>::new(by, "no `=` between a path and a value");
        let hint = "write --set tcp=reno, or --set \"links.access.delay=5 ms\"";
        return Err(refusal.hint(hint).into());
    };
    let root = tree(source);
    let (path, value) = (path.trim(), value.trim());
    let mut steps: Vec<&str> = path.split('.').collect();
    let is_in = |section: &str, name: &str| {
        entry(&root, section).and_then(|section| entry(section, name)).is_some()
    };
    if let [name] = steps[..] {
        let section = ["matrix", "parameters"].into_iter().find(|section| is_in(section, name));
        steps.splice(0..0, section);
    }
    if let ["matrix", name] = steps[..]
        && is_in("matrix", name)
    {
        let value = fixed(&root, source, name, value)
            .map_err(|(message, found, labels)| unknown(&by, message, &found, &labels))?;
        return Ok(Change { by, path: vec!["matrix".into(), name.into()], value });
    }
    let names: Vec<&str> = known(&root, steps.len() == 1).collect();
    if !names.contains(&steps[0]) {
        let message = format!("no parameter, axis or key is named `{}`", steps[0]);
        return Err(unknown(&by, message, steps[0], &names));
    }
    let existing = steps.iter().try_fold(&root, |node, step| entry(node, step));
    let value = literal(value, existing.map(|node| node.get_ref()));
    Ok(Change { by, path: steps.into_iter().map(str::to_owned).collect(), value })
}

/// The error of a name that is not one of those known.
fn unknown(by: &str, message: String, name: &str, known: &[impl AsRef<str>]) -> ScenarioError {
    let names = || known.iter().map(AsRef::as_ref);
    Refusal::<Place>::new(by, message).instead(name, names()).into()
}

/// Names that a path may begin with; `alone` if it is nothing but that name.
fn known<'a>(root: &'a Node<'_>, alone: bool) -> impl Iterator<Item = &'a str> {
    let names = |section| entry(root, section).into_iter().flat_map(entries).map(|(name, ..)| name);
    let short = names("parameters").chain(names("matrix")).filter(move |_| alone);
    short.chain(HEADER).chain(BODY).chain(CELLS)
}

/// An axis with the values of an array, or with one value only: each one of its own by label or, where all are plain, a
/// new one. The error: what is wrong, what was found, and the labels there are.
fn fixed(
    root: &Node<'_>,
    source: &Source,
    axis: &str,
    value: &str,
) -> Result<String, (String, String, Vec<String>)> {
    let points = entry(root, "matrix").and_then(|axes| entry(axes, axis));
    let points = points.and_then(|points| points.get_ref().as_array());
    let points: Vec<&Node<'_>> = points.into_iter().flat_map(|points| points.iter()).collect();
    let label = |node: &Node<'_>| match entry(node, "label") {
        Some(label) => words(label.get_ref()),
        None => words(node.get_ref()),
    };
    let one = |value: &str| {
        let bare = unquoted(value);
        if let Some(point) = points.iter().find(|point| label(point) == bare) {
            return Ok(inline(source.text(), point));
        }
        if points.iter().all(|point| !point.get_ref().is_table()) {
            return Ok(literal(value, points.first().map(|point| point.get_ref())));
        }
        let labels = points.iter().map(|point| label(point)).collect();
        Err((format!("the axis `{axis}` has no value `{bare}`"), bare, labels))
    };
    let values: Vec<String> = elements(value).into_iter().map(one).collect::<Result<_, _>>()?;
    Ok(format!("[{}]", values.join(", ")))
}

/// The texts of an array's elements; of anything else, the text itself.
fn elements(value: &str) -> Vec<&str> {
    let parsed = DeValue::parse(value).ok().filter(|_| !value.contains(['\n', '\r']));
    match parsed.as_ref().map(|parsed| parsed.get_ref()) {
        Some(DeValue::Array(array)) => array.iter().map(|item| &value[item.span()]).collect(),
        _ => vec![value],
    }
}

fn unquoted(value: &str) -> String {
    DeValue::parse(value).map_or_else(|_| value.to_owned(), |value| words(value.get_ref()))
}

/// A value as typed, as TOML: as it is if it is TOML of one line, and not a number or the like in
/// the place of a text; else quoted. The name of a parameter, `$name`, is no text: anything may replace it.
fn literal(value: &str, existing: Option<&DeValue<'_>>) -> String {
    let parsed = DeValue::parse(value).ok().filter(|_| !value.contains(['\n', '\r']));
    let wants_text = matches!(existing, Some(DeValue::String(text)) if !text.starts_with('$'));
    match parsed.map(|parsed| parsed.into_inner()) {
        Some(DeValue::String(_) | DeValue::Array(_) | DeValue::Table(_)) => value.to_owned(),
        Some(_) if !wants_text => value.to_owned(),
        _ => quote(value),
    }
}

/// Puts one change into the text.
fn put(source: &mut Source, change: &Change) -> Result<(), ScenarioError> {
    let refuse = |found: String, hint: String| {
        ScenarioError::from(Refusal::<Place>::new(change.by.clone(), found).hint(hint))
    };
    let without = without_sections(source, change);
    let edits = edits(without.text(), &change.path, &change.value);
    let edits = edits.map_err(|(found, hint)| refuse(found, hint))?;
    for (at, new) in edits {
        let mut tried = without.clone();
        tried.replace(at, &new, &change.by);
        // A line may be added to another table than the one that was meant: then it is not at this path.
        let is_there = |root: &Node<'_>| follow(root, &change.path).is_some();
        if document::parse(tried.text()).is_ok_and(|root| is_there(&root)) {
            *source = tried;
            return Ok(());
        }
    }
    let found = format!("`{}` cannot be set in this scenario", change.path.join("."));
    Err(refuse(found, "add the key to the scenario's file, and set its value here".into()))
}

/// The text without what is to be replaced, if that is an array of sections, such as `[[matrix.scene]]`: its value
/// becomes a line.
fn without_sections(source: &Source, change: &Change) -> Source {
    let root = tree(source);
    let whole = follow(&root, &change.path)
        .filter(|node| node.get_ref().is_array() && is_section(source.text(), node));
    let sections = whole.map(|node| extent(source.text(), &root, node)).unwrap_or_default();
    let mut without = source.clone();
    // From the last, so that the places of the others stay what they are.
    for section in sections.into_iter().rev() {
        without.replace(section, "", &change.by);
    }
    without
}

/// The value at a path.
fn follow<'a, 't>(root: &'a Node<'t>, path: &[String]) -> Option<&'a Node<'t>> {
    path.iter().try_fold(root, |node, step| match node.get_ref() {
        DeValue::Array(array) => step.parse::<usize>().ok().and_then(|at| array.get(at)),
        _ => entry(node, step),
    })
}

/// Bytes of a text to replace, and what by.
type TextEdit = (Range<usize>, String);

/// Edits that give `path` that value, where they leave TOML; the best first. The error: what was found, and a hint.
fn edits(text: &str, path: &[String], value: &str) -> Result<Vec<TextEdit>, (String, String)> {
    let root = document::parse(text)
        .map_err(|_| ("the scenario is not TOML".to_owned(), "run suiro check".to_owned()))?;
    let mut node = &root;
    // The deepest table on the way that a line can be added to, and how deep it is.
    let mut section = (&root, 0);
    for (depth, step) in path.iter().enumerate() {
        let next = match node.get_ref() {
            DeValue::Array(array) => step.parse::<usize>().ok().and_then(|at| array.get(at)),
            _ => entry(node, step),
        };
        let Some(next) = next else {
            if !node.get_ref().is_table() {
                let have = path[..depth].join(".");
                let found = format!("`{have}` has no `{step}`: it is not a table");
                return Err((found, format!("set `{have}` itself")));
            }
            return Ok(additions(text, section.0, &path[..section.1], &path[section.1..], value));
        };
        node = next;
        if node.get_ref().is_table() && text[node.span()].starts_with(['[', '{']) {
            section = (node, depth + 1);
        }
    }
    let in_place = match node.get_ref() {
        DeValue::Table(_) => text[node.span()].starts_with('{'),
        _ => !is_section(text, node),
    };
    if in_place {
        Ok(vec![(node.span(), value.to_owned())])
    } else {
        let path = path.join(".");
        let hint = format!("set its keys one by one, as in --set {path}.KEY=VALUE");
        Err((format!("`{path}` is a table"), hint))
    }
}

/// The texts that would add `rest = value` to a section, which is at `path`.
fn additions(
    text: &str,
    section: &Node<'_>,
    path: &[String],
    rest: &[String],
    value: &str,
) -> Vec<TextEdit> {
    let line = format!("{} = {value}", dotted(rest));
    let mut edits = Vec::new();
    if path.is_empty() {
        let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        edits.push((start..start, line + "\n"));
    } else if text[section.span()].starts_with('{') {
        let at = section.span().start + 1;
        let empty = section.get_ref().as_table().is_some_and(|table| table.is_empty());
        edits.push((at..at, format!(" {line}{}", if empty { " " } else { "," })));
    } else {
        let end = text[section.span().end..].find('\n').map(|at| section.span().end + at + 1);
        edits.push(match end {
            Some(end) => (end..end, line + "\n"),
            None => (text.len()..text.len(), format!("\n{line}\n")),
        });
    }
    if let [above @ .., last] = rest
        && !(above.is_empty() && path.is_empty())
    {
        let header = dotted(&[path, above].concat());
        let last = dotted(std::slice::from_ref(last));
        edits.push((text.len()..text.len(), format!("\n[{header}]\n{last} = {value}\n")));
    }
    edits
}

/// A dotted key of TOML.
fn dotted(path: &[String]) -> String {
    path.iter().map(|step| key_of(step)).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "duration = \"40 s\"\n\n[parameters]\nabr = \"bola\" # why\nn = 3\n\n\
        [matrix]\ntcp = [\"reno\", \"cubic\"]\nnet = [{ label = \"a\", value = [1] }, { label = \"b\", value = 2 }]\n\n\
        [links.access]\ndelay = \"20 ms\"\ndown.rate = \"8 Mbit/s\"\nqueue = { limit = \"1 kB\" }\nloss = \"$n\"\n";

    fn set(what: &[&str]) -> Result<String, String> {
        let mut source = Source::new("f", TEXT);
        let set = what.iter().map(|&set| set.to_owned()).collect();
        let refusals = Overrides { set, ..Default::default() }.apply(&mut source);
        match refusals.first() {
            Some(refusal) => Err(refusal.to_string()),
            None => Ok(source.text().to_owned()),
        }
    }

    fn changed(what: &str) -> String {
        let text = set(&[what]).unwrap();
        let before: Vec<&str> = TEXT.lines().collect();
        let new: Vec<&str> = text.lines().filter(|line| !before.contains(line)).collect();
        new.join("|")
    }

    #[test]
    fn values_are_replaced_in_place() {
        assert_eq!(changed("abr=dynamic"), "abr = \"dynamic\" # why");
        assert_eq!(changed("abr=5"), "abr = \"5\" # why");
        assert_eq!(changed("n=5"), "n = 5");
        assert_eq!(changed("links.access.loss=0.5"), "loss = 0.5");
        assert_eq!(changed("duration=5 s"), "duration = \"5 s\"");
        assert_eq!(changed("links.access.down.rate=2 Mbit/s"), "down.rate = \"2 Mbit/s\"");
        assert_eq!(changed("links.access.queue.limit=\"9 kB\""), "queue = { limit = \"9 kB\" }");
        assert_eq!(
            changed("links.access.queue={ limit = \"9 kB\" }"),
            "queue = { limit = \"9 kB\" }"
        );
    }

    #[test]
    fn axes_are_fixed() {
        assert_eq!(changed("tcp=reno"), "tcp = [\"reno\"]");
        assert_eq!(changed("tcp=vegas"), "tcp = [\"vegas\"]");
        assert_eq!(changed("matrix.net=a"), "net = [{ label = \"a\", value = [1] }]");
        let error = set(&["net=c"]).unwrap_err();
        assert!(
            error.contains("has no value `c`") && error.contains("expected: `a` or `b`"),
            "{error}"
        );
    }

    const SECTIONS: &str = "[parameters]\nn = 3\n\n[matrix]\ntcp = [\"reno\"]\n\n[[matrix.net]]\nlabel = \"a\"\n\
        [matrix.net.value]\ndelay = \"1 ms\"\ndown.rate = \"2 Mbit/s\"\nchanges = [{ at = \"1 s\" }]\n\n\
        [[matrix.net]]\nlabel = \"b\"\nvalue = 2\n\n[links.access]\ndelay = \"20 ms\"\n\n\
        [quick.matrix]\ntcp = [\"cubic\"]\n[[quick.matrix.net]]\nlabel = \"short\"\nvalue = { delay = \"5 ms\" }\n";

    fn applied(text: &str, overrides: &Overrides) -> Source {
        let mut source = Source::new("f", text);
        let refusals = overrides.apply(&mut source);
        assert!(refusals.is_empty(), "{}", refusals[0]);
        source
    }

    #[test]
    fn an_axis_of_sections_is_replaced_as_a_whole() {
        let set = |set: &str| Overrides { set: vec![set.to_owned()], ..Default::default() };
        let fixed = applied(SECTIONS, &set("net=a"));
        let line = "net = [{ label = \"a\", value = { delay = \"1 ms\", down = { rate = \"2 Mbit/s\" }, changes = [{ at = \"1 s\" }] } }]";
        assert!(fixed.text().contains(&format!("[matrix]\n{line}\n")), "{}", fixed.text());
        assert!(!fixed.text().contains("[[matrix.net]]"), "{}", fixed.text());
        // Lines stay those of the file.
        let place = fixed.text().find("delay = \"20 ms\"").unwrap();
        assert_eq!(fixed.line(place), 19);
        let quick = applied(SECTIONS, &Overrides { quick: true, ..Default::default() });
        let line = "net = [{ label = \"short\", value = { delay = \"5 ms\" } }]";
        assert!(
            quick.text().contains(&format!("[matrix]\n{line}\ntcp = [\"cubic\"]\n")),
            "{}",
            quick.text()
        );
        // Without a header of the matrix, the key is dotted.
        let alone =
            SECTIONS.replace("[matrix]\ntcp = [\"reno\"]\n", "").replace("tcp = [\"cubic\"]\n", "");
        let quick = applied(&alone, &Overrides { quick: true, ..Default::default() });
        assert!(quick.text().starts_with(&format!("matrix.{line}\n")), "{}", quick.text());
    }

    #[test]
    fn a_second_axis_of_sections_does_not_swallow_the_line() {
        let text = "[[matrix.one]]\nlabel = \"a\"\nvalue = 1\n\n[[matrix.two]]\nlabel = \"b\"\nvalue = 2\n";
        let set = vec!["one=a".to_owned()];
        let fixed = applied(text, &Overrides { set, ..Default::default() });
        let root = document::parse(fixed.text()).unwrap();
        let one = entry(&root, "matrix").and_then(|axes| entry(axes, "one"));
        let value = one
            .and_then(|one| one.get_ref().as_array())
            .and_then(|array| entry(array.first()?, "value"));
        assert_eq!(words(value.expect("the axis").get_ref()), "1", "{}", fixed.text());
    }

    #[test]
    fn what_is_missing_is_added() {
        assert_eq!(changed("seed=7"), "seed = 7");
        assert_eq!(changed("record.tcp=false"), "record.tcp = false");
        assert_eq!(changed("links.access.up.rate=1 Mbit/s"), "up.rate = \"1 Mbit/s\"");
        assert_eq!(changed("links.access.queue.x=1"), "queue = { x = 1, limit = \"1 kB\" }");
        assert_eq!(changed("links.other.delay=1 ms"), "links.other.delay = \"1 ms\"");
    }

    #[test]
    fn changes_meet() {
        let text = set(&["tcp=reno", "n=[1]", "n=\"x\"", "seed=1", "seed=2"]).unwrap();
        assert!(text.starts_with("seed = 2\nduration"), "{text}");
        assert!(text.contains("\nn = \"x\"\n") && text.contains("tcp = [\"reno\"]"), "{text}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (what, why) in [
            ("abr", "no `=`"),
            ("ab=1", "did you mean `abr`?"),
            ("links.access=1", "set its keys one by one"),
            ("links.access.delay.x=1", "has no `x`"),
            ("linsk.access.delay=1", "did you mean `links`?"),
        ] {
            let error = set(&[what]).unwrap_err();
            assert!(error.contains(why), "{what}: {error}");
        }
    }
}

//! References: `"$name"` stands for the value of a parameter or of a matrix axis, of any type;
//! `"${name}"` inside a longer text for its text; `name.key` for what a table has under a key.
//! `"$$name"` and `"$${name}"` are the bare words.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use crate::document::{Node, words};
use crate::refusal::{Refusal, Span};

/// What names stand for in one cell.
pub(crate) type Bindings<'b, 't> = BTreeMap<&'b str, &'b Node<'t>>;

/// A place where a name was used.
#[derive(Debug, Clone)]
pub(crate) struct Use {
    /// Where the reference stands.
    pub at: Range<usize>,
    /// The name.
    pub name: String,
    /// What it stood for, in words.
    pub value: String,
    /// Where that was written.
    pub defined: Range<usize>,
}

/// Puts values in the place of references, in a value and all below it.
pub(crate) fn substitute<'t>(
    node: &mut Node<'t>,
    bindings: &Bindings<'_, 't>,
    uses: &mut Vec<Use>,
    refusals: &mut Vec<Refusal<Span>>,
) {
    let span = node.span();
    match node.get_mut() {
        DeValue::Table(table) => {
            for (_, value) in table.iter_mut() {
                substitute(value, bindings, uses, refusals);
            }
        }
        DeValue::Array(array) => {
            for value in array.iter_mut() {
                substitute(value, bindings, uses, refusals);
            }
        }
        DeValue::String(text) if text.contains('$') => match resolve(text, &span, bindings, uses) {
            Ok(Some(value)) => *node = Spanned::new(span, value),
            Ok(None) => {}
            Err(refusal) => refusals.push(refusal),
        },
        _ => {}
    }
}

/// What a text with a `$` in it becomes; `None` if it stays.
fn resolve<'t>(
    text: &str,
    span: &Range<usize>,
    bindings: &Bindings<'_, 't>,
    uses: &mut Vec<Use>,
) -> Result<Option<DeValue<'t>>, Refusal<Span>> {
    if let Some(name) = text.strip_prefix('$').filter(|path| is_path(path)) {
        return look_up(name, span, bindings, uses).map(|value| Some(value.get_ref().clone()));
    }
    if let Some(literal) = text.strip_prefix("$$").filter(|path| is_path(path)) {
        return Ok(Some(DeValue::String(format!("${literal}").into())));
    }
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        let Some(end) = after.find('}') else { break };
        rest = &after[end + 1..];
        if let Some(before) = before.strip_suffix('$') {
            result.push_str(&format!("{before}${{{}}}", &after[..end]));
            continue;
        }
        let value = look_up(&after[..end], span, bindings, uses)?;
        if matches!(value.get_ref(), DeValue::Array(_) | DeValue::Table(_)) {
            let message = format!(
                "`${{{}}}` is {}; only texts and numbers can be inserted into a text",
                &after[..end],
                words(value.get_ref())
            );
            return Err(Refusal::new(span.clone(), message));
        }
        result.push_str(before);
        result.push_str(&words(value.get_ref()));
    }
    result.push_str(rest);
    Ok((result != text).then(|| DeValue::String(result.into())))
}

fn look_up<'b, 't>(
    path: &str,
    span: &Range<usize>,
    bindings: &Bindings<'b, 't>,
    uses: &mut Vec<Use>,
) -> Result<&'b Node<'t>, Refusal<Span>> {
    let (name, keys) = path.split_once('.').map_or((path, None), |(name, keys)| (name, Some(keys)));
    let Some(value) = bindings.get(name) else {
        let refusal = Refusal::new(span.clone(), format!("no parameter or axis is named `{name}`"))
            .instead(name, bindings.keys().copied());
        let define = format!("add `{name} = …` to [parameters] or [matrix]");
        return Err(refusal.or_hint(define));
    };
    let value = keys.map_or(Ok(*value), |keys| below(value, name, keys, span))?;
    uses.push(Use {
        at: span.clone(),
        name: name.to_owned(),
        value: words(value.get_ref()),
        defined: value.span(),
    });
    Ok(value)
}

/// What the table `name` has under `keys`, with a dot between each.
fn below<'b, 't>(
    mut value: &'b Node<'t>,
    name: &str,
    keys: &str,
    span: &Range<usize>,
) -> Result<&'b Node<'t>, Refusal<Span>> {
    for key in keys.split('.') {
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`{name}` is {}, not a table", words(value.get_ref()));
            return Err(Refusal::new(span.clone(), message));
        };
        value = table.get(key).ok_or_else(|| {
            Refusal::new(span.clone(), format!("`{name}` has no `{key}`"))
                .instead(key, table.keys().map(|key| &**key.get_ref()).collect::<Vec<_>>())
        })?;
    }
    Ok(value)
}

/// A name, and keys below it with a dot before each.
fn is_path(text: &str) -> bool {
    text.split('.').all(is_name)
}

/// Whether a text can be the name of a parameter or an axis: letters, digits, `_` and `-`, a letter
/// first, at most 32.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= 32
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{entry, parse};

    fn run(value: &str) -> Result<String, String> {
        let text = format!(
            "x = {value}\n[parameters]\nrate = \"8 Mbit/s\"\nn = 3\nall = [1, 2]\n\
             of = {{ n = 4, more = {{ rate = \"9 Mbit/s\" }} }}\n"
        );
        let mut root = parse(&text).unwrap();
        let names = entry(&root, "parameters").unwrap().clone();
        let bindings =
            crate::document::entries(&names).map(|(name, _, node)| (name, node)).collect();
        let (mut uses, mut refusals) = (Vec::new(), Vec::new());
        substitute(&mut root, &bindings, &mut uses, &mut refusals);
        match refusals.pop() {
            Some(refusal) => Err(refusal.found),
            None => Ok(format!("{:?}", words(entry(&root, "x").unwrap().get_ref()))),
        }
    }

    #[test]
    fn whole_values_keep_their_type() {
        assert_eq!(run(r#""$rate""#).unwrap(), r#""8 Mbit/s""#);
        assert_eq!(run(r#""$n""#).unwrap(), r#""3""#);
        assert_eq!(run(r#""$all""#).unwrap(), r#""an array""#);
    }

    #[test]
    fn texts_take_words_in() {
        assert_eq!(run(r#""a ${n} b ${n}""#).unwrap(), r#""a 3 b 3""#);
        assert!(run(r#""a ${all}""#).unwrap_err().contains("is an array"));
    }

    #[test]
    fn a_key_of_a_table_can_be_meant() {
        assert_eq!(run(r#""$of.n""#).unwrap(), r#""4""#);
        assert_eq!(run(r#""at ${of.more.rate}""#).unwrap(), r#""at 9 Mbit/s""#);
        assert_eq!(run(r#""$of.m""#).unwrap_err(), "`of` has no `m`");
        assert_eq!(run(r#""$n.of""#).unwrap_err(), "`n` is 3, not a table");
        assert_eq!(run(r#""$$of.n""#).unwrap(), r#""$of.n""#);
    }

    #[test]
    fn dollars_can_be_meant() {
        assert_eq!(run(r#""$$n""#).unwrap(), r#""$n""#);
        assert_eq!(run(r#""echo $${n} $1 ${n""#).unwrap(), r#""echo ${n} $1 ${n""#);
        assert_eq!(run(r#""$""#).unwrap(), r#""$""#);
    }

    #[test]
    fn unknown_names_are_refused() {
        assert_eq!(run(r#""$rat""#).unwrap_err(), "no parameter or axis is named `rat`");
        assert_eq!(run(r#"{ deep = ["${m}"] }"#).unwrap_err(), "no parameter or axis is named `m`");
    }
}

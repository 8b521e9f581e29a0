//! The language of findings: precedence climbing over [`crate::lex`], with names looked up and
//! dimensions checked on the way.

use std::ops::Range;

use suiro_strict::refusal::{Refusal, Span, listed};

use crate::formula::{Binding, Comparison, Fold, Join, Number, Reference, Relation, Truth, Value};
use crate::lex::{Token, tokens};
use crate::unit::{Dimension, PLAIN, Unit};
use crate::{Axis, Metric};

/// Longest formula, in bytes.
pub const FORMULA_MAX: usize = 4096;

/// Deepest nesting.
const DEPTH_MAX: usize = 48;

/// Words that are no names.
const KEYWORDS: [&str; 11] =
    ["every", "any", "in", "and", "or", "not", "within", "of", "min", "max", "mean"];

/// What binds how strongly; what follows binds stronger.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARE: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const SIGN: u8 = 7;

/// Reads a formula over a study's axes and metrics.
///
/// # Errors
/// The first thing that is wrong, with its bytes in `text`.
pub fn parse(text: &str, axes: &[Axis], metrics: &[Metric]) -> Result<Truth, Refusal<Span>> {
    if text.len() > FORMULA_MAX {
        let message = format!("a formula of {} bytes", text.len());
        return Err(Refusal::new(0..text.len(), message).expected(format!("{FORMULA_MAX} at most")));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, axes, metrics, bound: Vec::new(), depth: 0 };
    let item = parser.expression(0)?;
    let truth = parser.truth(item)?;
    match parser.peek() {
        Token::End => Ok(truth),
        _ => Err(parser.unexpected("`and`, `or` or the end")),
    }
}

/// The label on each axis that `at` chooses, such as `dash` and `tcp=reno`, each with its place;
/// `None` where none does.
///
/// # Errors
/// The first that is wrong.
pub fn select(
    at: &[(&str, Range<usize>)],
    axes: &[Axis],
) -> Result<Vec<Option<usize>>, Refusal<Span>> {
    let mut chosen = vec![None; axes.len()];
    for (text, span) in at {
        let (axis, label) = match text.split_once('=') {
            Some((axis, label)) => (Some(axis.trim()), label.trim()),
            None => (None, *text),
        };
        let (axis, label) = locate(axis, label, span.clone(), axes)?;
        if chosen[axis].replace(label).is_some() {
            let message = format!("two labels of the axis `{}`", axes[axis].name);
            return Err(Refusal::new(span.clone(), message).hint("keep one of the two"));
        }
    }
    Ok(chosen)
}

/// Finds a label, on `axis` or on whichever has it.
fn locate(
    axis: Option<&str>,
    label: &str,
    span: Range<usize>,
    axes: &[Axis],
) -> Result<(usize, usize), Refusal<Span>> {
    let named = |axis: &&Axis| axis.labels.iter().any(|known| known == label);
    let wanted: Vec<usize> = match axis {
        Some(name) => vec![find_axis(name, span.clone(), axes)?],
        None => (0..axes.len()).filter(|&index| named(&&axes[index])).collect(),
    };
    match wanted.as_slice() {
        [axis] => {
            let found = axes[*axis].labels.iter().position(|known| known == label);
            let unknown = || {
                let message = format!("the axis `{}` has no `{label}`", axes[*axis].name);
                let known: Vec<&str> = axes[*axis].labels.iter().map(String::as_str).collect();
                Refusal::new(span, message).instead(label, known)
            };
            found.map(|label| (*axis, label)).ok_or_else(unknown)
        }
        [] => {
            let known = axes.iter().flat_map(|axis| axis.labels.iter().map(String::as_str));
            let message = format!("no axis has the label `{label}`");
            Err(Refusal::new(span, message).instead(label, known))
        }
        [first, ..] => {
            let message = format!("several axes have the label `{label}`");
            let hint = format!("write which: {}={label}", axes[*first].name);
            Err(Refusal::new(span, message).hint(hint))
        }
    }
}

fn find_axis(name: &str, span: Range<usize>, axes: &[Axis]) -> Result<usize, Refusal<Span>> {
    axes.iter().position(|axis| axis.name == name).ok_or_else(|| {
        let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        Refusal::new(span, format!("the study has no axis `{name}`")).instead(name, known)
    })
}

/// What an expression turned out to be.
enum Item {
    Truth(Truth, Range<usize>),
    Number(Number),
}

impl Item {
    fn span(&self) -> Range<usize> {
        match self {
            Self::Truth(_, span) => span.clone(),
            Self::Number(number) => number.span.clone(),
        }
    }
}

struct Parser<'t> {
    tokens: Vec<(Token<'t>, Range<usize>)>,
    at: usize,
    axes: &'t [Axis],
    metrics: &'t [Metric],
    /// Axes that take their labels one after the other here.
    bound: Vec<usize>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Token<'t> {
        self.tokens[self.at].0.clone()
    }

    fn span(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    /// Takes a token; the end stays.
    fn next(&mut self) -> (Token<'t>, Range<usize>) {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Takes this sign or keyword if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) | Token::Word(found) if found == text);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, text: &str) -> Result<Range<usize>, Refusal<Span>> {
        let span = self.span();
        if self.take(text) { Ok(span) } else { Err(self.unexpected(&format!("`{text}`"))) }
    }

    fn unexpected(&self, expected: &str) -> Refusal<Span> {
        let found = match self.peek() {
            Token::End => "the formula ends".to_owned(),
            Token::Word(text) | Token::Quoted(text) => format!("`{text}` does not fit here"),
            Token::Sign(text) => format!("`{text}` does not fit here"),
            Token::Number(..) => "a number does not fit here".to_owned(),
        };
        Refusal::new(self.span(), found).expected(expected)
    }

    fn truth(&self, item: Item) -> Result<Truth, Refusal<Span>> {
        match item {
            Item::Truth(truth, _) => Ok(truth),
            Item::Number(number) => Err(Refusal::new(number.span, "a number is not true or false")
                .expected("a comparison: `cwnd[vegas] < cwnd[reno]`")),
        }
    }

    fn number(&self, item: Item) -> Result<Number, Refusal<Span>> {
        match item {
            Item::Number(number) => Ok(number),
            Item::Truth(_, span) => {
                let hint = "join comparisons by `and`: `a < b and b < c`";
                Err(Refusal::new(span, "a comparison is not a number").hint(hint))
            }
        }
    }

    fn expression(&mut self, power: u8) -> Result<Item, Refusal<Span>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Refusal::new(self.span(), "nested too deeply")
                .expected(format!("{DEPTH_MAX} levels at most")));
        }
        let mut left = self.prefix()?;
        while let Some(binds) = self.infix().filter(|binds| *binds >= power) {
            left = self.join(left, binds)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// How strongly what comes next joins what is before it and behind it.
    fn infix(&self) -> Option<u8> {
        match self.peek() {
            Token::Word("or") => Some(OR),
            Token::Word("and") => Some(AND),
            Token::Word("within") => Some(COMPARE),
            Token::Sign("<" | "<=" | ">" | ">=" | "=" | "!=") => Some(COMPARE),
            Token::Sign("+" | "-") => Some(SUM),
            Token::Sign("*" | "/") => Some(PRODUCT),
            _ => None,
        }
    }

    fn join(&mut self, left: Item, binds: u8) -> Result<Item, Refusal<Span>> {
        let start = left.span().start;
        let (token, span) = self.next();
        let relation =
            if token == Token::Word("within") { Some(self.within()?) } else { relation(&token) };
        let right = self.expression(binds + 1)?;
        let whole = start..right.span().end;
        if let Some(relation) = relation {
            let (left, right) = (self.number(left)?, self.number(right)?);
            same_dimension(&left, &right, span)?;
            return Ok(Item::Truth(Truth::Compare(Comparison { left, relation, right }), whole));
        }
        match token {
            Token::Word(word) => {
                let both = vec![self.truth(left)?, self.truth(right)?];
                let truth = if word == "and" { Truth::And(both) } else { Truth::Or(both) };
                Ok(Item::Truth(truth, whole))
            }
            Token::Sign(sign) => {
                let (left, right) = (self.number(left)?, self.number(right)?);
                arithmetic(left, sign, right, span, whole).map(Item::Number)
            }
            _ => unreachable!("infix() names words and signs only"),
        }
    }

    /// `within 10 % of`
    fn within(&mut self) -> Result<Relation, Refusal<Span>> {
        let (token, span) = self.next();
        match token {
            Token::Number(share, unit) if unit.dimension == Dimension::Plain => {
                self.expect("of")?;
                Ok(Relation::Within(share))
            }
            _ => Err(Refusal::new(span, "`within` needs a share")
                .expected("`cwnd[obstacle] within 10 % of cwnd[clear]`")),
        }
    }

    fn prefix(&mut self) -> Result<Item, Refusal<Span>> {
        let (token, span) = (self.peek(), self.span());
        match token {
            Token::Number(value, unit) => {
                self.next();
                Ok(Item::Number(Number { value: Value::Constant(value), unit, span }))
            }
            Token::Sign("(") => {
                self.next();
                let inner = self.expression(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Sign("-") => {
                self.next();
                let inner = self.expression(SIGN)?;
                let of = self.number(inner)?;
                let (unit, span) = (of.unit, span.start..of.span.end);
                Ok(Item::Number(Number { value: Value::Negative(Box::new(of)), unit, span }))
            }
            Token::Word("not") => {
                self.next();
                let inner = self.expression(NOT)?;
                let span = span.start..inner.span().end;
                Ok(Item::Truth(Truth::Not(Box::new(self.truth(inner)?)), span))
            }
            Token::Word(word @ ("every" | "any")) => {
                self.next();
                self.quantified(word == "any", span.start)
            }
            Token::Word(word @ ("min" | "max" | "mean")) => {
                self.next();
                self.fold(word, span.start).map(Item::Number)
            }
            Token::Word(word) if KEYWORDS.contains(&word) => {
                Err(self.unexpected("a number, a metric or a comparison"))
            }
            Token::Word(_) | Token::Quoted(_) => self.metric().map(Item::Number),
            _ => Err(self.unexpected("a number, a metric or a comparison")),
        }
    }

    /// `every tcp, scene: …`
    fn quantified(&mut self, any: bool, start: usize) -> Result<Item, Refusal<Span>> {
        let over = self.bindings()?;
        let inner = self.expression(0)?;
        self.unbind(&over);
        let span = start..inner.span().end;
        let body = Box::new(self.truth(inner)?);
        Ok(Item::Truth(Truth::Each { any, over, body }, span))
    }

    /// `tcp in [reno, cubic], scene:`
    fn bindings(&mut self) -> Result<Vec<Binding>, Refusal<Span>> {
        let mut over = Vec::new();
        loop {
            let (token, span) = self.next();
            let (Token::Word(name) | Token::Quoted(name)) = token else {
                let known: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
                let mut refusal = Refusal::new(span, "an axis is missing");
                refusal.expected = listed(known);
                return Err(refusal);
            };
            let axis = find_axis(name, span.clone(), self.axes)?;
            if self.bound.contains(&axis) {
                return Err(Refusal::new(span, format!("`{name}` varies already")));
            }
            let labels = if self.take("in") {
                self.labels_of(axis)?
            } else {
                (0..self.axes[axis].labels.len()).collect()
            };
            self.bound.push(axis);
            over.push(Binding { axis, labels });
            if !self.take(",") {
                self.expect(":")?;
                return Ok(over);
            }
        }
    }

    fn unbind(&mut self, over: &[Binding]) {
        self.bound.truncate(self.bound.len() - over.len());
    }

    /// `[reno, cubic]`, all of one axis.
    fn labels_of(&mut self, axis: usize) -> Result<Vec<usize>, Refusal<Span>> {
        self.expect("[")?;
        let mut labels = Vec::new();
        loop {
            let (name, span) = self.name("a label")?;
            let axis = &self.axes[axis].name;
            let (_, label) = locate(Some(axis), name, span.clone(), self.axes)?;
            if labels.contains(&label) {
                return Err(Refusal::new(span, format!("`{name}` twice")));
            }
            labels.push(label);
            if !self.take(",") {
                self.expect("]")?;
                return Ok(labels);
            }
        }
    }

    fn name(&mut self, what: &str) -> Result<(&'t str, Range<usize>), Refusal<Span>> {
        let span = self.span();
        match self.peek() {
            Token::Word(name) | Token::Quoted(name) => {
                self.next();
                Ok((name, span))
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// `min(a, b)` or `min(tcp: a)`
    fn fold(&mut self, word: &str, start: usize) -> Result<Number, Refusal<Span>> {
        let fold = match word {
            "min" => Fold::Min,
            "max" => Fold::Max,
            _ => Fold::Mean,
        };
        self.expect("(")?;
        let is_axis = |name: &str| self.axes.iter().any(|axis| axis.name == name);
        if matches!(self.peek(), Token::Word(name) | Token::Quoted(name) if is_axis(name)) {
            let over = self.bindings()?;
            let inner = self.expression(0)?;
            let of = self.number(inner)?;
            self.unbind(&over);
            let (unit, end) = (of.unit, self.expect(")")?.end);
            let value = Value::FoldOver(fold, over, Box::new(of));
            return Ok(Number { value, unit, span: start..end });
        }
        let mut of: Vec<Number> = Vec::new();
        loop {
            let inner = self.expression(0)?;
            let number = self.number(inner)?;
            if let Some(first) = of.first() {
                same_dimension(first, &number, number.span.clone())?;
            }
            of.push(number);
            if !self.take(",") {
                break;
            }
        }
        let (unit, end) = (of[0].unit, self.expect(")")?.end);
        Ok(Number { value: Value::Fold(fold, of), unit, span: start..end })
    }

    /// `cwnd[dash, tcp=reno]`; axes without a label must vary.
    fn metric(&mut self) -> Result<Number, Refusal<Span>> {
        let (name, span) = self.name("a metric")?;
        let metric =
            self.metrics.iter().position(|metric| metric.name == name).ok_or_else(|| {
                let known: Vec<&str> =
                    self.metrics.iter().map(|metric| metric.name.as_str()).collect();
                let message = format!("the study has no metric `{name}`");
                Refusal::new(span.clone(), message).instead(name, known)
            })?;
        let mut at = vec![None; self.axes.len()];
        let mut end = span.end;
        if self.take("[") {
            loop {
                self.choose(&mut at)?;
                if !self.take(",") {
                    end = self.expect("]")?.end;
                    break;
                }
            }
        }
        let span = span.start..end;
        let open = |axis: &usize| at[*axis].is_none() && !self.bound.contains(axis);
        if let Some(axis) = (0..self.axes.len()).find(open) {
            let Axis { name: axis, labels } = &self.axes[axis];
            let message =
                format!("`{name}` does not name one cell: it has no label of the axis `{axis}`");
            let first = labels.first().map(String::as_str).unwrap_or_default();
            let hint = format!("choose one, {name}[{first}], or all: `every {axis}: …`");
            return Err(Refusal::new(span, message).hint(hint));
        }
        let unit = self.metrics[metric].unit;
        Ok(Number { value: Value::Metric(Reference { metric, at }), unit, span })
    }

    /// One label within brackets.
    fn choose(&mut self, at: &mut [Option<usize>]) -> Result<(), Refusal<Span>> {
        let (first, span) = self.name("a label")?;
        let (axis, label, span) = if self.take("=") {
            let (label, end) = self.name("a label")?;
            (Some(first), label, span.start..end.end)
        } else {
            (None, first, span)
        };
        let (axis, label) = locate(axis, label, span.clone(), self.axes)?;
        let name = &self.axes[axis].name;
        if self.bound.contains(&axis) {
            let message = format!("the axis `{name}` varies here and has a label");
            return Err(Refusal::new(span, message).hint(format!("remove `{name}` before the `:`")));
        }
        match at[axis].replace(label) {
            None => Ok(()),
            Some(_) => Err(Refusal::new(span, format!("two labels of the axis `{name}`"))),
        }
    }
}

fn relation(token: &Token<'_>) -> Option<Relation> {
    match token {
        Token::Sign("<") => Some(Relation::Less),
        Token::Sign("<=") => Some(Relation::AtMost),
        Token::Sign(">") => Some(Relation::Greater),
        Token::Sign(">=") => Some(Relation::AtLeast),
        Token::Sign("=") => Some(Relation::Equal),
        Token::Sign("!=") => Some(Relation::Unequal),
        _ => None,
    }
}

fn same_dimension(left: &Number, right: &Number, span: Range<usize>) -> Result<(), Refusal<Span>> {
    let [of_left, of_right] = [left, right].map(Number::dimension);
    if of_left == of_right {
        return Ok(());
    }
    let message = format!("{} cannot be combined with {}", of_left.name(), of_right.name());
    let mut refusal = Refusal::new(span, message);
    refusal.hint = unit_missing(left).or_else(|| unit_missing(right));
    Err(refusal)
}

fn unit_missing(number: &Number) -> Option<String> {
    let bare = number.is_constant() && number.unit.name.is_empty();
    bare.then(|| "give the number a unit, such as `100 ms`".to_owned())
}

fn arithmetic(
    left: Number,
    sign: &str,
    right: Number,
    span: Range<usize>,
    whole: Range<usize>,
) -> Result<Number, Refusal<Span>> {
    let join = match sign {
        "+" => Join::Add,
        "-" => Join::Subtract,
        "*" => Join::Multiply,
        _ => Join::Divide,
    };
    let plain = |number: &Number| number.dimension() == Dimension::Plain;
    let unit: Unit = match join {
        Join::Add | Join::Subtract => {
            same_dimension(&left, &right, span)?;
            if left.is_constant() { right.unit } else { left.unit }
        }
        Join::Multiply if plain(&left) => right.unit,
        Join::Multiply | Join::Divide if plain(&right) => left.unit,
        Join::Divide if left.dimension() == right.dimension() => PLAIN,
        Join::Multiply | Join::Divide => {
            let message =
                format!("{} `{sign}` {}", left.dimension().name(), right.dimension().name());
            return Err(Refusal::new(span, message)
                .expected("a quotient of two quantities of one kind, or a plain number"));
        }
    };
    Ok(Number { value: Value::Join(join, Box::new(left), Box::new(right)), unit, span: whole })
}

#[cfg(test)]
mod tests;

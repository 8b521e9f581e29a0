//! What a formula means, after names were looked up and dimensions checked.

use std::ops::Range;

use crate::unit::{Dimension, Unit};

/// What is true or not.
#[derive(Debug, Clone, PartialEq)]
pub enum Truth {
    /// True for every combination of these labels, or, if `any`, for at least one.
    Each {
        /// One is enough.
        any: bool,
        /// What varies.
        over: Vec<Binding>,
        /// What is to be true.
        body: Box<Truth>,
    },
    /// All of them.
    And(Vec<Truth>),
    /// At least one of them.
    Or(Vec<Truth>),
    /// The contrary.
    Not(Box<Truth>),
    /// Two numbers compared.
    Compare(Comparison),
}

/// Two numbers compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The number that is judged.
    pub left: Number,
    /// How.
    pub relation: Relation,
    /// What it is judged by.
    pub right: Number,
}

/// How two numbers may stand to each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `within SHARE of`: differs by at most this share of the right.
    Within(f64),
}

impl Relation {
    /// Whether it holds.
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
            Self::Equal => left == right,
            Self::Unequal => left != right,
            Self::Within(share) => (left - right).abs() <= share * right.abs(),
        }
    }
}

impl Relation {
    /// By how much it holds, in the unit of both; below zero if it does not. `None` of equality, which has no degrees.
    pub fn margin(self, left: f64, right: f64) -> Option<f64> {
        match self {
            Self::Less | Self::AtMost => Some(right - left),
            Self::Greater | Self::AtLeast => Some(left - right),
            Self::Within(share) => Some(share * right.abs() - (left - right).abs()),
            Self::Equal | Self::Unequal => None,
        }
    }
}

/// A number, its dimension and the unit to print it in.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// How it comes about.
    pub value: Value,
    /// The unit to print it in.
    pub unit: Unit,
    /// Where it stands in the formula.
    pub span: Range<usize>,
}

/// How a number comes about.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Written, in base units.
    Constant(f64),
    /// A metric of a cell.
    Metric(Reference),
    /// The negative.
    Negative(Box<Number>),
    /// Two numbers joined.
    Join(Join, Box<Number>, Box<Number>),
    /// The least, the greatest, the mean of several.
    Fold(Fold, Vec<Number>),
    /// The same over every combination of labels.
    FoldOver(Fold, Vec<Binding>, Box<Number>),
}

/// How two numbers are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// What is taken of several numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// Their mean.
    Mean,
}

/// An axis that takes some of its labels one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Which of the study's axes.
    pub axis: usize,
    /// Which of its labels.
    pub labels: Vec<usize>,
}

/// A metric of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Which of the study's metrics.
    pub metric: usize,
    /// The label on each of the study's axes; `None` for the one that an axis takes at the time.
    pub at: Vec<Option<usize>>,
}

impl Number {
    /// What it measures.
    pub fn dimension(&self) -> Dimension {
        self.unit.dimension
    }

    /// The metrics that it is made of, in the order of the formula.
    pub fn references(&self) -> Vec<&Reference> {
        match &self.value {
            Value::Constant(_) => Vec::new(),
            Value::Metric(reference) => vec![reference],
            Value::Negative(of) | Value::FoldOver(_, _, of) => of.references(),
            Value::Join(_, left, right) => [left.references(), right.references()].concat(),
            Value::Fold(_, of) => of.iter().flat_map(Self::references).collect(),
        }
    }

    /// Whether it is the same whatever was measured.
    pub fn is_constant(&self) -> bool {
        self.references().is_empty()
    }

    /// Whether it is a quotient of two quantities of one kind: printed as ×1.5.
    pub fn is_quotient(&self) -> bool {
        match &self.value {
            Value::Join(Join::Divide, left, right) => left.dimension() == right.dimension(),
            Value::FoldOver(_, _, of) | Value::Negative(of) => of.is_quotient(),
            Value::Fold(_, of) => of.iter().any(Self::is_quotient),
            Value::Constant(_) | Value::Metric(_) | Value::Join(..) => false,
        }
    }
}

//! Rust types that can be columns, and the values of a column in memory.

use suiro_units::{BitRate, Direction, Duration, Time, Word, to_i64};

use super::{Kind, Text};
use crate::words::{
    AudioFate, CacheFault, CacheOutcome, Carries, Cause, Container, Effect, FlowRole, Heading,
    KeyKind, LatenessSource, Layer, Limitation, LinkCause, PlayerState, Point, Proof, RequestKind,
    Segmentation, SessionEnd, Shown, Signalling, TcpSource, TcpState, Track, Transport, Verdict,
};

/// A Rust type that can be a column.
pub trait Field: Sized {
    /// What the column holds.
    const KIND: Kind;
    /// True for `Option`s.
    const NULLABLE: bool = false;
    /// Appends the value.
    fn append(self, buffer: &mut Buffer);
    /// Takes value `index`.
    fn at(buffer: &Buffer, index: usize) -> Self;
}

/// The values of one column for the rows in memory. Null rows hold a default and are not `present`.
#[derive(Debug)]
pub struct Buffer {
    pub(super) values: Values,
    pub(super) present: Vec<bool>,
}

#[derive(Debug)]
pub(super) enum Values {
    /// Of [`Kind::Integer`] and [`Kind::Natural`].
    Integer(Vec<i64>),
    Real(Vec<f64>),
    Boolean(Vec<bool>),
    Text(Vec<Text>),
    /// Places in the list of words.
    Word(Vec<u8>),
}

impl Values {
    pub fn len(&self) -> usize {
        match self {
            Self::Integer(v) => v.len(),
            Self::Real(v) => v.len(),
            Self::Boolean(v) => v.len(),
            Self::Text(v) => v.len(),
            Self::Word(v) => v.len(),
        }
    }
}

impl Buffer {
    pub(super) fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Integer | Kind::Natural => Values::Integer(Vec::new()),
            Kind::Real => Values::Real(Vec::new()),
            Kind::Boolean => Values::Boolean(Vec::new()),
            Kind::Text => Values::Text(Vec::new()),
            Kind::Word(_) => Values::Word(Vec::new()),
        };
        Self { values, present: Vec::new() }
    }

    /// So many nulls.
    pub(super) fn null(kind: Kind, count: usize) -> Self {
        let mut nulls = Self::new(kind);
        (0..count).for_each(|_| nulls.append_null());
        nulls
    }

    /// Appends the values of another one of the same column.
    pub(super) fn extend(&mut self, more: Self) {
        match (&mut self.values, more.values) {
            (Values::Integer(own), Values::Integer(more)) => own.extend(more),
            (Values::Real(own), Values::Real(more)) => own.extend(more),
            (Values::Boolean(own), Values::Boolean(more)) => own.extend(more),
            (Values::Text(own), Values::Text(more)) => own.extend(more),
            (Values::Word(own), Values::Word(more)) => own.extend(more),
            _ => unreachable!("both are made for one column's kind"),
        }
        self.present.extend(more.present);
    }

    fn append_null(&mut self) {
        match &mut self.values {
            Values::Integer(v) => v.push(0),
            Values::Real(v) => v.push(0.0),
            Values::Boolean(v) => v.push(false),
            Values::Text(v) => v.push(Text::default()),
            Values::Word(v) => v.push(0),
        }
        self.present.push(false);
    }
}

macro_rules! field {
    ($type:ty, $kind:expr, $values:ident, $into:expr, $from:expr) => {
        impl Field for $type {
            const KIND: Kind = $kind;
            fn append(self, buffer: &mut Buffer) {
                let Values::$values(values) = &mut buffer.values else {
                    unreachable!("a buffer is made for its field's kind")
                };
                values.push($into(self));
                buffer.present.push(true);
            }
            fn at(buffer: &Buffer, index: usize) -> Self {
                let Values::$values(values) = &buffer.values else {
                    unreachable!("a buffer is made for its field's kind")
                };
                $from(&values[index])
            }
        }
    };
}
field!(i64, Kind::Integer, Integer, |v| v, |v: &i64| *v);
field!(f64, Kind::Real, Real, |v| v, |v: &f64| *v);
field!(bool, Kind::Boolean, Boolean, |v| v, |v: &bool| *v);
field!(Text, Kind::Text, Text, |v| v, |v: &Text| v.clone());
// A reader refuses negative numbers in these; numbers beyond i64::MAX are written as that.
field!(u64, Kind::Natural, Integer, to_i64, |v: &i64| v.cast_unsigned());
field!(Time, Kind::Natural, Integer, Time::as_nanos_i64, |v: &i64| {
    Time::from_nanos(v.cast_unsigned())
});
field!(Duration, Kind::Natural, Integer, Duration::as_nanos_i64, |v: &i64| {
    Duration::from_nanos(v.cast_unsigned())
});
field!(BitRate, Kind::Natural, Integer, |v: BitRate| to_i64(v.as_bps()), |v: &i64| {
    BitRate::from_bps(v.cast_unsigned())
});

/// Makes columns of closed lists of words.
macro_rules! words {
    ($($type:ty),+ $(,)?) => {$(
        const _: () = assert!(<$type>::ALL.len() <= u8::MAX as usize);
        field!(
            $type,
            Kind::Word(<$type as Word>::WORDS),
            Word,
            |v| <$type>::ALL.iter().position(|w| *w == v).expect("ALL has every word") as u8,
            |v: &u8| <$type>::ALL[usize::from(*v)]
        );
    )+};
}
words!(
    Direction,
    Verdict,
    LinkCause,
    TcpSource,
    TcpState,
    Point,
    Heading,
    KeyKind,
    Layer,
    RequestKind,
    CacheFault,
    CacheOutcome,
    Track,
    PlayerState,
    Segmentation,
    Shown,
    Transport,
    FlowRole,
    SessionEnd,
    AudioFate,
    Signalling,
    Carries,
    LatenessSource,
    Limitation,
    Container,
    Cause,
    Effect,
    Proof,
);

impl<F: Field> Field for Option<F> {
    const KIND: Kind = F::KIND;
    const NULLABLE: bool = true;
    fn append(self, buffer: &mut Buffer) {
        match self {
            Some(value) => value.append(buffer),
            None => buffer.append_null(),
        }
    }
    fn at(buffer: &Buffer, index: usize) -> Self {
        buffer.present[index].then(|| F::at(buffer, index))
    }
}

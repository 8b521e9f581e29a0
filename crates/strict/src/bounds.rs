//! The bounds of a key: declared once, then checked, printed in refusals, and written to the JSON
//! Schema.

use std::fmt;

use schemars::Schema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::refusal::{Keys, Refusal};

/// The least and the greatest value of a key.
///
/// ```
/// use suiro_strict::Bounds;
/// const FLOWS: Bounds<u32> = Bounds::new(1, 65_536);
/// assert_eq!(FLOWS.to_string(), "1 to 65536");
/// assert!(FLOWS.contains(&1) && !FLOWS.contains(&0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds<T> {
    least: T,
    most: T,
    above: bool,
}

impl<T> Bounds<T> {
    /// From `least` to `most`, both included.
    pub const fn new(least: T, most: T) -> Self {
        Self { least, most, above: false }
    }

    /// Greater than `least`, and at most `most`.
    pub const fn above(least: T, most: T) -> Self {
        Self { least, most, above: true }
    }

    /// The lower end.
    pub const fn least(&self) -> &T {
        &self.least
    }

    /// The greatest value.
    pub const fn most(&self) -> &T {
        &self.most
    }
}

impl<T: PartialOrd> Bounds<T> {
    /// Whether the value lies within.
    pub fn contains(&self, value: &T) -> bool {
        let least = if self.above { *value > self.least } else { *value >= self.least };
        least && *value <= self.most
    }
}

impl<T: PartialOrd + fmt::Display> Bounds<T> {
    /// The value, if it lies within.
    ///
    /// # Errors
    /// What was found and what is expected, at `place`.
    pub fn check<P>(&self, place: impl Into<P>, value: T) -> Result<T, Refusal<P>> {
        if self.contains(&value) {
            return Ok(value);
        }
        Err(Refusal::new(place, out_of_range(&value)).expected(self.to_string()))
    }
}

fn out_of_range(value: &impl fmt::Display) -> String {
    format!("{value} is out of range")
}

impl<T: PartialEq + fmt::Display> fmt::Display for Bounds<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { least, most, above } = self;
        match above {
            _ if least == most => write!(f, "{most}"),
            true => write!(f, "more than {least}, at most {most}"),
            false => write!(f, "{least} to {most}"),
        }
    }
}

impl<T: Serialize + PartialEq + fmt::Display> Bounds<T> {
    /// Writes the bounds of the property `key` to the schema of its table: to its description, and
    /// as keywords. JSON Schema has none for quantities in texts; theirs are in `x-bounds`, one
    /// entry for each quantity that the text may hold.
    ///
    /// # Panics
    /// If the table has no such property.
    pub fn describe(&self, schema: &mut Schema, key: &str) {
        let property = schema.get_mut("properties").and_then(|all| all.get_mut(key));
        let property = property.and_then(Value::as_object_mut);
        let property = property.unwrap_or_else(|| panic!("bounds of `{key}`, which is no key"));
        self.describe_value(property);
    }

    /// The same for each entry of the list `key`.
    ///
    /// # Panics
    /// If the table has no such property, or it is no list.
    pub fn describe_entries(&self, schema: &mut Schema, key: &str) {
        let property = schema.get_mut("properties").and_then(|all| all.get_mut(key));
        let property = property.and_then(Value::as_object_mut);
        let property = property.unwrap_or_else(|| panic!("bounds of `{key}`, which is no key"));
        let before = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let after = format!("{before} Each entry: {self}.");
        property.insert("description".into(), json!(after.trim_start()));
        let items = property.get_mut("items").and_then(Value::as_object_mut);
        self.describe_value(items.unwrap_or_else(|| panic!("`{key}` is no list")));
    }

    /// The same, of the schema of a value.
    pub fn describe_value(&self, schema: &mut Map<String, Value>) {
        let [least, most] = [&self.least, &self.most].map(|end| {
            serde_json::to_value(end).expect("a number or quantity can be written as JSON")
        });
        let minimum = if self.above { "exclusiveMinimum" } else { "minimum" };
        let is_array = schema.get("type").is_some_and(|types| has(types, "array"));
        match (is_array, least.is_number()) {
            (true, _) => schema.extend([("minItems".into(), least), ("maxItems".into(), most)]),
            (false, true) => {
                schema.remove("minimum");
                schema.extend([(minimum.into(), least), ("maximum".into(), most)]);
            }
            (false, false) => {
                let all = schema.entry("x-bounds").or_insert_with(|| json!([]));
                let all = all.as_array_mut().expect("only this function writes it");
                all.push(json!({ minimum: least, "maximum": most }));
            }
        }
        let range = if is_array { format!("{self} entries") } else { self.to_string() };
        let before = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let after = match before.rsplit_once("Range: ") {
            Some((text, ranges)) => {
                format!("{text}Range: {} or {range}.", ranges.trim_end_matches('.'))
            }
            None => format!("{before} Range: {range}."),
        };
        schema.insert("description".into(), json!(after.trim_start()));
    }
}

/// Whether a schema's `type` is or has that type.
fn has(types: &Value, name: &str) -> bool {
    types == name || types.as_array().is_some_and(|all| all.iter().any(|one| one == name))
}

/// A value of a key that may hold a `T`.
pub trait Holds<T> {
    /// The `T`, if it holds one.
    fn held(&self) -> Option<T>;

    /// The refusal of a value that is out of these bounds.
    fn refusal(value: &T, bounds: &Bounds<T>, place: Keys) -> Refusal
    where
        T: PartialEq + fmt::Display,
    {
        Refusal::new(place, out_of_range(value)).expected(bounds.to_string())
    }
}

impl<T: Copy> Holds<T> for T {
    fn held(&self) -> Option<T> {
        Some(*self)
    }
}

impl<T: Copy> Holds<T> for Option<T> {
    fn held(&self) -> Option<T> {
        *self
    }
}

/// An array holds as many entries as it has.
impl<T> Holds<usize> for Vec<T> {
    fn held(&self) -> Option<usize> {
        Some(self.len())
    }

    fn refusal(count: &usize, bounds: &Bounds<usize>, place: Keys) -> Refusal {
        entries(*count, bounds, place)
    }
}

/// The refusal of a list with too few or too many entries.
fn entries(count: usize, bounds: &Bounds<usize>, place: Keys) -> Refusal {
    Refusal::new(place, format!("{count} entries")).expected(format!("{bounds} entries"))
}

impl<T> Holds<usize> for Option<Vec<T>> {
    fn held(&self) -> Option<usize> {
        self.as_ref().map(Vec::len)
    }

    fn refusal(count: &usize, bounds: &Bounds<usize>, place: Keys) -> Refusal {
        entries(*count, bounds, place)
    }
}

/// A table whose keys have bounds. Made by [`bounds!`](crate::bounds!).
pub trait Bounded {
    /// Refuses every value that is out of its bounds. `at` is where the table stands.
    fn refuse(&self, at: &Keys, refusals: &mut Vec<Refusal>);

    /// Writes the bounds to the table's JSON Schema.
    fn describe(schema: &mut Schema)
    where
        Self: Sized;

    /// Checks every value.
    ///
    /// # Errors
    /// The first that is out of its bounds.
    fn check_bounds(&self) -> Result<(), Refusal> {
        self.out_of_bounds().into_iter().next().map_or(Ok(()), Err)
    }

    /// Everything that is out of its bounds, in the order of the table's keys.
    fn out_of_bounds(&self) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        self.refuse(&Keys::default(), &mut refusals);
        refusals
    }
}

impl<T: Bounded> Bounded for Option<T> {
    fn refuse(&self, at: &Keys, refusals: &mut Vec<Refusal>) {
        self.iter().for_each(|table| table.refuse(at, refusals));
    }
    fn describe(_: &mut Schema) {}
}

impl<T: Bounded> Bounded for Vec<T> {
    fn refuse(&self, at: &Keys, refusals: &mut Vec<Refusal>) {
        for (index, table) in self.iter().enumerate() {
            table.refuse(&at.below(&index.to_string()), refusals);
        }
    }
    fn describe(_: &mut Schema) {}
}

/// Refuses the value of one key of the table at `at`.
pub fn refuse_value<T, H>(bounds: &Bounds<T>, value: &H, key: &str, at: &Keys) -> Option<Refusal>
where
    T: PartialOrd + fmt::Display,
    H: Holds<T>,
{
    let held = value.held().filter(|held| !bounds.contains(held))?;
    Some(H::refusal(&held, bounds, at.below(key)))
}

/// A list, or none.
pub trait Entries<T> {
    /// What is in it.
    fn entries(&self) -> &[T];
}

impl<T> Entries<T> for Vec<T> {
    fn entries(&self) -> &[T] {
        self
    }
}

impl<T> Entries<T> for Option<Vec<T>> {
    fn entries(&self) -> &[T] {
        self.as_deref().unwrap_or_default()
    }
}

/// Refuses the entries of one list of the table at `at`.
pub fn refuse_entries<T, L>(bounds: &Bounds<T>, list: &L, key: &str, at: &Keys) -> Vec<Refusal>
where
    T: PartialOrd + fmt::Display,
    L: Entries<T>,
{
    let at = at.below(key);
    let wrong = list.entries().iter().enumerate().filter(|(_, entry)| !bounds.contains(entry));
    wrong
        .map(|(index, entry)| {
            let place = at.below(&index.to_string());
            Refusal::new(place, out_of_range(entry)).expected(bounds.to_string())
        })
        .collect()
}

/// Declares the bounds of a table's keys, which of its keys are tables with bounds of their own, and the bounds of
/// `each` entry of a list.
/// The table's schema gets them by `#[schemars(transform = bounds_of::<TYPE>)]`.
///
/// ```
/// use suiro_strict::{Bounded, Bounds, bounds, bounds_of};
///
/// #[derive(schemars::JsonSchema)]
/// #[schemars(transform = bounds_of::<Queue>)]
/// struct Queue {
///     flows: Option<u32>,
/// }
///
/// #[derive(schemars::JsonSchema)]
/// #[schemars(transform = bounds_of::<Link>)]
/// struct Link {
///     mtu: u16,
///     queue: Queue,
/// }
///
/// bounds! { Queue { flows: Bounds::new(1, 65_536) } }
/// bounds! { Link { mtu: Bounds::new(1280, 9000); tables: queue } }
///
/// let link = Link { mtu: 1500, queue: Queue { flows: Some(0) } };
/// let refusals = link.out_of_bounds();
/// assert_eq!(refusals[0].to_string(), "queue.flows: 0 is out of range\nexpected: 1 to 65536");
/// assert_eq!(schemars::schema_for!(Link).get("properties").unwrap()["mtu"]["minimum"], 1280);
/// ```
#[macro_export]
macro_rules! bounds {
    ($type:ty {
        $($key:ident: $bounds:expr),* $(,)?
        $(; tables: $($table:ident),+ $(,)?)?
        $(; each: $($list:ident: $entries:expr),+ $(,)?)?
    }) => {
        impl $crate::Bounded for $type {
            fn refuse(&self, at: &$crate::Keys, refusals: &mut Vec<$crate::Refusal>) {
                let _ = (at, &refusals);
                $(refusals.extend($crate::refuse_value(&$bounds, &self.$key, stringify!($key), at));)*
                $($(
                    $crate::Bounded::refuse(&self.$table, &at.below(stringify!($table)), refusals);
                )+)?
                $($(refusals.extend(
                    $crate::refuse_entries(&$entries, &self.$list, stringify!($list), at)
                );)+)?
            }
            fn describe(schema: &mut $crate::Schema) {
                let _ = &schema;
                $($bounds.describe(schema, stringify!($key));)*
                $($($entries.describe_entries(schema, stringify!($list));)+)?
            }
        }
    };
}

/// Writes the bounds of `T` to its JSON Schema.
pub fn bounds_of<T: Bounded>(schema: &mut Schema) {
    T::describe(schema);
}

//! Families of metrics and series: what they are about, and how both are computed of it.
//!
//! A family is a [`Family`] of one [`Subject`], in a file of its own, and a line in the list of
//! families of `catalogue`; nothing else knows it.

use std::collections::BTreeMap;

use crate::bins::Bins;
use crate::crowd;
use crate::instance::Instance;
use crate::metric::{Metric, Quantity};
use crate::timeline::Series;
use crate::view::View;

/// What a family is about: directions of links, players, streams.
pub(crate) trait Subject: 'static {
    /// One of them, as it is in the records.
    type One<'v>: 'v;

    /// The part of a name that distinguishes several, as documentation writes it: `.DIRECTION`; empty if names have no
    /// such part, or only where several took part.
    const PLACE: &'static str = "";

    /// True if several of them also have a mean, which bears the name of the only one.
    const HAS_MEAN: bool = false;

    /// All that took part; without any, a trial has none of the family's metrics.
    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Self::One<'v>)>;

    /// The instance of which a name has this between family and field.
    fn instance(path: &str) -> Instance {
        Instance::named(path)
    }

    /// False if there is nothing of it to draw.
    fn is_drawn(_: &Self::One<'_>) -> bool {
        true
    }
}

/// A metric and how it is computed.
pub(crate) struct Measure<S: Subject> {
    pub metric: Metric,
    pub of: for<'o, 'v> fn(&'o S::One<'v>) -> Option<f64>,
}

/// A quantity over time and how it is computed: one value per bin.
pub(crate) struct Curve<S: Subject> {
    pub quantity: Quantity,
    pub of: for<'o, 'v, 'b> fn(&'o S::One<'v>, &'b Bins) -> Vec<Option<f64>>,
}

/// The metrics and series of one subject, in the order of a report.
pub(crate) struct Family<S: Subject> {
    pub metrics: &'static [Measure<S>],
    pub series: &'static [Curve<S>],
}

/// A family, whatever its subject.
pub(crate) trait Registered: Sync {
    fn metrics(&self) -> Box<dyn Iterator<Item = &'static Metric>>;
    fn quantities(&self) -> Box<dyn Iterator<Item = &'static Quantity>>;
    /// As [`Subject::PLACE`].
    fn place(&self) -> &'static str;
    /// As [`Subject::instance`].
    fn instance(&self, path: &str) -> Instance;
    /// Those of one trial.
    fn group<'v>(&'static self, view: &'v View<'_>) -> Box<dyn Group + 'v>;
}

/// The members of a family in one trial.
pub(crate) trait Group {
    /// Adds their metrics, by name.
    fn summarise(&self, metrics: &mut BTreeMap<String, Option<f64>>);
    /// Adds their series.
    fn draw(&self, bins: &Bins, series: &mut Vec<Series>);
}

impl<S: Subject> Registered for Family<S> {
    fn metrics(&self) -> Box<dyn Iterator<Item = &'static Metric>> {
        Box::new(self.metrics.iter().map(|measure| &measure.metric))
    }

    fn quantities(&self) -> Box<dyn Iterator<Item = &'static Quantity>> {
        Box::new(self.series.iter().map(|curve| &curve.quantity))
    }

    fn place(&self) -> &'static str {
        S::PLACE
    }

    fn instance(&self, path: &str) -> Instance {
        S::instance(path)
    }

    fn group<'v>(&'static self, view: &'v View<'_>) -> Box<dyn Group + 'v> {
        Box::new(Members { family: self, all: S::instances(view) })
    }
}

struct Members<'v, S: Subject> {
    family: &'static Family<S>,
    all: Vec<(Instance, S::One<'v>)>,
}

impl<S: Subject> Group for Members<'_, S> {
    fn summarise(&self, metrics: &mut BTreeMap<String, Option<f64>>) {
        for Measure { metric, of } in self.family.metrics {
            let mut put = |instance: &Instance, value: Option<f64>| {
                // An empty sum is −0; adding 0 makes it 0.
                let value = value.filter(|value| value.is_finite()).map(|value| value + 0.0);
                metrics.insert(instance.name_of(metric.family, metric.field), value);
            };
            let each: Vec<Option<f64>> = self.all.iter().map(|(_, one)| of(one)).collect();
            if S::HAS_MEAN && each.len() > 1 {
                put(&Instance::only(), crowd::mean(&each));
            }
            for ((instance, _), value) in self.all.iter().zip(each) {
                put(instance, value);
            }
        }
    }

    fn draw(&self, bins: &Bins, series: &mut Vec<Series>) {
        let drawn = || self.all.iter().filter(|(_, one)| S::is_drawn(one));
        if S::HAS_MEAN && self.all.len() > crowd::DRAWN_MAX {
            for Curve { quantity, of } in self.family.series {
                let values = crowd::means(drawn().map(|(_, one)| of(one, bins)));
                series.push(of_quantity(quantity, Instance::mean(), values));
            }
            return;
        }
        for (instance, one) in drawn() {
            for Curve { quantity, of } in self.family.series {
                series.push(of_quantity(quantity, instance.clone(), of(one, bins)));
            }
        }
    }
}

fn of_quantity(
    quantity: &'static Quantity,
    instance: Instance,
    values: Vec<Option<f64>>,
) -> Series {
    let name = instance.name_of(quantity.family, quantity.field);
    let panel = quantity.panel.of_instance(&instance);
    Series { name, panel, quantity, instance, values }
}

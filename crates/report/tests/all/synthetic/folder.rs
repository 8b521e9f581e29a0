//! A whole results folder of synthetic trials.

use std::path::Path;

use suiro_analysis::Records;
use suiro_record::folder::write_outcome;
use suiro_record::table::Row;
use suiro_record::words::{CheckedQuantity, CheckedUnit, Direction, Privilege};
use suiro_record::{
    Axis, Cell, Check, EndpointOutcome, Folder, Lateness, LinkTotals, Machine, Manifest,
    PlannedTrial, SelfCheck, Trial, Writer,
};
use suiro_units::Seed;

use super::model::{Rate, Setup, run};

/// What fills a folder.
pub struct Shape {
    /// Congestion controls: one axis.
    pub tcp: Vec<&'static str>,
    /// Names of players, with their boldness: another.
    pub abr: Vec<(&'static str, f64)>,
    /// Queue lengths in bytes and the link's rate, named: a third.
    pub queue: Vec<(&'static str, i64, Rate)>,
    /// Names of these axes.
    pub names: [&'static str; 3],
    /// The study that the folder pretends to repeat.
    pub study: Option<&'static str>,
    /// Repetitions of each cell.
    pub repetitions: u32,
    /// Length of each trial.
    pub seconds: f64,
    /// True to leave the last trial out and to fail the one before.
    pub flawed: bool,
}

type Error = Box<dyn std::error::Error>;

/// Writes the folder.
pub fn write(dir: &Path, shape: &Shape) -> Result<(), Error> {
    std::fs::create_dir_all(dir)?;
    let folder = Folder::new(dir);
    let trials = plan(shape);
    let plan: Vec<PlannedTrial> = trials.iter().map(|(planned, _)| planned.clone()).collect();
    let all = plan.len();
    folder.write_manifest(&manifest(shape, plan))?;
    for (index, (planned, setup)) in trials.into_iter().enumerate() {
        let left = all - index;
        if shape.flawed && left == 1 {
            continue;
        }
        let at = folder.trial(&planned);
        std::fs::create_dir_all(&at)?;
        let records = run(setup, planned.seed);
        let failed = (shape.flawed && left == 2)
            .then(|| "the link was late: p99 1840 µs, at most 500 µs".to_owned());
        write_outcome(&at, &outcome(&planned, setup, &records, failed))?;
        table(&at, records.link)?;
        table(&at, records.tcp)?;
        table(&at, records.requests)?;
        table(&at, records.player)?;
    }
    Ok(())
}

fn table<R: Row>(dir: &Path, rows: Vec<R>) -> Result<(), Error> {
    let mut writer = Writer::create(dir)?;
    for row in rows {
        writer.push(row)?;
    }
    Ok(writer.close()?)
}

fn plan(shape: &Shape) -> Vec<(PlannedTrial, Setup)> {
    let mut plan = Vec::new();
    for tcp in &shape.tcp {
        for (abr, boldness) in &shape.abr {
            for (queue, queue_bytes, rate) in &shape.queue {
                for repetition in 1..=shape.repetitions {
                    let axes = [
                        (shape.names[0], *tcp, shape.tcp.len()),
                        (shape.names[1], *abr, shape.abr.len()),
                        (shape.names[2], *queue, shape.queue.len()),
                    ];
                    let used = axes.iter().filter(|(_, _, labels)| *labels > 1);
                    let cell: Cell = used
                        .map(|(name, label, _)| ((*name).to_owned(), (*label).into()))
                        .collect();
                    let folder = format!("trials/{tcp}-{abr}-{queue}/{repetition}");
                    let seed = Seed(1).derive(&folder);
                    let number = u32::try_from(plan.len() + 1).ok();
                    let setup = Setup {
                        tcp,
                        boldness: *boldness,
                        queue_bytes: *queue_bytes,
                        rate: *rate,
                        seconds: shape.seconds,
                    };
                    plan.push((PlannedTrial { cell, repetition, seed, folder, number }, setup));
                }
            }
        }
    }
    plan
}

fn manifest(shape: &Shape, plan: Vec<PlannedTrial>) -> Manifest {
    let axis = |name: &str, labels: Vec<&str>| Axis {
        name: name.into(),
        labels: labels.into_iter().map(Into::into).collect(),
    };
    let axes = vec![
        axis(shape.names[0], shape.tcp.clone()),
        axis(shape.names[1], shape.abr.iter().map(|(name, _)| *name).collect()),
        axis(shape.names[2], shape.queue.iter().map(|(name, ..)| *name).collect()),
    ];
    Manifest {
        suiro: env!("CARGO_PKG_VERSION").into(),
        scenario: "synthetic".into(),
        title: "Synthetic data: live DASH over a link whose rate falls and rises".into(),
        study: shape.study.map(Into::into),
        text: "# Synthetic data from a toy model, for trying the report. Nothing was measured.\n\
               [link]\nrate = \"8 Mbit/s\"  # then 1.5, then 4\ndelay = \"20 ms\"\n"
            .into(),
        command: vec!["cargo".into(), "run".into(), "--example".into(), "synthetic".into()],
        started: "2026-01-01T00:00:00Z".into(),
        seed: Seed(1),
        axes: axes.into_iter().filter(|axis| axis.labels.len() > 1).collect(),
        plan_trials: u32::try_from(plan.len()).ok(),
        plan,
        virtual_time: None,
        machine: Machine {
            name: String::new(),
            kernel: "none: synthetic".into(),
            system: "none: synthetic".into(),
            cpu: "none: synthetic".into(),
            privilege: Privilege::User,
            clock_source: "virtual time".into(),
            cores: 2,
            memory_bytes: 8 << 30,
            settings: [("net.ipv4.tcp_rmem".to_owned(), "4096 131072 6291456".to_owned())].into(),
        },
        versions: [("toy".to_owned(), "1".to_owned())].into(),
        self_checks: Default::default(),
    }
}

fn outcome(
    planned: &PlannedTrial,
    setup: Setup,
    records: &Records,
    failed: Option<String>,
) -> Trial {
    let endpoint = |name: &str, host: &str, kind: &str| EndpointOutcome {
        name: name.into(),
        host: host.into(),
        kind: kind.into(),
        exit_code: Some(0),
        signal: None,
        failure: None,
        log: format!("logs/{name}.log"),
        left_s: None,
        pauses: Vec::new(),
        lateness: None,
    };
    Trial {
        cell: planned.cell.clone(),
        repetition: planned.repetition,
        seed: planned.seed,
        valid: failed.is_none(),
        links: vec![
            totals(Direction::Down, records, failed.is_some()),
            totals(Direction::Up, records, false),
        ],
        standstills: None,
        link_rates: Vec::new(),
        cables: Vec::new(),
        tcp: Vec::new(),
        captures: Vec::new(),
        invalid_because: failed,
        only_late: false,
        attempts: Vec::new(),
        skipped: false,
        machine: None,
        virtual_time: None,
        started: "2026-01-01T00:00:01Z".into(),
        duration_s: setup.seconds,
        warm_up_s: 0.0,
        epoch_monotonic_ns: 0,
        self_checks: vec![self_check(Direction::Down, 8e6), self_check(Direction::Up, 1e9)],
        endpoints: vec![
            endpoint("origin", "server", "origin"),
            endpoint("viewer", "client", "player"),
        ],
        versions: Default::default(),
    }
}

fn totals(direction: Direction, records: &Records, late: bool) -> LinkTotals {
    let rows = || records.link.iter().filter(|row| row.direction == direction);
    let mut totals = LinkTotals {
        lateness: Lateness {
            p50_us: Some(14.0),
            p99_us: Some(if late { 1_840.0 } else { 92.0 }),
            max_us: Some(if late { 20_400.0 } else { 310.0 }),
        },
        cpu_cores: Some(0.03),
        ..LinkTotals::new("bottleneck", direction)
    };
    for row in rows() {
        totals.offered += 1;
        match row.cause {
            None => totals.delivered += 1,
            Some(cause) => *totals.dropped.entry(cause).or_default() += 1,
        }
    }
    totals
}

fn self_check(direction: Direction, rate_bps: f64) -> SelfCheck {
    let check = |what: CheckedQuantity, unit: CheckedUnit, asked, measured, slack: f64| Check {
        what,
        unit,
        asked: Some(asked),
        measured: Some(measured),
        at_least: Some(asked - slack),
        at_most: Some(asked + slack),
        ok: Some(true),
        note: None,
    };
    let checks = vec![
        check(
            CheckedQuantity::Rate,
            CheckedUnit::BitsPerSecond,
            rate_bps,
            rate_bps * 0.998,
            rate_bps * 0.02,
        ),
        check(CheckedQuantity::Delay, CheckedUnit::Milliseconds, 20.0, 20.04, 0.5),
        check(CheckedQuantity::Loss, CheckedUnit::Ratio, 0.0, 0.0, 0.0),
    ];
    SelfCheck { link: "bottleneck".into(), direction, attempt: 1, checks, ok: true }
}

//! `suiro export`: results folders for other programs.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::Signal;
use suiro_record::tables::MoqDataRow;
use suiro_record::words::Privilege;
use suiro_record::{
    Axis, Folder, Machine, Manifest, PlannedTrial, Reader, Summary, Text, TrialSummary, Writer,
};
use suiro_units::{Seed, Time};

use crate::common::{self, Done, Room};

suiro_record::table! {
    /// [`MoqDataRow`] of many trials, where the axis `rate` is a column.
    Many = "moq_data" {
        /// The axis.
        rate: Option<Text>,
        /// Of the trial.
        trial: Option<i64>,
        /// Of the trial.
        repetition: i64,
        /// Of the trial.
        valid: bool,
        /// Of the file.
        file: Option<Text>,
        /// As recorded.
        t_ns: Time,
        /// As recorded.
        endpoint: Text,
        /// As recorded.
        number: u64,
        /// As recorded.
        published_ns: i64,
        /// As recorded.
        bytes: u64,
    }
}

const QUEUES: [&str; 3] = ["10 kB", "1/2 %", ""];

/// Three queues and two rates with two repetitions; the trials of the last rate have no value of `rate`, and one is not valid.
fn plan() -> Vec<(PlannedTrial, bool)> {
    let mut plan = Vec::new();
    for repetition in 1..=2 {
        for queue in QUEUES {
            for rate in [Some(5), None] {
                let number = plan.len() as u32 + 1;
                let mut cell = suiro_record::Cell::new();
                cell.insert("queue".to_owned(), queue.into());
                cell.extend(rate.map(|rate| ("rate".to_owned(), rate.into())));
                let folder = format!("trials/{number}/{repetition}");
                let seed = Seed(number.into());
                let planned = PlannedTrial { cell, repetition, seed, folder, number: Some(number) };
                plan.push((planned, number != 4));
            }
        }
    }
    plan
}

/// The rows of a trial that an endpoint wrote.
fn recorded(trial: u32, endpoint: &str) -> Vec<MoqDataRow> {
    let row = |number| MoqDataRow {
        t_ns: Time::from_nanos(number * 10),
        endpoint: endpoint.into(),
        number,
        published_ns: -i64::from(trial),
        bytes: number + u64::from(trial),
    };
    (0..u64::from(trial) * 3).map(row).collect()
}

fn made(room: &Room) -> PathBuf {
    let dir = room.path("work").join("out");
    let folder = Folder::new(&dir);
    let axis = |name: &str, labels: Vec<String>| Axis { name: name.into(), labels };
    let axes =
        vec![axis("queue", QUEUES.map(str::to_owned).to_vec()), axis("rate", vec!["5".to_owned()])];
    let mut summary = Summary::default();
    for (planned, valid) in plan() {
        let PlannedTrial { cell, repetition, seed, .. } = planned.clone();
        let at = folder.trial(&planned);
        std::fs::create_dir_all(&at).unwrap();
        for endpoint in ["viewer1", "viewer2"] {
            let mut writer = Writer::create_of(&at, endpoint).unwrap();
            for row in recorded(planned.number.unwrap(), endpoint) {
                writer.push(row).unwrap();
            }
            writer.close().unwrap();
        }
        summary.trials.push(TrialSummary {
            cell,
            repetition,
            seed,
            valid,
            invalid_because: None,
            skipped: false,
            metrics: Default::default(),
        });
    }
    let plan: Vec<PlannedTrial> = plan().into_iter().map(|(planned, _)| planned).collect();
    folder.write_summary(&summary, &axes, &plan).unwrap();
    let machine = Machine {
        name: String::new(),
        kernel: String::new(),
        system: String::new(),
        cpu: String::new(),
        privilege: Privilege::User,
        clock_source: String::new(),
        cores: 1,
        memory_bytes: 0,
        settings: Default::default(),
    };
    let manifest = Manifest {
        suiro: env!("CARGO_PKG_VERSION").into(),
        scenario: "made".into(),
        title: "a test".into(),
        study: None,
        text: String::new(),
        command: Vec::new(),
        started: "2026-01-01T00:00:00Z".into(),
        seed: Seed(1),
        axes,
        plan_trials: None,
        plan,
        virtual_time: None,
        machine,
        versions: Default::default(),
        self_checks: Default::default(),
    };
    folder.write_manifest(&manifest).unwrap();
    dir
}

/// All files below a folder, by their paths from there.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in common::entries(&next) {
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// What a file of the dataset is to hold: the trials with this queue, but for some.
fn expected(queue: &str, without: &[u32]) -> Vec<Many> {
    let mut rows = Vec::new();
    for (planned, valid) in plan() {
        let number = planned.number.unwrap();
        if planned.cell["queue"] != queue || without.contains(&number) {
            continue;
        }
        for endpoint in ["viewer1", "viewer2"] {
            rows.extend(recorded(number, endpoint).into_iter().map(|row| Many {
                rate: planned.cell.get("rate").map(|rate| rate.to_string().into()),
                trial: Some(number.into()),
                repetition: planned.repetition.into(),
                valid,
                file: Some(endpoint.into()),
                t_ns: row.t_ns,
                endpoint: row.endpoint,
                number: row.number,
                published_ns: row.published_ns,
                bytes: row.bytes,
            }));
        }
    }
    rows
}

#[test]
fn the_tables_of_all_trials_are_in_few_files() {
    let room = Room::new();
    let dir = made(&room);
    let export = ["export", "parquet", "out", "--by", "queue", "--out", "set"];
    room.run(&export).exits(0).says(&["set: 468 rows in 3 files"]);
    let set = room.path("work").join("set");
    let folders = ["queue=1%2F2 %25", "queue=10 kB", "queue=__HIVE_DEFAULT_PARTITION__"];
    assert_eq!(files(&set), folders.map(|it| format!("moq_data/{it}/part-0.parquet")));
    for (folder, queue) in folders.iter().zip(["1/2 %", "10 kB", ""]) {
        let part = set.join("moq_data").join(folder).join("part-0.parquet");
        assert_eq!(Reader::read_file::<Many>(&part).unwrap(), expected(queue, &[]), "{queue}");
    }
    // With all axes as folders.
    let all = ["export", "parquet", "out", "--out", "all"];
    room.run(&all).exits(0).says(&["468 rows in 6 files"]);
    let names = files(&room.path("work").join("all"));
    assert_eq!(names[2], "moq_data/queue=10 kB/rate=5/part-0.parquet");
    assert_eq!(names[3], "moq_data/queue=10 kB/rate=__HIVE_DEFAULT_PARTITION__/part-0.parquet");
    room.run(&["export", "parquet", "out", "--out", "one", "--by", "", "--cell", "queue=10 kB"])
        .exits(0)
        .says(&["one: 108 rows in 1 files"]);

    // What is there is kept, and what is typed wrong is said.
    room.run(&export).exits(2).says(&["set is not empty", "hint"]);
    let other =
        |words: &[&str]| room.run(&[&["export", "parquet", "out", "--out", "x"], words].concat());
    other(&["--by", "tcp"]).exits(2).says(&["the axes are: queue, rate"]);
    other(&["--table", "tpc"]).exits(2).says(&["it is one of link"]);
    other(&["--table", "tcp"]).exits(2).says(&["no trial has rows"]);
    assert_eq!(common::entries(&room.path("work")).len(), 4, "nothing half is left");

    // A trial that was not run, a file that is damaged, and one that a stranger put there.
    let mut summary = Folder::new(&dir).summary().unwrap();
    summary.trials.pop();
    std::fs::write(dir.join("summary.json"), serde_json::to_string(&summary).unwrap()).unwrap();
    let damaged = dir.join("trials/1/1/moq_data.viewer1.parquet");
    let whole = std::fs::read(&damaged).unwrap();
    std::fs::write(&damaged, &whole[..whole.len() - 9]).unwrap();
    let linked = dir.join("trials/1/1/moq_data.viewer2.parquet");
    std::fs::remove_file(&linked).unwrap();
    std::os::unix::fs::symlink(dir.join("trials/7/2/moq_data.viewer2.parquet"), &linked).unwrap();
    let less = ["export", "parquet", "out", "--by", "queue", "--out", "less"];
    room.run(&less).exits(1).says(&[
        "left out: out/trials/1/1/moq_data.viewer1.parquet",
        "left out: out/trials/1/1/moq_data.viewer2.parquet",
        "2 files of the results folder could not be read",
        "1 trials of the plan are not in the summary",
    ]);
    let less = room.path("work").join("less/moq_data");
    let part = |folder: &str| less.join(folder).join("part-0.parquet");
    assert_eq!(Reader::read_file::<Many>(&part(folders[1])).unwrap(), expected("10 kB", &[1]));
    assert_eq!(Reader::read_file::<Many>(&part(folders[2])).unwrap(), expected("", &[12]));
    assert!(room.strays().is_empty(), "{:?}", room.strays());
}

#[test]
fn csv_has_the_rows_of_labels_that_are_numbers() {
    let room = Room::new();
    made(&room);
    let csv = room.run(&["export", "csv", "out", "--cell", "rate=5"]).exits(0).stdout;
    assert_eq!(csv.lines().count(), 1 + 6, "{csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with("10 kB,5,1,1,true"), "{csv}");
    let csv = ["export", "csv", "out", "--table", "moq_data", "--cell", "rate=5#1"];
    let rows = room.run(&csv).exits(0).stdout;
    assert_eq!(rows.lines().count(), 1 + 2 * 3 * (1 + 3 + 5));
    // None of these trials has ended.
    assert!(rows.starts_with("queue,rate,repetition,valid,"), "{rows}");
    assert!(rows.lines().skip(1).all(|row| row.contains(",5,1,false,")), "{rows}");
}

/// A baseline has the summary of trials that are elsewhere.
#[test]
fn a_summary_without_its_trials_is_not_made_again() {
    let room = Room::new();
    let dir = made(&room);
    let summary = std::fs::read_to_string(dir.join("summary.json")).unwrap();
    room.run(&["report", "out"]).exits(2).says(&[
        "out has only the summary of a run: its trials are not here",
        "hint: run suiro report where they are",
    ]);
    assert_eq!(std::fs::read_to_string(dir.join("summary.json")).unwrap(), summary);
    room.run(&["findings", "out"]).exits(2).says(&["out has no findings.json\nhint: suiro report"]);
}

/// An export that Ctrl-C ends once it has begun to write leaves nothing, and reports that.
#[test]
fn an_interrupted_export_leaves_nothing_half() {
    let room = Room::new();
    let dir = made(&room);
    let mut writer = Writer::create_of(&dir.join("trials/1/1"), "many").unwrap();
    for number in 0..300_000 {
        let row = MoqDataRow {
            t_ns: Time::from_nanos(number),
            endpoint: "many".into(),
            number,
            published_ns: 0,
            bytes: number,
        };
        writer.push(row).unwrap();
    }
    writer.close().unwrap();
    let work = room.path("work");
    for (command, says) in [
        ("csv out --table moq_data --out moq.csv", "interrupted: nothing is left half written"),
        ("parquet out --out set", "interrupted: nothing was exported"),
    ] {
        let words: Vec<&str> = ["export"].into_iter().chain(command.split(' ')).collect();
        let mut command = room.suiro(&words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        common::eventually(|| common::entries(&work).len() > 1, || format!("{words:?} begins"));
        common::signal(&child, Signal::INT);
        Done::wait(child).exits(1).says(&[says]);
        assert_eq!(common::entries(&work), [work.join("out")], "{words:?}");
        // The same command makes all of it.
        room.run(&words).exits(0);
        let made = work.join(words[words.len() - 1]);
        assert_eq!(common::entries(&work).len(), 2);
        if made.is_dir() { std::fs::remove_dir_all(made) } else { std::fs::remove_file(made) }
            .unwrap();
    }
}

/// Commands that need the summary name the command that writes it.
#[test]
fn a_folder_without_a_summary_is_refused_with_the_remedy() {
    let room = Room::new();
    std::fs::remove_file(made(&room).join("summary.json")).unwrap();
    let remedy = ["out has no summary.json\nhint: suiro report out writes it"];
    room.run(&["export", "csv", "out"]).exits(2).says(&remedy);
    room.run(&["diff", "out", "out"]).exits(2).says(&remedy);
    room.run(&["what-if", "out", "--set", "seed=2"]).exits(2).says(&remedy);
    let prove = room.run(&["why", "out", "--prove"]).exits(2);
    prove.says(&["hint: suiro run … --virtual makes results that can be proved"]);
}

//! The reference in `docs/`, generated from the code that it describes. The tests fail when it is
//! stale; `make generate` writes it again.

mod keys;

use std::fmt::Write;

use clap::CommandFactory;
use suiro_record::Table;
use suiro_record::table::{Column, Kind};
use suiro_record::tables::TABLES;

/// Every column of every table.
fn records() -> String {
    let mut text = String::from(
        "# Records\n\nThe tables of a trial's folder: Parquet, one row group per 65,536 rows, \
         Snappy. Generated from `crates/record/src/tables/`.\n\nAn integer is a 64-bit signed \
         one, a real a double. `t_ns` counts nanoseconds from the trial's start on the monotonic \
         clock that all hosts of the lab share. A table that several processes write is several \
         files, `TABLE.NAME.parquet`.\n",
    );
    for one in TABLES {
        table(&mut text, one);
    }
    text
}

fn table(text: &mut String, Table { name, doc, columns }: &Table) {
    let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut put = |line: String| writeln!(text, "{line}").expect("a string takes all");
    put(format!("\n## `{name}`\n\n{doc}\n\n| column | type | meaning |\n|---|---|---|"));
    for Column { name, kind, nullable, doc } in *columns {
        let words = kind;
        let kind = match kind {
            Kind::Integer | Kind::Natural => "integer",
            Kind::Real => "real",
            Kind::Boolean => "boolean",
            Kind::Text | Kind::Word(_) => "text",
        };
        let null = if *nullable { " or null" } else { "" };
        let doc = format!("{}{}", doc.trim(), listed(*words));
        put(format!("| `{name}` | {kind}{null} | {} |", doc.replace('|', "\\|")));
    }
}

/// The words that a column can hold, and what they mean.
fn listed(kind: Kind) -> String {
    let Kind::Word(words) = kind else { return String::new() };
    let each = |(word, doc): &(&str, &str)| {
        let doc = doc.trim().trim_end_matches('.');
        format!("<br>`{word}`: {doc}")
    };
    words.iter().map(each).collect()
}

/// Columns of the help, in a terminal that has as many.
const WIDTH: usize = 100;

/// The command line, as `--help` prints it.
fn commands() -> String {
    let mut text = String::from(
        "# Command line\n\nGenerated from `crates/suiro/src/cli.rs` and `args.rs`. Exit codes: 0 done; 1 a trial \
         failed or is not valid, or a check does not hold; 2 the command line or the scenario is \
         wrong; 3 all trials are valid, but a limit (`[limits]`, `--limit`) was not kept.\n",
    );
    let mut root = crate::cli::Cli::command().term_width(WIDTH);
    root.build();
    document(&mut text, "suiro", &mut root);
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A command and those below it.
fn document(text: &mut String, path: &str, command: &mut clap::Command) {
    let help = command.render_long_help();
    write!(text, "\n## `{path}`\n\n```text\n{help}```\n").expect("a string takes all");
    let told = |below: &&mut clap::Command| !below.is_hide_set() && below.get_name() != "help";
    for below in command.get_subcommands_mut().filter(told) {
        let path = format!("{path} {}", below.get_name());
        document(text, &path, below);
    }
}

/// The version and the names of the tables, for Python and its type checkers.
fn names() -> String {
    let each = TABLES.iter().map(|table| format!("    \"{}\",\n", table.name)).collect::<String>();
    format!(
        "\"\"\"Version and tables of the program. Generated: make generate.\"\"\"\n\n\
         from typing import Literal\n\nVERSION = \"{}\"\n\nTableName = Literal[\n{each}]\n\n\
         TABLES: tuple[str, ...] = (\n{each})\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn check(file: &str, fresh: &str) {
    let path = format!("../../{file}");
    if std::env::var_os("SUIRO_REGENERATE").is_some() {
        std::fs::write(&path, fresh).expect("it can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == fresh, "{file} is stale\nhint: make generate");
}

#[test]
fn records_are_documented() {
    check("docs/records.md", &records());
}

#[test]
fn commands_are_documented() {
    check("docs/commands.md", &commands());
}

#[test]
fn keys_of_scenarios_are_documented() {
    check("docs/scenarios.md", &keys::keys(&suiro_scenario::schema()));
}

#[test]
fn tables_have_names_in_python() {
    check("python/suiro/_names.py", &names());
}

/// A line of an example that the terminal's width breaks is no longer a command.
#[test]
fn no_line_of_an_example_is_wrapped() {
    fn check(path: &str, command: &clap::Command) -> usize {
        let helps = [command.get_after_help(), command.get_after_long_help()];
        let mut examples = 0;
        for help in helps.into_iter().flatten().map(ToString::to_string) {
            examples += help.lines().filter(|line| line.starts_with("  suiro ")).count();
            let is_long = |line: &&str| line.starts_with(' ') && line.chars().count() > WIDTH;
            let long = help.lines().find(is_long);
            assert!(long.is_none(), "{path}: {} has more than {WIDTH} columns", long.unwrap());
        }
        let below = command.get_subcommands();
        examples + below.map(|it| check(&format!("{path} {}", it.get_name()), it)).sum::<usize>()
    }
    let examples = check("suiro", &crate::cli::Cli::command());
    assert!(examples > 60, "{examples} examples");
}

/// The variants of an enumeration, as serde names them.
fn variants<T: serde::de::DeserializeOwned + std::fmt::Debug>() -> Vec<String> {
    let told = serde_json::from_str::<T>("\"\"").unwrap_err().to_string();
    told.split('`').skip(1).step_by(2).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn lists_of_algorithms_and_players_are_whole() {
    let root = "../..";
    let line = |file: &str, with: &str| {
        let text = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
        let line = text.lines().find(|line| line.contains(with)).map(str::to_lowercase);
        line.unwrap_or_else(|| panic!("{file} has no `{with}`")).replace("lol+", "lolp")
    };
    let algorithms = variants::<suiro_abr::Algorithm>();
    let players = variants::<suiro_scenario::Program>();
    assert!(algorithms.len() > 5 && players.len() > 6, "{algorithms:?} {players:?}");
    for (file, with, names) in [
        ("README.md", "ABR by ", &algorithms),
        ("scenarios/quick.toml", "abr = ", &algorithms),
        ("scenarios/quick.toml", "player = ", &players),
    ] {
        let line = line(file, with);
        let words: Vec<&str> = line.split([' ', ',', ';', '#']).collect();
        for name in names {
            assert!(words.contains(&name.as_str()), "{file}: `{with}` has no {name}: {line}");
        }
    }
}

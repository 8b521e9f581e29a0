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

/// The command line, as `--help` prints it.
fn commands() -> String {
    let mut text = String::from(
        "# Command line\n\nGenerated from `crates/suiro/src/cli.rs` and `args.rs`. Exit codes: 0 done; 1 a trial \
         failed or is not valid, or a check does not hold; 2 the command line or the scenario is \
         wrong; 3 all trials are valid, but a limit (`[limits]`, `--limit`) was not kept.\n",
    );
    let mut root = crate::cli::Cli::command().term_width(100);
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
    let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
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

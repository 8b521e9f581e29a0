//! How much of what `suiro why` says depends on each number of its rules.

use std::path::Path;

use suiro_analysis::why::{RuleChange, Rules};
use suiro_record::Folder;

use super::cases::Case;
use super::judge::{self, Verdict};
use super::{ABREAST, run_case};
use crate::abreast::abreast;

/// Verdicts on one case: with the usual numbers, then with each number changed one way and the other.
type Row = Vec<Verdict>;

/// Judges these cases again and again, and prints how many verdicts change. Returns how many could not be judged.
pub fn run(seeds: &[u64], folder: &Path) -> usize {
    let rules = variants();
    let all = abreast(ABREAST, seeds, |seed| {
        let row = verdicts(&Case::of(*seed), folder, &rules);
        if let Err(problem) = &row {
            println!("{seed} was not judged: {problem}");
        }
        row
    });
    let rows: Vec<&Row> = all.iter().flatten().collect();
    print(&rows);
    all.len() - rows.len()
}

/// The usual rules, and each number changed one way and the other.
fn variants() -> Vec<Rules> {
    let usual = Rules::default();
    let each = Rules::NAMES.iter().flat_map(|name| {
        [RuleChange::Less, RuleChange::More].map(|change| usual.with(name, change))
    });
    std::iter::once(usual).chain(each.map(|it| it.expect("the name is one of the list"))).collect()
}

fn verdicts(case: &Case, folder: &Path, rules: &[Rules]) -> Result<Row, String> {
    let out = folder.join(format!("case-{:03}", case.seed));
    run_case(case, &out, "")?;
    let folder = Folder::new(&out);
    let manifest = folder.manifest().map_err(|error| error.to_string())?;
    let planned = manifest.plan.first().ok_or("it has no trial")?;
    let (trial, records) = suiro_report::records_of(&folder, planned)?;
    let judged = |rules: &Rules| {
        let why = suiro_analysis::explain_by(*rules, &trial, &records);
        judge::judge(case, &judge::of(&why), &vec![true; case.faults.len()]).0
    };
    Ok(rules.iter().map(judged).collect())
}

fn print(rows: &[&Row]) {
    let count = |at: usize, verdict: Verdict| rows.iter().filter(|row| row[at] == verdict).count();
    let told = |at: usize| {
        let changed = rows.iter().filter(|row| row[at] != row[0]).count();
        let [right, wrong] = [Verdict::Right, Verdict::False].map(|verdict| count(at, verdict));
        format!("{right} right, {wrong} false, {changed} changed")
    };
    println!("{} cases: {}", rows.len(), told(0));
    println!("{:18} {:36} more", "number", "less");
    for (place, name) in Rules::NAMES.iter().enumerate() {
        println!("{name:18} {:36} {}", told(1 + 2 * place), told(2 + 2 * place));
    }
}

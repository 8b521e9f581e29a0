//! A run of so many trials that the page shows maps, and each trial has a page of its own.

use std::path::Path;

use serde_json::Value;
use suiro_record::{Folder, Manifest};
use suiro_report::{MANY, build, own_page_of};

use crate::synthetic::{folder, folder::Shape, model};

/// A folder of `MANY` trials: copies of two, under other cells.
fn made() -> (tempfile::TempDir, Folder) {
    let dir = tempfile::tempdir().unwrap();
    let shape = Shape {
        tcp: vec!["reno", "cubic"],
        abr: vec![("throughput", 0.85)],
        queue: vec![("deep", 100_000, model::falls_and_rises)],
        names: ["tcp", "abr", "queue"],
        study: None,
        repetitions: 1,
        seconds: 0.5,
        flawed: false,
    };
    folder::write(dir.path(), &shape).unwrap();
    let folder = Folder::new(dir.path());
    let mut manifest: Manifest = folder.manifest().unwrap();
    let first = manifest.plan.clone();
    manifest.plan.clear();
    for number in 0..MANY {
        let mut planned = first[number % 2].clone();
        planned.cell.insert("place".into(), number.to_string().into());
        planned.folder = format!("trials/place={number}/1");
        let to = folder.trial(&planned);
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(folder.trial(&first[number % 2])).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                std::fs::hard_link(file.path(), to.join(file.file_name())).unwrap();
            }
        }
        manifest.plan.push(planned);
    }
    manifest.plan_trials = u32::try_from(MANY).ok();
    folder.write_manifest(&manifest).unwrap();
    (dir, folder)
}

/// Numbers to twelve digits: reading one from JSON may change the last.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), rounded(value))).collect()
        }
        Value::Array(entries) => entries.iter().map(rounded).collect(),
        Value::Number(number) => {
            number.as_f64().map_or(Value::Null, |it| format!("{it:.11e}").into())
        }
        other => other.clone(),
    }
}

fn data(page: &Path) -> Value {
    let html = std::fs::read_to_string(page).unwrap();
    let (_, rest) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn many_trials_have_maps_and_pages_of_their_own() {
    let (_dir, folder) = made();
    let first = build(&folder).unwrap();
    let page = data(&folder.report());
    let columns = &page["many"];
    assert!(page["cells"].as_array().unwrap().is_empty(), "they are columns");
    assert_eq!(columns["cells"].as_array().unwrap().len(), MANY);
    assert_eq!(columns["folders"][7], "trials/place=7/1");
    assert_eq!(columns["own_pages"].as_array().unwrap().len(), MANY);
    assert_eq!(columns["exceptions"], Value::Array(Vec::new()), "all are valid");
    let metrics = page["metrics"].as_array().unwrap();
    assert!(metrics.iter().all(|metric| metric["main"] == true) && metrics.len() > 2);
    let of_seven = metrics.iter().zip(columns["metrics"].as_array().unwrap());
    for (metric, column) in of_seven {
        let measured = first.summary.trials[7].metrics.get(metric["name"].as_str().unwrap());
        let shown = column["mean"][7].as_f64();
        let near = |(a, b): (f64, f64)| (a - b).abs() <= 1e-4 * a.abs();
        assert_eq!(measured.copied().flatten().is_some(), shown.is_some(), "{metric}");
        assert!(measured.copied().flatten().zip(shown).is_none_or(near), "{metric}");
        assert_eq!(column["n"], Value::Array(Vec::new()), "each cell has one trial");
    }
    // Two directions, each with the same checks in every trial.
    let checks = columns["totals"]["checks_passed"].as_u64().unwrap();
    assert!(checks > 0 && checks.is_multiple_of(MANY as u64), "{checks}");
    assert!(columns["totals"]["offered"].as_u64().unwrap() > 0);
    assert!(first.report_bytes < 70_000 + 300 * MANY as u64, "{} bytes", first.report_bytes);

    let own = data(&folder.root().join("trials/place=7/1/report.html"));
    assert_eq!(own["trials"].as_array().unwrap().len(), 1);
    assert_eq!(own["trials"][0]["folder"], "trials/place=7/1");
    assert!(!own["series"].as_array().unwrap().is_empty(), "it has the figures");
    assert!(own["many"].is_null());

    // Once more, from what was kept: the same figures, without reading a table.
    let before = rounded(&serde_json::to_value(&first.summary).unwrap());
    let table = folder.root().join("trials/place=7/1/link.parquet");
    let bytes = std::fs::metadata(&table).unwrap().len();
    std::fs::remove_file(&table).unwrap();
    std::fs::write(&table, vec![0; usize::try_from(bytes).unwrap()]).unwrap();
    let again = build(&folder).unwrap();
    assert!(rounded(&serde_json::to_value(&again.summary).unwrap()) == before);
    // A table of another size is read, and found damaged.
    std::fs::write(&table, "no table").unwrap();
    let third = build(&folder).unwrap();
    assert!(!third.summary.trials[7].valid);
    let why = third.summary.trials[7].invalid_because.as_deref().unwrap();
    assert!(why.contains("link.parquet"), "{why}");
    let exceptions = data(&folder.report())["many"]["exceptions"].clone();
    assert_eq!(exceptions[0]["trial"], 7);
    assert_eq!(exceptions[0]["invalid_because"], why);

    // One page again, on demand.
    let file = folder.root().join("trials/place=8/1/report.html");
    std::fs::remove_file(&file).unwrap();
    let planned = folder.manifest().unwrap().plan.swap_remove(8);
    assert_eq!(own_page_of(&folder, &planned).unwrap(), file);
    assert!(!data(&file)["series"].as_array().unwrap().is_empty(), "it has the figures");
}

//! Every target on its seeds, whole and damaged, and on the inputs that libfuzzer found.

use std::path::{Path, PathBuf};

use suiro_fuzz::TARGETS;
use suiro_units::{Random, Seed};

/// Damaged copies of each seed.
const COPIES: u32 = 2000;
/// Fewer inputs reach little of any target.
const INPUTS_MIN: usize = 5;
/// The seed of the damage; another value finds other damage.
const SEED: Seed = Seed(1);

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// What a fuzzer does first: a flipped bit, a changed byte, a cut, a repeated piece; several at once.
fn damage(whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=random.below(4) {
        let length = bytes.len() as u64;
        if length == 0 {
            break;
        }
        let at = random.below(length) as usize;
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next_u64() as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.remove(at)),
            _ => {
                let end = at + random.below(length - at as u64 + 1) as usize;
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

#[test]
fn every_target_returns_from_its_seeds_and_from_damaged_ones() {
    let seeds = Path::new("seeds");
    for (name, target) in TARGETS {
        let mut random = SEED.derive(name).random();
        let files = files(&seeds.join(name));
        assert!(!files.is_empty(), "{name} has no seeds");
        for file in files {
            let whole = std::fs::read(&file).unwrap();
            target(&whole);
            for copy in 0..COPIES {
                let bytes = damage(&whole, &mut random);
                let run = std::panic::AssertUnwindSafe(|| target(&bytes));
                if std::panic::catch_unwind(run).is_err() {
                    panic!(
                        "{name} panics on damaged copy {copy} of {}, seed {SEED}:\n{}",
                        file.display(),
                        bytes.escape_ascii()
                    );
                }
            }
        }
    }
}

/// `corpus/` has for each target some of the smallest set of inputs that reach all that libfuzzer reached: the largest of at
/// most 1 KiB (4 KiB where a file of ours is larger), and those that ended the target.
#[test]
fn every_target_returns_from_what_libfuzzer_found() {
    let corpus = Path::new("corpus");
    for (name, target) in TARGETS {
        let files = files(&corpus.join(name));
        assert!(files.len() >= INPUTS_MIN, "{name} has only {} inputs", files.len());
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            if std::panic::catch_unwind(|| target(&bytes)).is_err() {
                panic!("{name} panics on {}", file.display());
            }
        }
    }
}

#[test]
fn each_target_is_a_program_of_libfuzzer() {
    let folder = Path::new("libfuzzer");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let mut programs: Vec<_> = files(&folder.join("fuzz_targets"))
        .iter()
        .map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    programs.sort();
    let mut names: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.sort();
    assert_eq!(programs, names);
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{name} is not in Cargo.toml");
        let text = std::fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(text.contains(&format!("suiro_fuzz::{name}(data)")), "{name}: {text}");
    }
}

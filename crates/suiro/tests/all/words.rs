//! The hand-written documents, those generated from the sources, and the comments of the code are plain technical English:
//! sentences of at most 40 words, and none of the words and turns that readers stumbled over.

use std::path::{Path, PathBuf};

const WORDS_MAX: usize = 40;

/// This file.
const THIS: &str = "crates/suiro/tests/all/words.rs";

/// What is not written, and what is written instead. Matched on whole words, in lower case.
const INSTEAD: &[(&str, &str)] = &[
    ("processor", "CPU or core"),
    ("processors", "CPUs or cores"),
    ("picture", "frame, or image"),
    ("pictures", "frames, or images"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("beside", "alongside, next to, compared with, competing with, during"),
    ("chance", "randomness, random"),
    ("stood still", "stalled"),
    ("stands still", "is stalled"),
    ("stand still", "stall"),
    ("standing still", "stalled, stalls"),
    ("two hands", "two threads"),
    ("other hand", "other thread"),
    ("by webrtc", "over WebRTC"),
    ("by quic", "over QUIC"),
    ("by tcp", "over TCP"),
    ("by udp", "over UDP"),
    ("by rtp", "over RTP"),
    ("by dash", "over DASH"),
    ("by hls", "over HLS"),
    ("by whip", "over WHIP"),
    ("by whep", "over WHEP"),
    ("by http", "over HTTP"),
    ("each way", "in each direction"),
    ("both ways", "in both directions"),
    ("two ways", "two directions"),
    ("ways", "directions, paths"),
    ("tells", "reports, prints, records"),
    ("is told", "receives, is configured"),
    ("are told", "receive"),
    ("says so", "reports that"),
    ("say so", "report that"),
    ("lacks", "does not have, is missing"),
    ("lacking", "missing"),
    ("refused whole", "rejected"),
    ("repeats a study", "reproduces a study"),
    ("repeat a study", "reproduce a study"),
    ("repeats the study", "reproduces the study"),
    ("repeats study", "reproduces study"),
    ("is not so", "is not met"),
    ("trial of root", "trial run as root"),
    ("is for root", "needs root"),
];

/// What no document says as long as the package is not published.
const UNPUBLISHED: &[&str] = &["pip install suiro", "pip install 'suiro", "pip install \"suiro"];

/// Where these words are right: a codec's own terms, and programs and protocols that do something.
const ALLOWED: &[&str] = &[
    "picture parameter set",
    "picture header",
    "group or picture",
    "picture loss indication",
    "group of pictures",
    "groups of pictures",
    "idr picture",
    "an i picture",
    "lost by udp or tcp",
    "utilisation by webrtc",
    "sent by quic",
    "--by tcp",
];

/// A sentence of a document or a comment that does not read well, and why.
#[derive(Debug, PartialEq)]
struct Fault {
    line: usize,
    why: String,
}

/// A piece of text that sentences do not cross: a paragraph, a point of a list, a cell of a table.
struct Block {
    line: usize,
    text: String,
    prose: bool,
}

/// The blocks of a Markdown document. Of fenced code only the comments of shell scripts and TOML are read.
fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut fenced, mut open) = (false, false);
    for (number, line) in document.lines().enumerate() {
        let (line_number, text) = (number + 1, line.trim());
        if text.starts_with("```") {
            fenced = !fenced;
            open = false;
        } else if fenced {
            let comment =
                text.split_once("# ").filter(|(code, _)| code.is_empty() || code.ends_with(' '));
            if let Some((_, comment)) = comment {
                blocks.push(Block { line: line_number, text: comment.to_owned(), prose: false });
            }
        } else if text.is_empty() {
            open = false;
        } else if text.starts_with('|') {
            let cells = text.split('|').filter(|cell| !cell.trim().is_empty());
            let block = |cell: &str| Block {
                line: line_number,
                text: cell.trim().to_owned(),
                prose: false,
            };
            blocks.extend(cells.flat_map(|cell| cell.split("<br>")).map(block));
            open = false;
        } else {
            let heading = text.starts_with('#');
            let numbered = text.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
            let starts = heading || numbered || text.starts_with("- ") || text.starts_with("![");
            match blocks.last_mut() {
                Some(last) if open && !starts => last.text.extend([" ", text]),
                _ => {
                    let text = text.trim_start_matches(['#', '-', ' ']).to_owned();
                    blocks.push(Block { line: line_number, text, prose: !heading });
                }
            }
            open = !heading;
        }
    }
    blocks
}

/// The text of a TOML file: its comments, paragraph by paragraph, and the sentences in its strings.
fn blocks_of_toml(file: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in file.lines().enumerate() {
        let alone = line.trim_start().strip_prefix("# ");
        // A comment after a value; `#` may also be in a string.
        let after =
            || line.rsplit_once(" # ").filter(|(value, _)| value.matches('"').count() % 2 == 0);
        match (alone, found.last_mut()) {
            (Some(text), Some(last)) if open => last.text.extend([" ", text]),
            _ => {
                let text = alone.or_else(|| after().map(|(_, comment)| comment));
                let block =
                    |text: &str| Block { line: number + 1, text: text.to_owned(), prose: false };
                found.extend(text.map(block));
            }
        }
        open = alone.is_some();
    }
    let table: toml::Table = file.parse().expect("a test of its own checks the file");
    let mut strings = Vec::new();
    strings_of(&toml::Value::Table(table), &mut strings);
    let line_of = |text: &str| {
        let begins = text.lines().next().unwrap_or_default();
        file.lines().position(|line| line.contains(begins)).map_or(1, |at| at + 1)
    };
    let block =
        |text: String| Block { line: line_of(&text), text: text.replace('\n', " "), prose: true };
    found.extend(strings.into_iter().map(block));
    found
}

/// Keys of formulas and commands.
const NO_TEXT: &[&str] = &["holds", "given", "command"];

/// The strings in a value that are several words; a file of settings inside of one is not.
fn strings_of(value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::String(text)
            if text.trim().contains(char::is_whitespace) && !text.contains("\n[") =>
        {
            found.push(text.trim().to_owned());
        }
        toml::Value::Array(values) => values.iter().for_each(|value| strings_of(value, found)),
        toml::Value::Table(table) => {
            let texts = table.iter().filter(|(key, _)| !NO_TEXT.contains(&key.as_str()));
            texts.for_each(|(_, value)| strings_of(value, found));
        }
        _ => {}
    }
}

/// The paragraphs of a notebook.
fn blocks_of_notebook(file: &str) -> Vec<Block> {
    let notebook: serde_json::Value = serde_json::from_str(file).expect("a notebook is JSON");
    let cells = notebook["cells"].as_array().expect("a notebook has cells");
    let prose = cells.iter().filter(|cell| cell["cell_type"] == "markdown");
    let text = |cell: &serde_json::Value| match &cell["source"] {
        serde_json::Value::Array(lines) => lines.iter().filter_map(|line| line.as_str()).collect(),
        text => text.as_str().unwrap_or_default().to_owned(),
    };
    prose.flat_map(|cell| blocks(&text(cell))).collect()
}

/// Folders of code.
const CODE: &[&str] = &["crates", "fuzz", "python", "scripts", "web"];

/// Folders below these that are not written by hand, or hold inputs of tests.
const NOT_WRITTEN: &[&str] = &[
    "assets",
    "broken",
    "corpus",
    "dist",
    "generated",
    "node_modules",
    "seeds",
    "snapshots",
    "target",
];

/// What a comment begins with in a file of code; nothing for other files.
fn markers(file: &Path) -> &'static [&'static str] {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("rs" | "c" | "h" | "go") => &["/// ", "//! ", "// "],
        Some("ts" | "mjs" | "css") => &["// ", "/** ", "/* ", "* "],
        Some("py") => &["# "],
        None if file.parent().is_some_and(|folder| folder.ends_with("scripts")) => &["# "],
        _ => &[],
    }
}

/// A document of the comments that stand alone on their lines; all other lines are empty, so that line numbers agree.
fn comments(code: &str, markers: &[&str]) -> String {
    let comment = |line: &str| {
        let text = markers.iter().find_map(|marker| line.trim_start().strip_prefix(marker));
        text.unwrap_or_default().trim_end_matches("*/").to_owned()
    };
    code.lines().map(comment).collect::<Vec<_>>().join("\n")
}

/// The files of code below a folder, except this one, whose list has the words.
fn code_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !NOT_WRITTEN.iter().any(|name| path.ends_with(name)) {
                code_below(&path, found);
            }
        } else if !markers(&path).is_empty() && !path.ends_with(THIS) {
            found.push(path);
        }
    }
}

/// The text as it is read: code is one word, of a link only its text is left.
fn read(text: &str) -> String {
    let mut plain = String::new();
    for (number, part) in text.split('`').enumerate() {
        plain.push_str(if number % 2 == 0 { part } else { "CODE" });
    }
    let mut read = String::new();
    let mut rest = plain.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        read.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    read.push_str(rest);
    read.replace(['[', '*'], "")
}

fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(at) = rest[from..].find(['.', '?', '!']).map(|at| at + from) {
        let after = &rest[at + 1..];
        let next = after.trim_start_matches([')', '"', '”']);
        let begins = |char: char| !char.is_lowercase();
        if next.starts_with(' ') && next.trim_start().starts_with(begins) {
            sentences.push(rest[..=at].trim());
            rest = next;
            from = 0;
        } else {
            from = at + 1;
        }
    }
    sentences.push(rest.trim());
    sentences
}

/// If the word or the words occur in the text as whole words.
fn contains(text: &str, words: &str) -> bool {
    let letter = |char: char| char.is_alphanumeric() || char == '_';
    text.match_indices(words).any(|(at, _)| {
        let free = |char: Option<char>| !char.is_some_and(letter);
        let ends = words.ends_with(letter);
        free(text[..at].chars().next_back())
            && (!ends || free(text[at + words.len()..].chars().next()))
    })
}

/// What a sentence begins with that makes a clause its subject.
const CLAUSES: &[&str] = &["What ", "Who ", "Whoever ", "Whatever "];

fn faults(document: &str) -> Vec<Fault> {
    let unpublished = |line: &str| UNPUBLISHED.iter().any(|command| line.contains(command));
    let numbered = document.lines().enumerate().filter(|(_, line)| unpublished(line));
    let why = "the package is not published: write pip install dist/suiro-*.whl";
    let mut faults: Vec<Fault> =
        numbered.map(|(at, _)| Fault { line: at + 1, why: why.to_owned() }).collect();
    faults.extend(faults_of(blocks(document)));
    faults
}

/// The words of the list in a text, each with its replacement.
fn listed(text: &str) -> Vec<String> {
    let mut lower = text.to_lowercase();
    for allowed in ALLOWED {
        lower = lower.replace(allowed, "");
    }
    let found = INSTEAD.iter().filter(|(words, _)| contains(&lower, words));
    found.map(|(words, instead)| format!("\"{words}\": write {instead}")).collect()
}

/// Why a sentence is too long, if it is.
fn too_long(sentence: &str) -> Option<String> {
    let words = sentence.split_whitespace().filter(|w| w.contains(char::is_alphanumeric));
    let count = words.count();
    (count > WORDS_MAX).then(|| format!("a sentence of {count} words: {sentence}"))
}

/// What is wrong in a document and in a comment alike: the words of the list, and long sentences.
fn wrong_in(text: &str) -> Vec<String> {
    let long = sentences(text).into_iter().filter_map(too_long);
    listed(text).into_iter().chain(long).collect()
}

fn faults_of_comments(code: &str, markers: &[&str]) -> Vec<Fault> {
    let blocks = blocks(&comments(code, markers)).into_iter();
    let fault = |Block { line, text, .. }| {
        wrong_in(&read(&text)).into_iter().map(move |why| Fault { line, why })
    };
    blocks.flat_map(fault).collect()
}

/// The words of the list in the strings of a program, its tests apart.
fn faults_of_strings(code: &str) -> Vec<Fault> {
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let fault = |(line, text): (usize, String)| {
        listed(&without_placeholders(&text)).into_iter().map(move |why| Fault { line, why })
    };
    strings_of_code(code).into_iter().filter(|(_, text)| is_prose(text)).flat_map(fault).collect()
}

/// Whether a string is several words and not a key with its value.
fn is_prose(text: &str) -> bool {
    text.trim().contains(' ') && !text.contains(" = ")
}

/// The text without what is put in between braces, and without code.
fn without_placeholders(text: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0;
    for char in read(text).chars() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            char if depth <= 0 => plain.push(char),
            _ => {}
        }
    }
    plain
}

/// The strings of Rust or TypeScript code, each with its line; those that a line ends in are joined with the next.
fn strings_of_code(code: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open: Option<usize> = None;
    for (number, line) in code.lines().enumerate() {
        if open.is_none() && line.trim_start().starts_with("//") {
            continue;
        }
        let mut text = String::new();
        let mut chars = line.replace("'\"'", "").chars().collect::<Vec<_>>().into_iter();
        while let Some(char) = chars.next() {
            match (char, open) {
                ('"', None) => open = Some(number + 1),
                ('"', Some(at)) => {
                    found.push((at, std::mem::take(&mut text)));
                    open = None;
                }
                ('\\', Some(_)) => text.extend(chars.next().filter(|next| *next != 'n')),
                (char, Some(_)) => text.push(char),
                _ => {}
            }
        }
        // The rest of a string of several lines is one of its own.
        if let Some(at) = open {
            found.push((at, text));
        }
    }
    found
}

fn faults_of(blocks: Vec<Block>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for Block { line, text, prose } in blocks {
        let text = read(&text);
        let mut wrong = wrong_in(&text);
        if prose {
            let clause = |s: &&str| s.ends_with('.') && CLAUSES.iter().any(|c| s.starts_with(c));
            let clauses = sentences(&text).into_iter().filter(clause);
            wrong.extend(clauses.map(|s| format!("a clause as the subject: {s}")));
        }
        faults.extend(wrong.into_iter().map(|why| Fault { line, why }));
    }
    faults
}

fn root() -> PathBuf {
    PathBuf::from("../..")
}

/// The files of a folder of the project with this extension.
fn files_in(folder: &str, wanted: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == wanted))
        .collect();
    files.sort();
    files
}

fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut files = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "kernel/README.md"]
        .map(|file| root.join(file))
        .to_vec();
    files.extend(files_in("docs", "md"));
    files.sort();
    files
}

#[test]
fn documents_are_plain_english() {
    let files = documents();
    assert!(files.len() >= 12, "only {} documents found", files.len());
    assert_none(&files, faults);
}

#[test]
fn scenarios_studies_and_notebooks_are_plain_english() {
    let files = [files_in("scenarios", "toml"), files_in("studies", "toml")].concat();
    assert!(files.len() >= 25, "only {} scenarios and studies found", files.len());
    assert_none(&files, |text| faults_of(blocks_of_toml(text)));
    let notebooks = files_in("docs/notebooks", "ipynb");
    assert!(!notebooks.is_empty());
    assert_none(&notebooks, |text| faults_of(blocks_of_notebook(text)));
}

#[test]
fn strings_of_the_programs_are_plain_english() {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let sources = entry.unwrap().path().join("src");
        if sources.is_dir() {
            code_below(&sources, &mut files);
        }
    }
    code_below(&root().join("web/src"), &mut files);
    let is_test = |path: &Path| path.components().any(|part| part.as_os_str() == "tests");
    let is_test = |path: &Path| is_test(path) || path.to_string_lossy().ends_with("tests.rs");
    files.retain(|path| {
        !is_test(path) && path.extension().is_some_and(|it| it == "rs" || it == "ts")
    });
    assert!(files.len() > 400, "only {} files", files.len());
    assert_none(&files, faults_of_strings);
}

#[test]
fn strings_are_found_in_code() {
    let code = "let a = \"a processor\"; // \"beside\"\nlet b = '\"';\nlet c = \"x {lacks} \\\n  it lacks y\";\n\
                #[cfg(test)]\nlet d = \"it lacks y\";";
    let lines: Vec<usize> = faults_of_strings(code).into_iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [1, 3]);
}

#[test]
fn comments_of_the_code_are_plain_english() {
    let mut found: Vec<String> = Vec::new();
    for folder in CODE {
        let mut files = Vec::new();
        code_below(&root().join(folder), &mut files);
        assert!(files.len() >= 5, "only {} files of code found in {folder}", files.len());
        for file in files {
            let code = std::fs::read_to_string(&file).unwrap();
            let name = file.strip_prefix(root()).unwrap().display();
            let fault = |Fault { line, why }| format!("{name}:{line}: {why}");
            found.extend(faults_of_comments(&code, markers(&file)).into_iter().map(fault));
        }
    }
    found.sort();
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

fn assert_none(files: &[PathBuf], faults: impl Fn(&str) -> Vec<Fault>) {
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        found.extend(
            faults(&text).iter().map(|Fault { line, why }| format!("{name}:{line}: {why}")),
        );
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[test]
fn long_sentences_and_listed_words_are_found() {
    let long = ["word"; 41].join(" ");
    let found = |text: &str| faults(text).len();
    assert_eq!(found(&format!("A {long}.")), 1);
    assert_eq!(found(&format!("A {}. A {}.", &long[..100], &long[..100])), 0);
    assert_eq!(found(&format!("- {long}\n- {long}")), 2, "each point of a list by itself");
    assert_eq!(found(&format!("| {} | {} |", &long[..150], &long[..150])), 0, "cells are apart");
    assert_eq!(found("A link beside\nanother: two processors."), 2, "over the end of a line");
    assert_eq!(found("Key `beside`, a group of pictures, one-way delay and stateless."), 0);
    assert_eq!(found("What stops a session is a timeout."), 1);
    assert_eq!(found("What stops a session?"), 0);
    assert_eq!(found("```sh\nfor x in beside; do  # a way beside it\n```"), 1, "comments of code");
    assert_eq!(found("```sh\npip install suiro\n```"), 1);
    let place = |text: &str| faults(text)[0].line;
    assert_eq!(place("# A heading\n\nA text.\n\nThe chance."), 5);
    let in_toml = |text: &str| faults_of(blocks_of_toml(text)).len();
    assert_eq!(in_toml("# A link beside\n# another\nrate = 1 # the picture\n"), 2);
    assert_eq!(in_toml("title = \"the picture\"\nbeside = \"picture\" # as is\n"), 1);
    assert_eq!(
        in_toml("[a]\nb = [{ c = \"\"\"\nby\nwebrtc.\n\"\"\" }]"),
        1,
        "over the end of a line"
    );
}

#[test]
fn listed_words_and_long_sentences_in_comments_are_found() {
    let lines = |file: &str, code: &str| -> Vec<usize> {
        let faults = faults_of_comments(code, markers(Path::new(file)));
        faults.into_iter().map(|fault| fault.line).collect()
    };
    let rust = "//! It tells\n//!\n//! Each\n//! way.\nfn beside() {}\n    // A picture.\n";
    assert_eq!(lines("a.rs", rust), [1, 3, 6]);
    assert_eq!(lines("a.rs", "/// `beside` an IDR picture.\nlet tells = 1; // tells\n"), [0; 0]);
    assert_eq!(lines("a.rs", "/// ```\n/// beside\n///\n/// tells\n/// ```\n/// It tells.\n"), [6]);
    assert_eq!(lines("a.ts", "/** It tells. */\n/**\n * It lacks\n */\n# tells\n"), [1, 3]);
    assert_eq!(lines("scripts/a", "#!/bin/sh\n# It tells\n// tells\necho beside\n"), [2]);
    assert_eq!(lines("a.toml", "# It tells\n"), [0; 0], "not code");
    let half = format!("/// {}\n", ["word"; 21].join(" "));
    assert_eq!(lines("a.rs", &format!("use a;\n{half}{half}")), [2], "over the end of a line");
    assert_eq!(lines("a.rs", &format!("{half}///\n{half}")), [0; 0], "paragraphs are apart");
    assert_eq!(lines("a.rs", &format!("{half}use a;\n{half}")), [0; 0], "comments are apart");
}

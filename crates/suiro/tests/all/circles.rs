//! Files of a crate do not import each other in a circle: each can be read after those that it needs.
//!
//! A file that needs an item of the folder module it is in (`mod.rs`, `lib.rs`) does not count: it is a part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::sources::sources;

/// Circles that are there, each by its crate and its files; the list only gets shorter. A cut would part what belongs
/// together. The methods of a stream are in a file for each subject, next to the types that they are about. The trait of
/// endpoints has a method that is handed the check, which reads endpoints, and a method for the kind that is a command.
const KNOWN: &[(&str, &[&str])] = &[
    ("analysis", &["why/encoded", "why/frames", "why/realtime", "why/told"]),
    ("scenario", &["check", "endpoint/command", "endpoint/kind"]),
];

/// A module's path in its crate.
type Module = Vec<String>;

/// The modules of a crate with their text, and what each re-exports.
struct Crate {
    text: BTreeMap<Module, String>,
    passed_on: BTreeMap<Module, Vec<Module>>,
}

fn words(path: &str) -> Module {
    path.split("::").map(|word| word.trim().to_owned()).collect()
}

/// The text without comments and without the tests at its end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    text[..end].lines().map(|line| line.split("//").next().unwrap_or_default()).fold(
        String::new(),
        |mut code, line| {
            code.push_str(line);
            code.push('\n');
            code
        },
    )
}

/// The paths that a tree of `use` names: `a::{b, c::{d}}` are `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((before, inside)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        return if path.is_empty() { vec![] } else { vec![path.to_owned()] };
    };
    let inside = &inside[..inside.rfind('}').unwrap_or(inside.len())];
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, letter) in inside.char_indices().chain([(inside.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let own = paths(&inside[begin..at]);
                let own = own.into_iter().map(|path| match path.as_str() {
                    "self" => before.trim().trim_end_matches("::").to_owned(),
                    _ => format!("{}{path}", before.trim()),
                });
                found.extend(own);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// The `use` declarations of a file: each path, and whether it is passed on to others.
fn uses(code: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    for statement in code.split(';') {
        let lines: Vec<&str> = statement.lines().map(str::trim).collect();
        let begin = lines.iter().position(|line| {
            line.starts_with("use ") || (line.starts_with("pub") && line.contains(" use "))
        });
        let Some(begin) = begin else { continue };
        let statement = lines[begin..].join(" ");
        let (head, tree) = statement.split_once("use ").expect("it has one");
        found.extend(paths(tree).into_iter().map(|path| (head.starts_with("pub"), path)));
    }
    found
}

/// Paths in the code that begin with `crate::` or `super::`; a list of imports is no path.
fn inline(code: &str) -> Vec<String> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    code.split(|letter| !is_word(letter))
        .filter(|word| word.starts_with("crate::") || word.starts_with("super::"))
        .filter(|word| !word.ends_with(':'))
        .map(str::to_owned)
        .collect()
}

impl Crate {
    fn read(folder: &Path) -> Self {
        let src = folder.join("src");
        let mut files = Vec::new();
        sources(&src, &mut files);
        let mut text = BTreeMap::new();
        for file in files {
            let name = file.strip_prefix(&src).unwrap().with_extension("");
            let mut module = words(&name.to_str().unwrap().replace('/', "::"));
            if module.iter().any(|word| word == "tests" || word == "bin") {
                continue;
            }
            if ["mod", "lib", "main"].contains(&module.last().unwrap().as_str()) {
                module.pop();
            }
            text.insert(module, code(&fs::read_to_string(&file).unwrap()));
        }
        let mut this = Self { text, passed_on: BTreeMap::new() };
        let passed_on = this.text.iter().map(|(module, text)| {
            let passed = uses(text).into_iter().filter(|(passed, _)| *passed);
            let passed = passed.filter_map(|(_, path)| this.absolute(module, &path));
            (module.clone(), passed.collect())
        });
        this.passed_on = passed_on.collect();
        this
    }

    /// A path from the crate's root; `None` if it is of another crate.
    fn absolute(&self, module: &[String], path: &str) -> Option<Module> {
        let mut path = words(path);
        let mut base = module.to_vec();
        match path[0].as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                while path.first().is_some_and(|word| word == "super") {
                    base.pop();
                    path.remove(0);
                }
                base.extend(path);
                return Some(base);
            }
            first => {
                base.push(first.to_owned());
                return self.text.contains_key(&base).then(|| [module, &path].concat());
            }
        }
        base.extend(path.drain(1..));
        Some(base)
    }

    /// The module that an item is from, which one that passes it on is not.
    fn origin(&self, item: &[String]) -> Module {
        let mut item = item.to_vec();
        for _ in 0..8 {
            let known = (0..=item.len()).rev().find(|end| self.text.contains_key(&item[..*end]));
            let (module, rest) = item.split_at(known.unwrap_or(0));
            let passed = self.passed_on.get(module).into_iter().flatten();
            let from =
                rest.first().and_then(|name| passed.clone().find(|it| it.last() == Some(name)));
            match from {
                Some(from) if from[..] != item[..] => item = [&from[..], &rest[1..]].concat(),
                _ => return module.to_vec(),
            }
        }
        item
    }

    /// The modules that each module needs.
    fn needs(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let of = |(module, text): (&'_ Module, &String)| {
            let imported =
                uses(text).into_iter().filter(|(passed, _)| !passed).map(|(_, path)| path);
            let paths = imported.chain(inline(text));
            let origins =
                paths.filter_map(|path| Some(self.origin(&self.absolute(module, &path)?)));
            origins.filter(|origin| !module.starts_with(origin)).collect()
        };
        self.text.iter().map(|(module, text)| (module, of((module, text)))).collect()
    }

    /// Its circles: modules that need each other, directly or through others.
    fn circles(&self) -> Vec<Vec<String>> {
        let needs = self.needs();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            needs.keys().map(|module| (*module, reached(&needs, module))).collect();
        let mut circles = BTreeSet::new();
        for (module, own) in &reached {
            if own.contains(module) {
                let circle = own.iter().filter(|other| reached[**other].contains(module));
                circles.insert(circle.map(|it| it.join("/")).collect::<Vec<_>>());
            }
        }
        circles.into_iter().collect()
    }
}

/// All modules that `module` needs, directly or through others.
fn reached<'m>(
    needs: &'m BTreeMap<&Module, BTreeSet<Module>>,
    module: &Module,
) -> BTreeSet<&'m Module> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&Module> = needs[module].iter().collect();
    while let Some(module) = next.pop() {
        if found.insert(module) {
            next.extend(needs.get(module).into_iter().flatten());
        }
    }
    found
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let crates = Path::new("..");
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        if folder.join("src").is_dir() {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            found.extend(Crate::read(&folder).circles().into_iter().map(|it| (name.clone(), it)));
        }
    }
    let known = KNOWN.iter().map(|(name, files)| {
        ((*name).to_owned(), files.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>())
    });
    let known: BTreeSet<_> = known.collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "put what they share in a file of its own: {new:#?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "take them from the list: {gone:#?}");
}

#[test]
fn circles_are_found_through_what_is_passed_on() {
    let crate_of = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join("src").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Crate::read(folder.path()).circles()
    };
    let lib = ("lib.rs", "mod a;\nmod b;\npub use b::{B, C};\n");
    let a = ("a.rs", "use std::fmt;\n\nuse crate::{\n    B, C,\n};\n\npub struct A;\n");
    let apart = ("b.rs", "pub struct B;\npub struct C;\n");
    assert_eq!(crate_of(&[lib, a, apart]), [[""; 0]; 0]);
    let back = ("b.rs", "pub struct B(super::a::A);\npub struct C;\n");
    assert_eq!(crate_of(&[lib, a, back]), [["a", "b"]]);
    let comment = (
        "b.rs",
        "// use crate::a::A;\npub struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n",
    );
    assert_eq!(crate_of(&[lib, a, comment]), [[""; 0]; 0]);
    let part = [
        ("lib.rs", "mod a;\nuse a::b::B;\n"),
        ("a/mod.rs", "mod b;\nuse b::B;\npub struct A;\n"),
        ("a/b.rs", "use super::A;\npub struct B;\n"),
    ];
    assert_eq!(crate_of(&part), [[""; 0]; 0], "a part of its folder");
}

//! The rooms of the engine and who may know whom: the order of DESIGN.md ("The house"), kept by reading the source.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A room may use the rooms above it in this list, and nothing below or beside it.
const ORDER: &[&[&str]] = &[
    &["kernel"],
    &["graph"],
    &["data"],
    &["family"],
    &["network"],
    &["message"],
    &["objective"],
    &["model"],
    &["train", "infer"],
];

/// Leaves that know no room; every room but the kernel may use them.
const LEAVES: &[&str] = &["collective", "names", "storage"];

/// The crate's error gathers those of all rooms. Rooms below these have errors of their own and do not name it.
const NAMES_THE_CRATES_ERROR: &[&str] = &["model", "train", "infer"];

/// The crate's root gives these names to the error's module.
const ERROR: &[&str] = &["error", "Error", "Result"];

fn rank(room: &str) -> Option<usize> {
    ORDER.iter().position(|rooms| rooms.contains(&room))
}

/// Whether the room `from` may name what the crate's root calls `to`.
fn allowed(from: &str, to: &str) -> bool {
    if from == to {
        return true;
    }
    if ERROR.contains(&to) {
        return NAMES_THE_CRATES_ERROR.contains(&from);
    }
    match (rank(from), rank(to)) {
        (Some(from), Some(to)) => to < from,
        (Some(_), None) => from != "kernel" && LEAVES.contains(&to),
        // The error module names every room's error.
        (None, Some(_)) => from == "error",
        (None, None) => from == "error" && LEAVES.contains(&to),
    }
}

/// The source without comments, strings and modules for tests; files of modules for tests are added to `test_files`.
fn code(source: &str, test_files: &mut BTreeSet<String>) -> String {
    let mut plain = String::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
        } else if rest.starts_with("r#\"") {
            rest = rest[3..].find("\"#").map_or("", |end| &rest[end + 5..]);
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                end
            });
            rest = end.map_or("", |end| &rest[end + 2..]);
        } else if rest.starts_with("'\"'") {
            rest = &rest[3..];
        } else {
            plain.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    let mut kept = String::new();
    let mut rest = &plain[..];
    while let Some(at) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..at]);
        rest = &rest[at + "#[cfg(test)]".len()..];
        let item = rest
            .trim_start()
            .trim_start_matches("pub(crate)")
            .trim_start();
        let Some(name) = item.strip_prefix("mod ") else {
            continue;
        };
        let end = name.find([';', '{']).expect("a module has an end");
        if name[end..].starts_with(';') {
            test_files.insert(name[..end].trim().to_string());
            continue;
        }
        let mut depth = 0;
        let body = &name[end..];
        let close = body.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0
        });
        rest = close.map_or("", |(at, _)| &body[at + 1..]);
    }
    kept.push_str(rest);
    kept
}

/// The names that `use crate::{a, b::c}` or `crate::a` take from the crate's root, also by way of `super`.
fn reached(code: &str, depth: usize) -> Vec<String> {
    let mut found = vec![];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for (at, _) in code.match_indices("crate::") {
        if !code[..at].ends_with(is_word) {
            first_names(&code[at + "crate::".len()..], &mut found);
        }
    }
    let supers = "super::".repeat(depth);
    for (at, _) in code.match_indices(&supers) {
        let before = &code[..at];
        if !before.ends_with(is_word) && !before.ends_with("super::") {
            first_names(&code[at + supers.len()..], &mut found);
        }
    }
    found
}

/// The first name of a path, or the first names of all paths in braces.
fn first_names(path: &str, found: &mut Vec<String>) {
    let word = |text: &str| -> String {
        let text = text.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        text[..end.unwrap_or(text.len())].to_string()
    };
    let Some(group) = path.trim_start().strip_prefix('{') else {
        found.push(word(path));
        return;
    };
    let mut depth = 1;
    let mut begin = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => begin = true,
            c if begin && !c.is_whitespace() => {
                found.push(word(&group[at..]));
                begin = false;
            }
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the source is there") {
        let path = entry.expect("the source is there").path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// The room of a file and how many `super`s lead from it to the crate's root.
fn place(relative: &Path) -> (String, usize) {
    let mut parts: Vec<String> = relative
        .with_extension("")
        .iter()
        .map(|p| p.to_string_lossy().into_owned())
        .collect();
    if parts.last().is_some_and(|p| p == "mod") {
        parts.pop();
    }
    (parts[0].clone(), parts.len())
}

/// Every reach against the order in a folder of source, as `file: room reaches other`.
fn violations(source: &Path) -> Vec<String> {
    let mut all = vec![];
    files(source, &mut all);
    all.sort();
    let mut test_files = BTreeSet::new();
    let mut texts = vec![];
    for path in &all {
        let relative = path.strip_prefix(source).expect("a file of the folder");
        let text = fs::read_to_string(path).expect("the source can be read");
        let mut own = BTreeSet::new();
        let text = code(&text, &mut own);
        let stem = relative.with_extension("");
        let inside = match relative
            .file_name()
            .is_some_and(|n| n == "mod.rs" || n == "lib.rs")
        {
            true => relative.parent().unwrap_or(Path::new("")).to_path_buf(),
            false => stem,
        };
        test_files.extend(own.iter().map(|name| inside.join(name)));
        texts.push((relative.to_path_buf(), text));
    }
    let mut wrong = vec![];
    for (relative, text) in &texts {
        let for_tests = test_files
            .iter()
            .any(|t| relative.with_extension("").starts_with(t));
        if for_tests || relative == Path::new("lib.rs") {
            continue;
        }
        let (room, depth) = place(relative);
        for other in reached(text, depth) {
            if !allowed(&room, &other) {
                wrong.push(format!("{}: {room} reaches {other}", relative.display()));
            }
        }
    }
    wrong
}

#[test]
fn no_room_reaches_against_the_order() {
    let wrong = violations(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_room_has_its_place() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(source).unwrap() {
        let name = entry
            .unwrap()
            .path()
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let known = rank(&name).is_some() || LEAVES.contains(&&name[..]);
        assert!(
            known || name == "lib" || name == "error",
            "`{name}` has no place in the order"
        );
    }
}

/// A small crate in a temporary folder.
fn planted(plants: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in plants {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    violations(folder.path())
}

#[test]
fn reaches_against_the_order_are_found_however_they_are_written() {
    for (path, text, found) in [
        (
            "kernel/a.rs",
            "use crate::family::Family;",
            "kernel reaches family",
        ),
        ("kernel/a.rs", "use crate::names;", "kernel reaches names"),
        (
            "kernel/mod.rs",
            "fn f() -> crate::Result<()> {}",
            "kernel reaches Result",
        ),
        (
            "kernel/a.rs",
            "fn f(x: &crate::network::Block) {}",
            "kernel reaches network",
        ),
        (
            "kernel/deep/a.rs",
            "use super::super::super::graph::Tree;",
            "kernel reaches graph",
        ),
        (
            "graph/mod.rs",
            "use super::{names, model::Model};",
            "graph reaches model",
        ),
        (
            "network/a.rs",
            "use crate::{\n    kernel::{Isa, lanes::{a, b}},\n    message::Node,\n};",
            "network reaches message",
        ),
        (
            "objective/a.rs",
            "use crate::model::Model;",
            "objective reaches model",
        ),
        (
            "train/a.rs",
            "use crate::infer::Posterior;",
            "train reaches infer",
        ),
        (
            "infer/a.rs",
            "use crate::train::Trainer;",
            "infer reaches train",
        ),
        ("storage.rs", "use crate::Error;", "storage reaches Error"),
        (
            "names.rs",
            "use crate::graph::FactorTree;",
            "names reaches graph",
        ),
        (
            "model/a.rs",
            "let s = \"\\\"\"; use crate::train::Trainer;",
            "model reaches train",
        ),
    ] {
        let wrong = planted(&[(path, text)]);
        assert!(
            wrong.len() == 1 && wrong[0].ends_with(found),
            "{path}: {text}: {wrong:?}"
        );
    }
}

#[test]
fn comments_strings_tests_and_the_way_down_are_no_reach() {
    let wrong = planted(&[
        (
            "kernel/a.rs",
            "//! See crate::family.\n/* crate::model */ let s = \"crate::train\";",
        ),
        (
            "kernel/b.rs",
            "use super::a; use crate::kernel::c; pub(in crate::kernel) fn f() {}",
        ),
        (
            "graph/a.rs",
            "fn f() {}\n#[cfg(test)]\nmod tests { use crate::train::Trainer; fn f() {} }",
        ),
        ("graph/mod.rs", "mod a;\n#[cfg(test)]\nmod check;"),
        ("graph/check.rs", "use crate::model::Model;"),
        ("graph/a/tests.rs", "use super::super::b;"),
        (
            "infer/a.rs",
            "use crate::{Error, Result, data::Dataset, model::{Model, train}, names};",
        ),
        (
            "error.rs",
            "use crate::storage::StorageError; use crate::infer::InferError;",
        ),
        ("lib.rs", "use crate::train::Trainer;"),
    ]);
    assert!(wrong.is_empty(), "{wrong:?}");
}

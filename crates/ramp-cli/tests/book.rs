//! The book and the README: chapters, links, pictures, model files and code are what they say.

use ramp_io::ModelFile;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The pages for those who change the software.
fn for_developers() -> [PathBuf; 3] {
    [
        "CONTRIBUTING.md",
        "docs/src/architecture.md",
        "docs/src/extending.md",
    ]
    .map(|p| root().join(p))
}

/// Every page: README, CONTRIBUTING and all chapters.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    let mut folders = vec![root().join("docs/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// A block between fences: what stands behind the opening one, and the lines.
struct Fenced {
    info: String,
    text: String,
}

/// The prose without its code, and the blocks of code.
fn parts(page: &str) -> (String, Vec<Fenced>) {
    let (mut prose, mut blocks, mut open) = (String::new(), vec![], None::<Fenced>);
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                open = Some(Fenced {
                    info: info.trim().into(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => {
                // Code within a line is no link either.
                for (i, piece) in line.split('`').enumerate() {
                    prose += if i % 2 == 0 { piece } else { "code" };
                }
                prose.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a block of code is not closed");
    (prose, blocks)
}

/// Where the links and pictures of some prose lead.
fn links(prose: &str) -> Vec<String> {
    prose
        .match_indices("](")
        .filter_map(|(at, _)| {
            prose[at + 2..]
                .split_once(')')
                .map(|(to, _)| to.to_string())
        })
        .collect()
}

/// A heading as its anchor is spelt.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn has_anchor(page: &str, wanted: &str) -> bool {
    let prose: Vec<&str> = {
        let mut inside = false;
        page.lines()
            .filter(|line| {
                inside ^= line.trim_start().starts_with("```");
                !inside
            })
            .collect()
    };
    prose
        .iter()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(&line.replace('`', "")) == wanted)
}

#[test]
fn the_summary_lists_every_chapter_and_no_other() {
    let folder = root().join("docs/src");
    let (prose, _) = parts(&read(&folder.join("SUMMARY.md")));
    let mut listed: Vec<PathBuf> = links(&prose).iter().map(|l| folder.join(l)).collect();
    let mut there: Vec<PathBuf> = pages()
        .into_iter()
        .filter(|p| p.starts_with(&folder) && !p.ends_with("SUMMARY.md"))
        .collect();
    listed.sort();
    there.sort();
    assert!(listed.len() > 5);
    assert_eq!(listed, there);
    assert!(read(&root().join("docs/book.toml")).contains("[book]"));
}

#[test]
fn every_link_and_picture_leads_somewhere() {
    let mut seen = 0;
    for page in pages() {
        let text = read(&page);
        for link in links(&parts(&text).0) {
            if link.contains("://") {
                continue;
            }
            seen += 1;
            let (file, wanted) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{}: no {link}", page.display());
            if !wanted.is_empty() {
                assert!(
                    has_anchor(&read(&target), wanted),
                    "{}: no heading for {link}",
                    page.display()
                );
            }
        }
    }
    assert!(seen > 20, "only {seen} links were found");
}

#[test]
fn every_model_file_can_be_read() {
    let mut seen = 0;
    for page in pages() {
        for block in parts(&read(&page)).1 {
            if block.info.split(',').any(|word| word == "model") {
                seen += 1;
                if let Err(e) = ModelFile::parse(&block.text) {
                    panic!("{}: {e} in\n{}", page.display(), block.text);
                }
            }
        }
    }
    assert!(seen > 5, "only {seen} model files were found");
}

/// Rooms that the pages for developers name are there: a file named alone stands beside the last one named with its folder.
#[test]
fn rooms_that_are_named_exist() {
    let mut seen = 0;
    for page in for_developers() {
        let mut folder = root();
        for line in read(&page).lines() {
            for span in line.split('`').skip(1).step_by(2) {
                let path = match span {
                    s if s.starts_with("crates/") || s.starts_with("docs/") => root().join(s),
                    s if s.ends_with(".rs") && !s.contains([' ', '/', '*']) => folder.join(s),
                    _ => continue,
                };
                seen += 1;
                // The book's example of a file that the reader writes.
                let made_up = path.ends_with("bernoulli.rs");
                assert!(
                    path.exists() || made_up,
                    "{}: there is no {}",
                    page.display(),
                    path.display()
                );
                folder = match path.is_dir() {
                    true => path,
                    false => path.parent().unwrap().to_path_buf(),
                };
            }
        }
    }
    assert!(seen > 60, "only {seen} rooms were found");
}

/// A block marked `file=…` stands in that file, word for word.
#[test]
fn code_from_files_is_what_the_files_say() {
    let mut seen = 0;
    for page in pages() {
        for block in parts(&read(&page)).1 {
            for file in block
                .info
                .split(',')
                .filter_map(|w| w.strip_prefix("file="))
            {
                seen += 1;
                assert!(
                    read(&root().join(file)).contains(&block.text),
                    "{}: this is not in {file}:\n{}",
                    page.display(),
                    block.text
                );
            }
        }
    }
    assert!(seen > 3, "only {seen} blocks were found");
}

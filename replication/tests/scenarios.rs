//! SCENARIOS.md names what shows each situation of replication: this checks that all of it is there.

use std::fs;
use std::path::{Path, PathBuf};

/// Number of situations; the table has a line for each.
const SITUATIONS: usize = 104;

fn of_this_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The lines of the table: the cells without what is around them.
fn lines(table: &str) -> Vec<Vec<&str>> {
    let lines = table.lines().filter(|line| line.starts_with("| "));
    let lines = lines.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect());
    lines.skip(1).collect()
}

/// What is in backquotes.
fn references(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Why there is no such script or test; none when there is.
fn missing(reference: &str) -> Option<String> {
    let (kind, name) = reference.split_once(' ')?;
    if kind == "script" {
        let path = of_this_crate("tests/scripts").join(format!("{name}.txt"));
        return (!path.is_file()).then(|| format!("no script {name}"));
    }
    let Some((file, test)) = name.rsplit_once("::") else {
        return Some(format!("{reference} names no test"));
    };
    let path = match kind {
        "cluster" | "raw" | "clients" => {
            let file = file.replace("::", "/");
            format!("../compat-tests/tests/{kind}/{file}.rs")
        }
        "test" => format!("../{file}"),
        other => return Some(format!("{other} is no kind of test")),
    };
    let Ok(text) = fs::read_to_string(of_this_crate(&path)) else {
        return Some(format!("no file {path}"));
    };
    let is_test = |start: usize| {
        let before = text[..start].trim_end();
        let before = before.trim_end_matches("async").trim_end();
        // The attribute, and whatever else stands on it.
        let attributes = before.rsplit("\n\n").next().unwrap_or(before);
        attributes.contains("#[test]") || attributes.contains("#[tokio::test")
    };
    let name = format!("fn {test}(");
    let mut found = text.match_indices(&name);
    (!found.any(|(start, _)| is_test(start))).then(|| format!("no test {test} in {path}"))
}

#[test]
fn whatever_the_table_names_is_there() {
    let table = fs::read_to_string(of_this_crate("tests/SCENARIOS.md")).expect("the table");
    let mut wrong = Vec::new();
    let lines = lines(&table);
    for (number, line) in (1..).zip(&lines) {
        let [told, situation, shown_by] = line[..] else {
            panic!("three cells are expected: {line:?}");
        };
        assert_eq!(told, number.to_string(), "{line:?}");
        assert!(!situation.is_empty(), "{line:?}");
        let shown_by = references(shown_by);
        assert!(!shown_by.is_empty(), "nothing shows {number}");
        wrong.extend(shown_by.into_iter().filter_map(missing));
    }
    assert_eq!(lines.len(), SITUATIONS);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_not_there_is_noticed() {
    for wrong in [
        "script high_watermark/none",
        "cluster none::none",
        "cluster following::none",
        // A function, but no test.
        "cluster following::bounce_leader",
        "raw produce",
        "guess produce::none",
    ] {
        assert!(missing(wrong).is_some(), "{wrong}");
    }
}

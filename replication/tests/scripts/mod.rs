//! Golden scripts: one situation a file, in `replication/tests/scripts/`.
//!
//! A script begins with a `cluster` line and maybe `log` lines, which say what there is. Each line after that is an
//! event; the indented lines below it are all that it makes happen. The rules are the product's; `model/` around them
//! keeps logs, network and time. Every check of the simulation holds after every event here, too.
//!
//! When a script fails, the difference is printed: `-` was expected, `+` is what happened.
//! `HIGHWATER_REWRITE_SCRIPTS=1` writes what happened into the files instead: read the difference before it is kept.

use std::fs;
use std::path::{Path, PathBuf};

use crate::model::macros::Line;
use crate::model::notes::Notes;
use crate::model::rules::Rule;
use crate::model::setup::Setup;
use crate::model::world::World;
use crate::simulation::invariants::Invariants;

/// What an effect is indented by.
const INDENT: &str = "    ";

/// The script with the effects that its events really have.
fn run(text: &str, off: Option<Rule>) -> Result<String, String> {
    let mut setup = Setup::default();
    let mut world: Option<World> = None;
    let mut invariants = Invariants::new();
    let mut out = String::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with(INDENT) {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        let event = line.split('#').next().unwrap_or_default().trim();
        let failed = |error: String| format!("line {}: {error}", index + 1);
        if event.is_empty() {
            continue;
        }
        if let Some(settings) = event.strip_prefix("cluster") {
            setup.read(settings).map_err(failed)?;
            continue;
        }
        if let Some(log) = event.strip_prefix("log ") {
            setup.read_log(log).map_err(failed)?;
            continue;
        }
        let world = world.get_or_insert_with(|| World::new(setup.clone(), Notes::kept(), off));
        let event = Line::parse(event).map_err(failed)?;
        for effect in world.perform(&event) {
            out.push_str(INDENT);
            out.push_str(&effect);
            out.push('\n');
        }
        invariants.check(world).map_err(failed)?;
    }
    Ok(out)
}

fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("the folder of scripts");
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            scripts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            found.push(path);
        }
    }
    found.sort();
}

/// What is wrong in a script without a safety rule, if an invariant does not hold.
pub(crate) fn broken_without(rule: Rule, script: &str) -> Option<String> {
    let text = fs::read_to_string(folder().join(script)).expect("a script");
    run(&text, Some(rule)).err()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

#[test]
fn every_script_happens_as_it_is_written() {
    let folder = folder();
    let rewrite = std::env::var_os("HIGHWATER_REWRITE_SCRIPTS").is_some();
    let mut found = Vec::new();
    scripts(&folder, &mut found);
    assert!(!found.is_empty(), "there are no scripts");
    let mut failures = String::new();
    for path in &found {
        let name = path
            .strip_prefix(&folder)
            .expect("a script of the folder")
            .display();
        let expected = fs::read_to_string(path).expect("a script");
        let actual = match run(&expected, None) {
            Ok(actual) => actual,
            Err(error) => {
                failures += &format!("{name}: {error}\n");
                continue;
            }
        };
        if actual == expected {
            continue;
        }
        if rewrite {
            fs::write(path, &actual).expect("written");
            continue;
        }
        let diff = similar::TextDiff::from_lines(&expected, &actual);
        let diff = diff.unified_diff().context_radius(3).to_string();
        failures += &format!("{name}:\n{diff}\n");
    }
    assert!(failures.is_empty(), "{failures}");
}

//! Programs that ship in texts: taken out as they stand.

use std::fs;
use std::path::{Path, PathBuf};

/// Where a program begins, and how it ends.
const FIRST_LINE: &str = "#!/usr/bin/env python3\n";
const LAST_LINES: &str = "\nif __name__ == \"__main__\":\n    main()\n";

/// The folder of texts that `HIGHWATER_SEEDS` names, if it names one.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("HIGHWATER_SEEDS").filter(|value| !value.is_empty())?;
    let folder = PathBuf::from(folder);
    assert!(
        folder.is_dir(),
        "HIGHWATER_SEEDS={} is no folder",
        folder.display()
    );
    Some(folder)
}

/// Writes the program that calls itself `name` into `to`, byte for byte as it is in one of the texts.
pub(crate) fn extract(texts: &Path, name: &str, to: &Path) -> PathBuf {
    let begins = format!("{FIRST_LINE}\"\"\"\n{name} ");
    let files = fs::read_dir(texts).unwrap();
    let found = files.filter_map(|file| {
        // Other files than texts may lie there.
        let text = fs::read_to_string(file.unwrap().path()).ok()?;
        let program = &text[text.find(&begins)?..];
        let end = program.find(LAST_LINES)? + LAST_LINES.len();
        Some(program[..end].to_owned())
    });
    let found: Vec<String> = found.collect();
    let [program] = found.as_slice() else {
        panic!("{name} is in {} texts of {}", found.len(), texts.display())
    };
    let path = to.join(name);
    fs::write(&path, program).unwrap();
    path
}

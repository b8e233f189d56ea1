//! What a script shows: one line for each thing that happens. The simulation does without.

/// Lines, if somebody wants them.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    lines: Option<Vec<String>>,
}

impl Notes {
    /// Notes that are kept.
    pub(crate) fn kept() -> Self {
        Self {
            lines: Some(Vec::new()),
        }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(line());
        }
    }

    /// The lines since the last time.
    pub(crate) fn take(&mut self) -> Vec<String> {
        self.lines.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

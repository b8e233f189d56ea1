//! Guided scripts: steps that are done on the real cluster, each of which looks at the cluster to see whether what it
//! tells has happened. Pure: actions out, views in.

mod epoch_truncation;
mod high_watermark;
mod leader_crash;
mod min_isr;
mod network_partition;
mod slow_follower;

use serde_json::{Value, json};

use super::action::Action;
use super::producer::Produced;
use super::view::View;

/// A guided script.
#[derive(Debug)]
pub(super) struct Lesson {
    /// Its name in the page's address and in requests.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What it shows, in a sentence or two.
    pub(super) about: &'static str,
    /// `replica.lag.time.max.ms` of its brokers.
    pub(super) lag_ms: u32,
    /// Replicas of its topic; the first leads.
    pub(super) replicas: &'static [i32],
    pub(super) min_isr: i32,
    pub(super) steps: &'static [Step],
}

/// One step.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) title: &'static str,
    /// What happens, and what to look at.
    pub(super) text: &'static str,
    /// What is done.
    pub(super) acts: fn() -> Vec<Action>,
    /// Whether what the text says is so.
    pub(super) check: fn(&Seen<'_>) -> Check,
}

/// What a step is judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    /// The cluster now.
    pub(super) now: &'a View,
    /// The cluster when the step began.
    pub(super) before: &'a View,
    /// What was produced since the step began.
    pub(super) produced: &'a [Produced],
}

/// How a step stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    /// Not yet; this is waited for.
    Wait(String),
    /// It is so; this was seen.
    Done(String),
}

/// Done with `seen` when it is so, else waiting for `wanted`.
fn when(is_so: bool, seen: impl FnOnce() -> String, wanted: &str) -> Check {
    match is_so {
        true => Check::Done(seen()),
        false => Check::Wait(wanted.to_owned()),
    }
}

/// All of them, in the order in which they are best taken.
pub(super) static LESSONS: [&Lesson; 6] = [
    &high_watermark::LESSON,
    &slow_follower::LESSON,
    &leader_crash::LESSON,
    &network_partition::LESSON,
    &min_isr::LESSON,
    &epoch_truncation::LESSON,
];

/// The lesson of this name.
pub(super) fn find(name: &str) -> Option<&'static Lesson> {
    LESSONS.iter().copied().find(|lesson| lesson.name == name)
}

/// How far a lesson is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// The cluster is made ready.
    Preparing,
    /// It is not; the text says why.
    NotReady(String),
    /// The next step may be done.
    Ready,
    /// A step is being done; this is waited for.
    Running(String),
    /// A step did not come to what it tells; this was waited for.
    Failed(String),
}

/// A lesson that is being taken.
#[derive(Debug)]
pub(super) struct Progress {
    /// Number of the lesson among all that were begun: what still comes of one that was left is not for this.
    pub(super) run: u64,
    pub(super) lesson: &'static Lesson,
    /// What was seen at each step that is done.
    pub(super) seen: Vec<String>,
    pub(super) stage: Stage,
}

impl Progress {
    pub(super) fn new(run: u64, lesson: &'static Lesson) -> Self {
        Progress {
            run,
            lesson,
            seen: Vec::new(),
            stage: Stage::Preparing,
        }
    }

    /// The step that is next or being done; `None` after the last.
    pub(super) fn step(&self) -> Option<&'static Step> {
        self.lesson.steps.get(self.seen.len())
    }

    /// Begins the next step, or the same again after it failed. Gives it, unless another is being done.
    pub(super) fn begin_step(&mut self) -> Option<&'static Step> {
        if !matches!(self.stage, Stage::Ready | Stage::Failed(_)) {
            return None;
        }
        let step = self.step()?;
        self.stage = Stage::Running("what this step does to the cluster".to_owned());
        Some(step)
    }

    /// The cluster is ready, or not, and why.
    pub(super) fn on_prepared(&mut self, prepared: Result<(), String>) {
        if self.stage == Stage::Preparing {
            self.stage = prepared.map_or_else(Stage::NotReady, |()| Stage::Ready);
        }
    }

    /// Takes note of how the step stands; `is_late` gives it up when it is not done.
    pub(super) fn on_check(&mut self, check: Check, is_late: bool) {
        if !matches!(self.stage, Stage::Running(_)) {
            return;
        }
        self.stage = match check {
            Check::Done(seen) => {
                self.seen.push(seen);
                Stage::Ready
            }
            Check::Wait(wanted) if is_late => Stage::Failed(wanted),
            Check::Wait(wanted) => Stage::Running(wanted),
        };
    }

    /// The row of the page.
    pub(super) fn to_row(&self) -> Value {
        let at = self.seen.len();
        let steps: Vec<Value> = (0..)
            .zip(self.lesson.steps)
            .map(|(index, step)| {
                let state = match (index, &self.stage) {
                    (index, _) if index < at => "done",
                    (index, Stage::Running(_)) if index == at => "running",
                    (index, Stage::Failed(_)) if index == at => "failed",
                    _ => "to do",
                };
                json!({"title": step.title, "text": step.text, "state": state, "seen": self.seen.get(index)})
            })
            .collect();
        let (stage, detail) = match &self.stage {
            Stage::Preparing => ("preparing", ""),
            Stage::NotReady(why) => ("not ready", why.as_str()),
            Stage::Ready => ("ready", ""),
            Stage::Running(wanted) => ("running", wanted.as_str()),
            Stage::Failed(wanted) => ("failed", wanted.as_str()),
        };
        json!({
            "name": self.lesson.name,
            "title": self.lesson.title,
            "about": self.lesson.about,
            "steps": steps,
            "at": at,
            "stage": stage,
            "detail": detail,
            "finished": at == self.lesson.steps.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::view::tests::healthy;
    use super::*;

    #[test]
    fn lessons_have_names_of_their_own_and_actions_that_can_be_done() {
        let names: BTreeSet<&str> = LESSONS.iter().map(|lesson| lesson.name).collect();
        assert_eq!(names.len(), LESSONS.len());
        for lesson in LESSONS {
            assert_eq!(
                find(lesson.name).map(|found| found.title),
                Some(lesson.title)
            );
            for step in lesson.steps {
                for action in (step.acts)() {
                    action
                        .check()
                        .unwrap_or_else(|error| panic!("{}: {error}", step.title));
                }
            }
        }
    }

    #[test]
    fn no_step_is_done_before_anything_has_happened() {
        let view = healthy([0, 0, 0], 0);
        for lesson in LESSONS {
            let first = &lesson.steps[0];
            let seen = Seen {
                now: &view,
                before: &view,
                produced: &[],
            };
            assert!(
                matches!((first.check)(&seen), Check::Wait(_)),
                "{}: {}",
                lesson.name,
                first.title
            );
        }
    }

    #[test]
    fn a_step_is_done_once_and_may_be_tried_again() {
        let mut progress = Progress::new(1, &leader_crash::LESSON);
        assert!(progress.begin_step().is_none(), "not ready");
        progress.on_prepared(Ok(()));
        assert!(progress.begin_step().is_some());
        assert!(progress.begin_step().is_none(), "it is being done");
        progress.on_check(Check::Wait("a leader".to_owned()), true);
        assert_eq!(progress.stage, Stage::Failed("a leader".to_owned()));
        assert!(progress.begin_step().is_some());
        progress.on_check(Check::Done("it leads".to_owned()), false);
        assert_eq!((progress.seen.len(), &progress.stage), (1, &Stage::Ready));
        let row = progress.to_row();
        assert_eq!(row["steps"][0]["state"], "done");
        assert_eq!(row["steps"][0]["seen"], "it leads");
        assert_eq!(row["steps"][1]["state"], "to do");
    }
}

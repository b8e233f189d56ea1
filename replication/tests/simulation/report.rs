//! A failing seed in words: what is wrong, how to run it alone, and its script.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::invariants::Invariants;
use super::run::Failure;
use super::seeds::from_environment;
use crate::model::notes::Notes;
use crate::model::rules::Rule;
use crate::model::step::Step;
use crate::model::world::World;

/// How many of the last steps are printed with what they did, unless the environment says otherwise.
const LAST_STEPS: u64 = 60;

/// How long a script is shortened.
const PATIENCE: Duration = Duration::from_secs(20);

/// What to print about a seed that failed.
pub(crate) fn report(seed: u64, off: Option<Rule>, failure: &Failure) -> String {
    let steps = shorten(failure, off);
    let last_steps = from_environment("HIGHWATER_SIM_TOLD").unwrap_or(LAST_STEPS);
    let mut text = String::new();
    let rule = off.map_or(String::new(), |rule| format!(" HIGHWATER_SIM_RULE={rule}"));
    let _ = writeln!(text, "seed {seed}: {}", failure.wrong);
    let _ = writeln!(
        text,
        "again: HIGHWATER_SIM_SEED={seed}{rule} cargo test -p highwater-replication --test replication seed"
    );
    let _ = writeln!(
        text,
        "script, {} of {} steps; indented is what the last {last_steps} did, and all changes of the partition's metadata:\n{}",
        steps.len(),
        failure.steps.len(),
        failure.plan.setup
    );
    let mut world = World::new(failure.plan.setup.clone(), Notes::kept(), off);
    for (index, step) in steps.iter().enumerate() {
        let applied = world.apply(step);
        let _ = writeln!(text, "{step}");
        let notes = world.notes.take();
        let is_late = index as u64 + last_steps >= steps.len() as u64;
        for note in notes {
            if is_late || note.starts_with("metadata:") {
                let _ = writeln!(text, "    {note}");
            }
        }
        if is_late && let Err(idle) = applied {
            let _ = writeln!(text, "    (nothing: {idle})");
        }
    }
    let _ = writeln!(text, "in the end:\n    {}", world.show_metadata());
    for broker in failure.plan.setup.brokers.clone() {
        for line in world.show(broker) {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

/// Leaves steps out as long as the same invariant fails. What is wrong because something did not happen in time is not
/// shortened.
fn shorten(failure: &Failure, off: Option<Rule>) -> Vec<Step> {
    if failure.wrong.contains("never answered") {
        return failure.steps.clone();
    }
    let name = failure.wrong.split(':').next().unwrap_or_default();
    let fails = |steps: &[Step]| -> Option<usize> {
        let mut world = World::new(failure.plan.setup.clone(), Notes::default(), off);
        let mut invariants = Invariants::new();
        for (index, step) in steps.iter().enumerate() {
            if world.apply(step).is_ok()
                && let Err(wrong) = invariants.check(&world)
            {
                return (wrong.split(':').next() == Some(name)).then_some(index + 1);
            }
        }
        None
    };
    let mut steps = failure.steps.clone();
    let Some(end) = fails(&steps) else {
        return steps;
    };
    steps.truncate(end);
    let started = Instant::now();
    let mut chunk = steps.len() / 2;
    while chunk > 0 {
        let mut from = 0;
        while from < steps.len() && started.elapsed() < PATIENCE {
            let mut fewer = steps.clone();
            fewer.drain(from..(from + chunk).min(steps.len()));
            match fails(&fewer) {
                Some(end) => {
                    fewer.truncate(end);
                    steps = fewer;
                }
                None => from += chunk,
            }
        }
        chunk /= 2;
    }
    steps
}

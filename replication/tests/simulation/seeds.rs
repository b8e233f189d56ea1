//! The test: no seed breaks an invariant.

use std::time::Instant;

use super::report::report;
use super::run::{Failure, Simulation, Statistics};
use crate::model::rules::Rule;

/// How many seeds run unless the environment says otherwise.
const SEEDS: u64 = 2_000;

/// After so many failures a thread runs no more seeds.
const MAX_FAILURES: usize = 10;

/// A number from the environment.
pub(crate) fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}

#[test]
fn no_seed_breaks_an_invariant() {
    let off = std::env::var("HIGHWATER_SIM_RULE")
        .ok()
        .map(|name| Rule::named(&name).unwrap_or_else(|| panic!("there is no rule {name}")));
    let seeds = match from_environment("HIGHWATER_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_environment("HIGHWATER_SIM_SEEDS").unwrap_or(SEEDS),
    };
    let started = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let (mut statistics, mut failures) = (Statistics::default(), Vec::new());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let seeds = seeds.clone().filter(move |seed| seed % threads == worker);
                scope.spawn(move || run_all(seeds, off))
            })
            .collect();
        for worker in workers {
            match worker.join() {
                Ok((some, failed)) => {
                    statistics += some;
                    failures.extend(failed);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    eprintln!("{statistics:?} in {:?}", started.elapsed());
    failures.sort_by_key(|(seed, _)| *seed);
    if let Some((seed, failure)) = failures.first() {
        let others: Vec<String> = failures[1..]
            .iter()
            .map(|(seed, failure)| format!("seed {seed}: {}\n", failure.wrong))
            .collect();
        panic!("{}\n{}", report(*seed, off, failure), others.concat());
    }
    assert!(
        statistics.acked > statistics.runs && statistics.leader_epochs > statistics.runs,
        "runs in which nothing happens show nothing: {statistics:?}"
    );
}

/// Runs seeds until too many of them have failed.
fn run_all(
    seeds: impl Iterator<Item = u64>,
    off: Option<Rule>,
) -> (Statistics, Vec<(u64, Box<Failure>)>) {
    let (mut statistics, mut failures) = (Statistics::default(), Vec::new());
    for seed in seeds {
        match Simulation::new(seed, off).run() {
            Ok(one) => statistics += one,
            Err(failure) => failures.push((seed, failure)),
        }
        if failures.len() == MAX_FAILURES {
            break;
        }
    }
    (statistics, failures)
}

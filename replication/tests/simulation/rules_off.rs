//! The simulation bites: without any one of the safety rules an invariant breaks, in a seed or in a script.

use super::run::Simulation;
use crate::model::rules::Rule;
use crate::scripts;

/// Where each rule is missed: in one of the scripts, or in this seed.
///
/// When the simulation changes and a seed does not fail any more, `HIGHWATER_SIM_RULE` with the name of the rule finds
/// another one.
const KNOWN: &[(Rule, u64)] = &[
    (Rule::Divergence, 2),
    (Rule::TruncateByEpoch, 1),
    (Rule::PendingExpansion, 19),
    (Rule::PendingShrink, 0),
    (Rule::StrictMinIsr, 0),
    (Rule::MinIsrBeforeAppend, 0),
    (Rule::AckAtHighWatermark, 0),
    (Rule::ReadToHighWatermark, 0),
    (Rule::PartitionEpoch, 36),
    (Rule::ActiveIsr, 0),
    (Rule::CleanElection, 2),
    (Rule::CleanShutdown, 6),
    (Rule::StaleAnswer, 0),
    (Rule::CommittedMetadata, 0),
    (Rule::OwnRegistration, 12),
    (Rule::OlderMetadata, 0),
];

/// Rules whose absence random histories show too rarely for a quick test, so that a script does.
const BY_SCRIPT: &[(Rule, &str)] = &[
    (
        Rule::FetchEpoch,
        "truncation/a_fetch_of_the_epoch_before.txt",
    ),
    (
        Rule::EpochStart,
        "isr/nobody_joins_before_the_epoch_start.txt",
    ),
    (
        Rule::BrokerEpoch,
        "fencing/a_stale_fetch_that_the_leader_cannot_tell.txt",
    ),
    (
        Rule::LaterEpochs,
        "truncation/records_of_a_later_epoch_after_a_cut.txt",
    ),
    (
        Rule::DivergingHighWatermark,
        "truncation/three_epochs_two_rounds.txt",
    ),
    (Rule::AmbiguousProposal, "isr/lost_reply.txt"),
];

#[test]
fn without_any_safety_rule_an_invariant_breaks() {
    let mut missed = Vec::new();
    for rule in Rule::ALL.iter().copied() {
        let by_seed = KNOWN.iter().find(|(known, _)| *known == rule);
        let by_seed = by_seed.and_then(|(_, seed)| {
            let failure = Simulation::new(*seed, Some(rule)).run().err()?;
            Some((format!("seed {seed}"), failure.wrong))
        });
        let by_script = || {
            let (_, script) = BY_SCRIPT.iter().find(|(known, _)| *known == rule)?;
            let broken = scripts::broken_without(rule, script)?;
            Some(((*script).to_owned(), broken))
        };
        match by_seed.or_else(by_script) {
            Some((where_, wrong)) => eprintln!("without {rule}: {where_}: {wrong}"),
            None => missed.push(rule.to_string()),
        }
    }
    assert!(missed.is_empty(), "nobody misses {missed:?}");
}

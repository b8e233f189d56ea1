//! Drives Highwater and Apache Kafka alternately with the same raw load and prints ratios.
//!
//! `cargo run --release -p compat-tests --bin bench -- --help`
//!
//! Highwater is built for release, or taken from `HIGHWATER_BIN`; `TMPDIR` says where data directories
//! are made. It measures and asserts nothing. Compare figures of one run only: the two brokers are measured
//! next to each other, round by round, and a ratio is the median of the rounds' ratios.
#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

mod broker;
mod clusters;
mod idle;
mod load;
mod process;
mod report;
mod restarts;
mod workloads;

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use compat_tests::broker::BrokerKind;

use broker::Bench;
use clusters::ClusterWorkload;
use report::{Report, figure};
use workloads::{ALL, Settings, Setup, Workload};

/// Which broker.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Product {
    Highwater,
    Kafka,
}

/// Benchmark of Highwater against Apache Kafka.
#[derive(Parser)]
struct Arguments {
    /// Run only these workloads (a part of the name is enough); all without it.
    #[arg(long)]
    only: Vec<String>,
    /// Measured rounds of each workload; each has its own number without it.
    #[arg(long)]
    rounds: Option<usize>,
    /// Length of one measured window of a load.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Length of the round before the measured ones of a load: compilers take their time.
    #[arg(long, default_value_t = 12.0)]
    warm_up_seconds: f64,
    /// Print a Markdown table at the end.
    #[arg(long)]
    markdown: bool,
    /// Measure one broker alone.
    #[arg(long)]
    product: Option<Product>,
    /// List the workloads and stop.
    #[arg(long)]
    list: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let chosen: Vec<&Workload> = ALL
        .iter()
        .filter(|w| arguments.only.is_empty() || arguments.only.iter().any(|o| w.name.contains(o)))
        .collect();
    let chosen_clusters: Vec<&ClusterWorkload> = clusters::ALL
        .iter()
        .filter(|w| arguments.only.is_empty() || arguments.only.iter().any(|o| w.name.contains(o)))
        .collect();
    if arguments.list {
        let names = chosen.iter().map(|workload| workload.name);
        let cluster_names = chosen_clusters.iter().map(|workload| workload.name);
        names
            .chain(cluster_names)
            .for_each(|name| println!("{name}"));
        return Ok(());
    }
    ensure!(
        !(chosen.is_empty() && chosen_clusters.is_empty()),
        "no workload has such a name; see --list"
    );
    let products = match arguments.product {
        Some(Product::Highwater) => vec![BrokerKind::Highwater],
        Some(Product::Kafka) => vec![BrokerKind::ApacheKafka],
        None => vec![BrokerKind::Highwater, BrokerKind::ApacheKafka],
    };
    let settings = Settings {
        measured: Duration::from_secs_f64(arguments.seconds),
        max_bytes: 2 << 30,
    };
    let warm_up = Settings {
        measured: Duration::from_secs_f64(arguments.warm_up_seconds),
        max_bytes: 8 << 30,
    };
    let mut report = Report::default();
    let mut shared: Vec<Bench> = Vec::new();
    for workload in chosen {
        let rounds = arguments.rounds.unwrap_or(workload.rounds);
        eprintln!("{}: {rounds} rounds", workload.name);
        let result = match workload.setup {
            Setup::Fresh => {
                shared.clear();
                fresh(workload, rounds, &products, &settings, &mut report)
            }
            Setup::Shared => {
                if shared.is_empty() {
                    for product in &products {
                        shared.push(Bench::start(*product)?.0);
                    }
                }
                alternate(
                    workload,
                    rounds,
                    &mut shared,
                    [&warm_up, &settings],
                    &mut report,
                )
            }
        };
        if let Err(error) = result {
            eprintln!("{} failed: {error:#}", workload.name);
            shared.clear();
        }
        println!("{}", report.table(Some(workload.name), false));
    }
    drop(shared);
    clusters::run(
        &chosen_clusters,
        arguments.rounds,
        &products,
        [&warm_up, &settings],
        &mut report,
    );
    if arguments.markdown {
        println!("{}", report.table(None, true));
    }
    Ok(())
}

/// Rounds in which each broker runs in turn; both stay up, one of them idle.
fn alternate(
    workload: &Workload,
    rounds: usize,
    brokers: &mut [Bench],
    [warm_up, settings]: [&Settings; 2],
    report: &mut Report,
) -> Result<()> {
    // One round for the compilers and allocators.
    for broker in &mut *brokers {
        (workload.run)(broker, warm_up)?;
    }
    for round in 0..rounds {
        for i in 0..brokers.len() {
            let at = (i + round) % brokers.len();
            let broker = &mut brokers[at];
            let figures = (workload.run)(broker, settings)?;
            report.add(workload.name, broker.kind(), round, figures);
        }
    }
    Ok(())
}

fn fresh(
    workload: &Workload,
    rounds: usize,
    products: &[BrokerKind],
    settings: &Settings,
    report: &mut Report,
) -> Result<()> {
    for round in 0..rounds {
        for product in products {
            let (mut broker, ready) = Bench::start(*product)?;
            let mut figures = (workload.run)(&mut broker, settings)?;
            if workload.name == "ready-empty" {
                figures.push(figure(
                    "ready after start",
                    "ms",
                    ready.as_secs_f64() * 1000.0,
                ));
            }
            report.add(workload.name, *product, round, figures);
        }
    }
    Ok(())
}

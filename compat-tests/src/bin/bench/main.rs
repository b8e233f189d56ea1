//! Drives Highwater and Apache Kafka alternately with the same raw load and prints ratios.
//!
//! `cargo run --release -p compat-tests --bin bench -- --help`
//!
//! It measures and asserts nothing. Compare figures of one run only: the two brokers are measured
//! next to each other, round by round, and a ratio is the median of the rounds' ratios.
#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

mod broker;
mod idle;
mod load;
mod process;
mod report;
mod restarts;
mod workloads;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use broker::{Broker, Product, Programs};
use report::{Report, figure};
use workloads::{ALL, Settings, Setup, Workload};

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
    /// Print a Markdown table at the end.
    #[arg(long)]
    markdown: bool,
    /// Measure one broker alone.
    #[arg(long)]
    product: Option<Product>,
    /// List the workloads and stop.
    #[arg(long)]
    list: bool,
    /// The highwater binary; built for release when absent.
    #[arg(long)]
    highwater: Option<PathBuf>,
    /// Folder of Apache Kafka 4.4.0's jars.
    #[arg(long, env = "KAFKA_LIBS")]
    kafka_libs: Option<PathBuf>,
    /// Where data directories are made.
    #[arg(long)]
    data: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let chosen: Vec<&Workload> = ALL
        .iter()
        .filter(|w| arguments.only.is_empty() || arguments.only.iter().any(|o| w.name.contains(o)))
        .collect();
    if arguments.list {
        chosen
            .iter()
            .for_each(|workload| println!("{}", workload.name));
        return Ok(());
    }
    ensure!(
        !chosen.is_empty(),
        "no workload has such a name; see --list"
    );
    let products = match arguments.product {
        Some(product) => vec![product],
        None => vec![Product::Highwater, Product::Kafka],
    };
    let programs = programs(&arguments)?;
    let data = arguments.data.clone().unwrap_or_else(std::env::temp_dir);
    let settings = Settings {
        measured: Duration::from_secs_f64(arguments.seconds),
    };
    let mut report = Report::default();
    let mut shared: Vec<Broker> = Vec::new();
    for workload in chosen {
        let rounds = arguments.rounds.unwrap_or(workload.rounds);
        eprintln!("{}: {rounds} rounds", workload.name);
        let result = match workload.setup {
            Setup::Fresh => {
                shared.clear();
                fresh(
                    workload,
                    rounds,
                    &products,
                    &programs,
                    &data,
                    &settings,
                    &mut report,
                )
            }
            Setup::Shared => {
                if shared.is_empty() {
                    for product in &products {
                        shared.push(Broker::start(*product, &programs, &data)?.0);
                    }
                }
                alternate(workload, rounds, &mut shared, &settings, &mut report)
            }
        };
        if let Err(error) = result {
            eprintln!("{} failed: {error:#}", workload.name);
            shared.clear();
        }
        println!("{}", report.table(Some(workload.name), false));
    }
    if arguments.markdown {
        println!("{}", report.table(None, true));
    }
    Ok(())
}

/// Rounds in which each broker runs in turn; both stay up, one of them idle.
fn alternate(
    workload: &Workload,
    rounds: usize,
    brokers: &mut [Broker],
    settings: &Settings,
    report: &mut Report,
) -> Result<()> {
    // One round for the compilers and allocators.
    for broker in &mut *brokers {
        (workload.run)(broker, settings)?;
    }
    for round in 0..rounds {
        for i in 0..brokers.len() {
            let at = (i + round) % brokers.len();
            let broker = &mut brokers[at];
            let figures = (workload.run)(broker, settings)?;
            report.add(workload.name, broker.product, round, figures);
        }
    }
    Ok(())
}

fn fresh(
    workload: &Workload,
    rounds: usize,
    products: &[Product],
    programs: &Programs,
    data: &std::path::Path,
    settings: &Settings,
    report: &mut Report,
) -> Result<()> {
    for round in 0..rounds {
        for product in products {
            let (mut broker, ready) = Broker::start(*product, programs, data)?;
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

fn programs(arguments: &Arguments) -> Result<Programs> {
    let highwater = match &arguments.highwater {
        Some(path) => path.clone(),
        None if arguments.product == Some(Product::Kafka) => PathBuf::new(),
        None => build_highwater()?,
    };
    let kafka_jars = match &arguments.kafka_libs {
        Some(path) => path.clone(),
        None => {
            let home = std::env::var_os("HOME").context("HOME is not set")?;
            PathBuf::from(home).join(".cache/apache-kafka-4.4.0/libs")
        }
    };
    if arguments.product != Some(Product::Highwater) && !kafka_jars.is_dir() {
        bail!("Apache Kafka's jars are not in {}", kafka_jars.display());
    }
    Ok(Programs {
        highwater,
        kafka_jars,
    })
}

/// Builds the broker beside this program.
fn build_highwater() -> Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--quiet",
            "-p",
            "highwater",
            "--bin",
            "highwater",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()?;
    ensure!(status.success(), "building highwater failed");
    let here = std::env::current_exe()?;
    let release = here
        .parent()
        .and_then(|dir| dir.parent())
        .context("no target directory")?;
    Ok(release.join("release").join("highwater"))
}

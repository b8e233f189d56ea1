//! Runs a cluster of three nodes under load and faults, and checks what its clients were told.
//!
//! `cargo run --release -p compat-tests --bin faults -- --help`
#![allow(
    clippy::print_stdout,
    reason = "the report is what this program is for"
)]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use compat_tests::broker::BrokerKind;
use compat_tests::faults::plan::Kind;
use compat_tests::faults::run::{Program, Settings, run};

/// Which implementation.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Product {
    Highwater,
    Kafka,
}

/// Faults, or a rolling restart, under load.
#[derive(Parser)]
struct Arguments {
    /// Which implementation.
    #[arg(long, default_value = "highwater")]
    product: Product,
    /// For how long faults are begun.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// How long one fault lasts at most; a broker is fenced after 6 s.
    #[arg(long, default_value_t = 15)]
    longest_fault_seconds: u64,
    /// Chooses the faults; the next run takes the next seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many runs.
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// Only these kinds of faults.
    #[arg(long, value_parser = kind)]
    fault: Vec<Kind>,
    /// In place of faults, so many rolling restarts.
    #[arg(long)]
    rolling_restarts: Option<u32>,
    /// Number of partitions.
    #[arg(long, default_value_t = 3)]
    partitions: i32,
    /// Number of producers.
    #[arg(long, default_value_t = 3)]
    producers: u32,
    /// Values a second of each producer.
    #[arg(long, default_value_t = 200)]
    per_second: u32,
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Kind::ALL.map(Kind::name).into();
        format!("one of {} is expected", names.join(", "))
    })
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    ensure!(
        arguments.partitions > 0,
        "at least one partition is expected"
    );
    let broker = match arguments.product {
        Product::Highwater => BrokerKind::Highwater,
        Product::Kafka => BrokerKind::ApacheKafka,
    };
    let mut found = false;
    for seed in arguments.seed..arguments.seed + arguments.runs {
        let program = match arguments.rolling_restarts {
            Some(rounds) => Program::RollingRestart { rounds },
            None => Program::Faults {
                seed,
                kinds: if arguments.fault.is_empty() {
                    Kind::ALL.into()
                } else {
                    arguments.fault.clone()
                },
                lasts: Duration::from_secs(arguments.seconds),
                longest: Duration::from_secs(arguments.longest_fault_seconds),
            },
        };
        let mut settings = Settings::new(program);
        settings.partitions = arguments.partitions;
        settings.clients.producers = arguments.producers;
        settings.clients.per_second = arguments.per_second;
        settings.verbose = true;
        println!("seed {seed}");
        let report = run(broker, &settings)?;
        println!("{report}");
        found |= report.findings().next().is_some();
    }
    Ok(if found {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

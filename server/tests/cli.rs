//! The binary as its users run it: arguments, exit codes, files, signals.

#[path = "cli/arguments.rs"]
mod arguments;
#[path = "cli/process.rs"]
mod process;
#[path = "cli/running.rs"]
mod running;

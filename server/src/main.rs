//! The `highwater` binary.

use std::process::ExitCode;

/// Reserves address space without memory behind it until it is used, so that a length claimed by a client costs
/// nothing, and gives unused memory back.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    highwater::cli::run(std::env::args_os())
}

//! The images and the compose files, really built and run by a Docker daemon of the test's own: what is in them, how
//! they start and stop, what they refuse, and the demonstrations on three brokers.
//!
//! Only root can run a daemon. Elsewhere the tests are skipped, except in CI.

mod bad_input;
mod daemon;
mod demonstrations;
mod images;
mod single;
mod texts;

//! The pages in headless Chromium.

use crate::support::{Playground, drive};

#[test]
fn the_console_shows_brokers_and_partitions_live() {
    drive("console", &Playground::start()).unwrap();
}

#[test]
fn a_killed_leader_is_replaced_and_a_small_isr_refuses() {
    drive("playground", &Playground::start()).unwrap();
}

#[test]
fn every_guided_script_comes_to_its_end() {
    drive("lessons", &Playground::start()).unwrap();
}

//! Coordinators: state that is kept in an internal topic and served by the leader of one of its partitions.

pub mod group;

//! The life of a broker towards the controller (KIP-631): registration, heartbeats, fencing, controlled shutdown.
//!
//! [`Lifecycle`] decides, [`BrokerLifecycle`] carries out.

mod request;
mod state;
mod task;

#[cfg(test)]
mod tests;

pub use state::{
    BrokerState, Communication, HeartbeatAnswer, Lifecycle, LifecycleSettings, RegistrationTimedOut,
};
pub use task::{BrokerLifecycle, LifecycleEnded};

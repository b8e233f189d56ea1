//! Safety rules that can be switched off, to show that the checks would see it if the product lacked one.
//!
//! The product has no such switches. Whoever drives it here, the model, hands in other arguments or skips a call.

use std::fmt;

macro_rules! rules {
    ($( $(#[$doc:meta])* $rule:ident = $name:literal; )*) => {
        /// A safety rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Rule {
            $( $(#[$doc])* $rule, )*
        }

        impl Rule {
            /// All of them.
            pub(crate) const ALL: &'static [Self] = &[$( Self::$rule, )*];

            /// The rule with this name.
            pub(crate) fn named(name: &str) -> Option<Self> {
                match name {
                    $( $name => Some(Self::$rule), )*
                    _ => None,
                }
            }
        }

        impl fmt::Display for Rule {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $( Self::$rule => $name, )*
                })
            }
        }
    };
}

rules! {
    /// A fetch counts only in the leader epoch that it names.
    FetchEpoch = "fetch-epoch";
    /// A follower that diverges is told so, and cuts its log before it appends.
    Divergence = "divergence";
    /// A new follower keeps its log until the leader says where to cut; it does not cut to its high watermark (KIP-101).
    TruncateByEpoch = "truncate-by-epoch";
    /// While a replica is about to join, the high watermark waits for it.
    PendingExpansion = "pending-expansion";
    /// While a replica is about to leave, the high watermark still waits for it.
    PendingShrink = "pending-shrink";
    /// A replica joins only once it has what there was when the leader epoch began.
    EpochStart = "epoch-start";
    /// The high watermark stands still while there are fewer in-sync replicas than min.insync.replicas (KIP-966).
    StrictMinIsr = "strict-min-isr";
    /// acks=all is refused before the append while there are too few in-sync replicas.
    MinIsrBeforeAppend = "min-isr-before-append";
    /// acks=all is answered once the high watermark has passed.
    AckAtHighWatermark = "ack-at-high-watermark";
    /// Consumers read up to the high watermark.
    ReadToHighWatermark = "read-to-high-watermark";
    /// AlterPartition names the partition epoch that it wants to replace.
    PartitionEpoch = "partition-epoch";
    /// Fetches and proposed members name the run of their broker (KIP-903).
    BrokerEpoch = "broker-epoch";
    /// Brokers that are fenced or shutting down are in no ISR (KIP-841).
    ActiveIsr = "active-isr";
    /// Only a replica that has all committed records is elected.
    CleanElection = "clean-election";
    /// A broker that did not stop cleanly says so, and is no eligible leader replica any more (KIP-966).
    CleanShutdown = "clean-shutdown";
    /// A follower takes only the answer to the position that it is at.
    StaleAnswer = "stale-answer";
    /// A follower appends no batches of epochs later than the one that it follows in (KAFKA-18723).
    LaterEpochs = "later-epochs";
    /// An answer that says where the logs diverge says nothing else (KAFKA-14704).
    DivergingHighWatermark = "diverging-high-watermark";
    /// A proposal of which nobody knows whether it was applied stays pending.
    AmbiguousProposal = "ambiguous-proposal";
    /// Brokers see metadata once it is committed.
    CommittedMetadata = "committed-metadata";
    /// A broker acts on no metadata that is older than its own registration.
    OwnRegistration = "own-registration";
    /// A broker leads in a leader epoch of its own: each run that leads has another one.
    OlderMetadata = "older-metadata";
}

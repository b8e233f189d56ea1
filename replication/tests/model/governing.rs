//! What controllers do in the cluster: they are elected and deposed, commit, and change the partition.

use std::sync::Arc;

use highwater_replication::cluster::{ClusterImage, ReplicationDefaults, TopicRules};

use super::broker::Run;
use super::controller::{Controller, Desk, ElectionKind, Wish};
use super::metadata::{TOPIC, partition};
use super::setup::join;
use super::world::{Idle, World};

impl World {
    /// Lets a controller do something, then sends what it answers.
    pub(super) fn with_controller<R>(
        &mut self,
        number: usize,
        act: impl FnOnce(&mut Controller, &mut Desk<'_>) -> R,
    ) -> Option<R> {
        let controller = self.controllers.get_mut(number.checked_sub(1)?)?;
        let mut desk = Desk {
            notes: &mut self.notes,
            now_ms: self.now_ms,
            session_timeout_ms: self.setup.session_timeout_ms,
            off: self.off,
            replies: Vec::new(),
        };
        let result = act(controller, &mut desk);
        for (channel, body) in desk.replies {
            self.network.send(channel, body);
        }
        Some(result)
    }

    pub(super) fn elect_controller(&mut self, number: usize) {
        let image = Arc::clone(self.metadata.latest());
        let term = self.term + 1;
        let elected = self.with_controller(number, |controller, desk| {
            controller.on_elected(term, image, desk);
        });
        if elected.is_some() {
            self.term = term;
            self.elected = number;
        }
    }

    pub(super) fn depose(&mut self, number: usize) -> Result<(), Idle> {
        if number == self.elected {
            return Err("it was elected last");
        }
        let image = Arc::clone(self.metadata.latest());
        self.with_controller(number, |controller, _| controller.on_deposed(image))
            .ok_or("there is no such controller")
    }

    pub(super) fn ask(&mut self, number: usize, wish: &Wish) -> Result<(), Idle> {
        let asked = self.with_controller(number, |controller, desk| {
            let result = controller.on_wish(wish, desk);
            if let Err(error) = &result {
                desk.notes.add(|| format!("C{number}: {error}"));
            }
            result.is_ok()
        });
        let unclean = Wish::Elect(ElectionKind::Unclean);
        self.unclean_was_asked |= *wish == unclean && asked == Some(true);
        match asked {
            None => Err("there is no such controller"),
            Some(false) => Err("refused"),
            Some(true) => Ok(()),
        }
    }

    pub(super) fn commit(&mut self, number: usize) -> Result<(), Idle> {
        let controller = number
            .checked_sub(1)
            .and_then(|index| self.controllers.get(index));
        let controller = controller.ok_or("there is no such controller")?;
        let active = controller.active.as_ref().ok_or("it is not active")?;
        let uncommitted = active
            .uncommitted
            .as_ref()
            .ok_or("it has written nothing")?;
        if number != self.elected {
            return Err("another controller was elected: it finds no majority");
        }
        let entry = uncommitted.entry.clone();
        let before = Arc::clone(self.metadata.latest());
        self.metadata.append(&entry);
        let image = Arc::clone(self.metadata.latest());
        self.on_registrations(&before, &image);
        self.on_partition_changed(&before, &image);
        self.with_controller(number, |controller, desk| {
            controller.on_committed(image, desk)
        });
        Ok(())
    }

    /// Counts registrations of brokers that had not stopped cleanly.
    fn on_registrations(&mut self, before: &ClusterImage, after: &ClusterImage) {
        for broker in self.brokers.values_mut() {
            let epoch = |image: &ClusterImage| image.broker(broker.id).map(|broker| broker.epoch);
            let is_clean = |run: &Run| run.previous_epoch == epoch(before);
            if epoch(before) != epoch(after) && !broker.run.as_ref().is_some_and(is_clean) {
                broker.unclean_registrations += 1;
            }
        }
    }

    /// min.insync.replicas of the topic, as committed.
    pub(crate) fn min_isr(&self) -> usize {
        self.rules().min_insync_replicas
    }

    /// Whether the topic allows unclean elections, as committed.
    pub(crate) fn allows_unclean(&self) -> bool {
        self.rules().unclean_leader_election
    }

    fn rules(&self) -> TopicRules {
        let image = self.metadata.latest();
        let topic = image.topic(TOPIC).expect("the topic is never deleted");
        TopicRules::of(image, topic, &ReplicationDefaults::default())
    }

    fn on_partition_changed(&mut self, before: &ClusterImage, after: &ClusterImage) {
        let (before, after) = (partition(before), partition(after));
        if before == after {
            return;
        }
        self.notes.add(|| {
            let leader = after
                .leader
                .map_or("none".to_owned(), |leader| leader.to_string());
            let mut line = format!(
                "metadata: leader {leader}, ISR {}, leader epoch {}, partition epoch {}",
                join(&after.isr),
                after.leader_epoch,
                after.partition_epoch
            );
            for (name, ids) in [
                ("ELR", &after.eligible_leader_replicas),
                ("last known", &after.last_known_elr),
                ("adding", &after.adding_replicas),
                ("removing", &after.removing_replicas),
            ] {
                if !ids.is_empty() {
                    line += &format!(", {name} {}", join(ids));
                }
            }
            line
        });
        // A replica may join the ISR and be elected in one change, at the end of a reassignment; whether it has all records
        // is checked. An unclean election says of itself that it is one.
        if let Some(leader) = after.leader
            && after.recovering
            && after.leader_epoch > before.leader_epoch
            && !before.isr.contains(&leader)
            && !before.eligible_leader_replicas.contains(&leader)
        {
            self.notes
                .add(|| format!("metadata: the election of {leader} is unclean"));
            self.history.on_unclean_election(after.leader_epoch);
        }
    }
}

use super::super::testing::*;
use super::*;
use crate::state::commit::Acks;
use highwater_storage::PartitionEpoch;
use std::collections::VecDeque;

type Answer = Result<Result<(), AlterPartitionError>, AlterPartitionChannelError>;

/// A controller that gives these answers, one a request, and keeps the requests.
#[derive(Debug, Default)]
struct Controller {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<Vec<AlterPartition>>>,
    asked: Notify,
}

impl AlterPartitionChannel for Controller {
    fn alter_partitions(
        &self,
        partitions: Vec<AlterPartition>,
    ) -> BoxFuture<'_, Result<Vec<AlteredPartitionResponse>, AlterPartitionChannelError>> {
        self.requests.lock().push(partitions.clone());
        self.asked.notify_one();
        let answer = self.answers.lock().pop_front();
        Box::pin(async move {
            let Some(answer) = answer else {
                return std::future::pending().await;
            };
            let verdict = answer?;
            let respond = |asked: AlterPartition| AlteredPartitionResponse {
                topic_id: asked.topic_id,
                partition: asked.partition,
                result: verdict.map(|()| AlteredPartition {
                    leader: Some(B1),
                    leader_epoch: asked.proposal.leader_epoch,
                    partition_epoch: PartitionEpoch(asked.proposal.partition_epoch.0 + 1),
                    isr: asked
                        .proposal
                        .isr
                        .iter()
                        .map(|member| member.broker)
                        .collect(),
                }),
            };
            Ok(partitions.into_iter().map(respond).collect())
        })
    }
}

/// Lets broker 2 catch up, and the queue run against a controller that gives these answers, until
/// it has been asked `requests` times.
async fn run(fixture: &Fixture, answers: Vec<Answer>, requests: usize) -> Arc<Controller> {
    let controller = Arc::new(Controller {
        answers: Mutex::new(answers.into()),
        ..Controller::default()
    });
    fixture.append(1, Acks::Leader).expect("appended");
    fixture.fetch(B2, 1);
    let channel = Arc::clone(&controller) as Arc<dyn AlterPartitionChannel>;
    let queue = fixture.context.proposals();
    let asked = async {
        while controller.requests.lock().len() < requests {
            controller.asked.notified().await;
        }
        // The queue runs first when both are ready, so the last answer has been taken note of.
        tokio::task::yield_now().await;
    };
    tokio::select! {
        biased;
        () = queue.run(channel) => unreachable!("it runs for ever"),
        () = asked => {}
    }
    controller
}

#[tokio::test(start_paused = true)]
async fn a_proposal_is_sent_and_its_answer_taken_note_of() {
    let fixture = Fixture::leading(1, &[B1]);
    let controller = run(&fixture, vec![Ok(Ok(()))], 1).await;
    assert_eq!(fixture.partition.view().isr, [B1, B2]);
    assert!(fixture.context.proposals().is_empty());
    let requests = controller.requests.lock();
    assert_eq!(requests[0].len(), 1);
    assert_eq!(requests[0][0].topic_id, fixture.partition.topic_id());
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_sent_again_until_it_is_answered() {
    let fixture = Fixture::leading(1, &[B1]);
    let unreachable = || Err(AlterPartitionChannelError("no controller".to_owned()));
    let answers = vec![
        unreachable(),
        unreachable(),
        Ok(Err(AlterPartitionError::Other(41))),
        Ok(Ok(())),
    ];
    let controller = run(&fixture, answers, 4).await;
    assert_eq!(fixture.partition.view().isr, [B1, B2]);
    let requests = controller.requests.lock();
    assert!(requests.iter().all(|request| request == &requests[0]));
}

#[tokio::test(start_paused = true)]
async fn a_refused_proposal_is_not_sent_again() {
    for error in [
        AlterPartitionError::IneligibleReplica,
        AlterPartitionError::FencedLeaderEpoch,
    ] {
        let fixture = Fixture::leading(1, &[B1]);
        run(&fixture, vec![Ok(Err(error))], 1).await;
        assert_eq!(fixture.partition.view().isr, [B1], "{error}");
        assert!(fixture.context.proposals().is_empty(), "{error}");
    }
}

#[test]
fn the_newest_proposal_of_a_partition_takes_the_place_of_the_one_before() {
    let fixture = Fixture::leading(1, &[B1]);
    fixture.fetch(B2, 0);
    let first = fixture.proposal().expect("caught up");
    fixture.become_as(leadership(Some(B1), 2, 2, &[B1]));
    fixture.fetch(B2, 0);
    let second = fixture.proposal().expect("again");
    assert_ne!(first, second);
    let queue = fixture.context.proposals();
    assert_eq!(queue.len(), 1);
    queue.put_back([Waiting {
        partition: Arc::clone(&fixture.partition),
        proposal: first,
    }]);
    assert_eq!(fixture.proposal(), Some(second));
}

//! Each check finds the violation that is planted for it, and nothing in a good history.

use super::*;

fn send(producer: u32, value: Value, partition: i32) -> Event {
    Event::Send {
        producer,
        value,
        partition,
    }
}

fn acknowledged(producer: u32, value: Value, (partition, offset): Place) -> Event {
    Event::Acknowledged {
        producer,
        value,
        partition,
        offset: Some(offset),
    }
}

fn poll(consumer: u32, records: &[(Place, Value)]) -> Event {
    let records = records.iter().map(|&((partition, offset), value)| Polled {
        partition,
        offset,
        value,
    });
    Event::Poll {
        consumer,
        records: records.collect(),
    }
}

/// Two producers and two consumers on two partitions; all is well.
fn good() -> Vec<Event> {
    vec![
        send(1, 10, 0),
        send(1, 11, 0),
        send(2, 20, 0),
        send(2, 21, 1),
        acknowledged(1, 10, (0, 0)),
        acknowledged(2, 20, (0, 1)),
        acknowledged(1, 11, (0, 2)),
        acknowledged(2, 21, (1, 0)),
        Event::Assigned { consumer: 1 },
        Event::Assigned { consumer: 2 },
        poll(1, &[((0, 0), 10), ((0, 1), 20), ((1, 0), 21)]),
        poll(1, &[((0, 2), 11)]),
        poll(2, &[((1, 0), 21), ((0, 0), 10), ((0, 1), 20), ((0, 2), 11)]),
    ]
}

fn found(history: &[Event]) -> Vec<Finding> {
    check(history).findings.into_iter().collect()
}

#[test]
fn nothing_is_found_in_a_good_history_and_all_is_counted() {
    let verdict = check(&good());
    assert_eq!(verdict.findings, BTreeSet::new());
    let counts = (
        verdict.sent,
        verdict.acknowledged,
        verdict.failed,
        verdict.polled,
    );
    assert_eq!(counts, (4, 4, 0, 8));
    assert!(verdict.checks > 20, "{verdict}");
    assert_eq!(check(&[]).findings, BTreeSet::new());
}

#[test]
fn a_lost_write_is_an_acknowledged_value_that_readers_went_past() {
    let mut history = good();
    // Offset 1 is gone from the log: 20 was acknowledged there.
    history[10] = poll(1, &[((0, 0), 10), ((1, 0), 21)]);
    history[12] = poll(2, &[((1, 0), 21), ((0, 0), 10), ((0, 2), 11)]);
    let lost = Finding::LostWrite(20, (0, 1));
    assert!(found(&history).contains(&lost), "{:?}", found(&history));
}

#[test]
fn an_acknowledged_value_at_the_end_that_nobody_reads_is_unseen() {
    let mut history = good();
    history.push(send(1, 12, 0));
    history.push(acknowledged(1, 12, (0, 3)));
    assert_eq!(found(&history), [Finding::Unseen(12, (0, 3))]);
    history.push(poll(1, &[((0, 3), 12)]));
    assert_eq!(found(&history), []);
}

#[test]
fn a_value_that_was_not_acknowledged_may_be_there_or_not() {
    let mut history = good();
    history.push(send(1, 12, 0));
    assert_eq!(found(&history), []);
    history.push(poll(1, &[((0, 3), 12)]));
    assert_eq!(found(&history), []);
    history.push(Event::Failed {
        producer: 1,
        value: 12,
        certain: false,
    });
    assert_eq!(found(&history), []);
}

#[test]
fn a_value_at_two_offsets_is_a_duplicate() {
    let mut history = good();
    history.push(poll(1, &[((0, 3), 10)]));
    assert_eq!(found(&history), [Finding::Duplicate(10, (0, 0), (0, 3))]);
    // Also when only the acknowledgement says so.
    let mut history = good();
    history[4] = acknowledged(1, 10, (0, 9));
    let duplicate = Finding::Duplicate(10, (0, 0), (0, 9));
    assert!(found(&history).contains(&duplicate));
}

#[test]
fn two_values_at_one_offset_are_inconsistent() {
    let mut history = good();
    history.push(send(2, 22, 0));
    history.push(poll(2, &[((0, 3), 22)]));
    history.push(send(1, 12, 0));
    history.push(poll(1, &[((0, 3), 12)]));
    assert_eq!(
        found(&history),
        [Finding::InconsistentOffset((0, 3), 12, 22)]
    );
}

#[test]
fn two_acknowledgements_of_one_offset_are_inconsistent() {
    // As with a broker that answers offset 0 to whatever it does not know.
    let mut history = good();
    history.push(send(2, 22, 0));
    history.push(acknowledged(2, 22, (0, 0)));
    let inconsistent = Finding::InconsistentOffset((0, 0), 10, 22);
    assert!(found(&history).contains(&inconsistent));
}

#[test]
fn a_value_that_nobody_sent_is_a_phantom() {
    let mut history = good();
    history.push(poll(1, &[((0, 3), 99)]));
    assert_eq!(found(&history), [Finding::Phantom(99, (0, 3))]);
}

#[test]
fn a_value_that_certainly_failed_may_not_be_read() {
    let mut history = good();
    history.push(send(1, 12, 0));
    history.push(Event::Failed {
        producer: 1,
        value: 12,
        certain: true,
    });
    assert_eq!(found(&history), []);
    history.push(poll(1, &[((0, 3), 12)]));
    assert_eq!(found(&history), [Finding::FailedWriteRead(12, (0, 3))]);
}

#[test]
fn a_consumer_may_not_leave_out_a_value() {
    let mut history = good();
    history[12] = poll(2, &[((1, 0), 21), ((0, 0), 10), ((0, 2), 11)]);
    let skip = Finding::PollSkip {
        consumer: 2,
        from: (0, 0),
        left_out: 1,
        to: 2,
    };
    assert_eq!(found(&history), [skip]);
}

#[test]
fn offsets_without_values_are_not_left_out() {
    // As those of control batches and of batches that a time-out cut short.
    let mut history = good();
    history.push(send(1, 12, 0));
    history.push(acknowledged(1, 12, (0, 7)));
    history.push(poll(1, &[((0, 7), 12)]));
    history.push(poll(2, &[((0, 7), 12)]));
    assert_eq!(found(&history), []);
}

#[test]
fn a_consumer_may_not_go_back() {
    for again in [1, 2] {
        let mut history = good();
        let value = if again == 1 { 20 } else { 11 };
        history.push(poll(2, &[((0, again), value)]));
        let back = Finding::NonMonotonicPoll {
            consumer: 2,
            from: (0, 2),
            to: again,
        };
        assert_eq!(found(&history), [back]);
    }
}

#[test]
fn a_consumer_that_is_assigned_anew_may_start_elsewhere() {
    let mut history = good();
    history.push(Event::Assigned { consumer: 2 });
    history.push(poll(2, &[((0, 0), 10)]));
    history.push(Event::Assigned { consumer: 2 });
    history.push(poll(2, &[((0, 2), 11)]));
    assert_eq!(found(&history), []);
}

#[test]
fn one_producers_values_stand_in_the_order_of_sending() {
    let mut history = good();
    // 11 is sent after 10, and before 12, which gets an earlier offset than 11.
    history.splice(
        8..8,
        [
            send(1, 12, 0),
            send(1, 13, 0),
            acknowledged(1, 12, (0, 4)),
            acknowledged(1, 13, (0, 3)),
        ],
    );
    history.push(poll(1, &[((0, 3), 13), ((0, 4), 12)]));
    let order = Finding::NonMonotonicSend {
        producer: 1,
        first: (12, 4),
        second: (13, 3),
        partition: 0,
    };
    assert_eq!(found(&history), [order]);
}

#[test]
fn what_a_client_library_takes_for_the_end_is_found() {
    let mut history = good();
    history.push(Event::PositionLost { consumer: 2 });
    let reason = "OutOfOrderSequenceNumber".to_owned();
    history.push(Event::ProducerLost {
        producer: 1,
        reason: reason.clone(),
    });
    assert_eq!(
        found(&history),
        [Finding::PositionLost(2), Finding::ProducerLost(1, reason)]
    );
}

#[test]
fn value_acknowledged_without_an_offset_must_be_read_in_its_partition() {
    let somewhere = |partition| Event::Acknowledged {
        producer: 1,
        value: 12,
        partition,
        offset: None,
    };
    let mut history = good();
    history.extend([send(1, 12, 0), somewhere(0)]);
    assert_eq!(found(&history), [Finding::UnseenAnywhere(12, 0)]);
    history.extend([poll(1, &[((0, 3), 12)]), poll(2, &[((0, 3), 12)])]);
    assert_eq!(found(&history), []);
    history.push(somewhere(1));
    assert_eq!(found(&history), [Finding::UnseenAnywhere(12, 1)]);
}

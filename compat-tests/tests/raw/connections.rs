//! Connections that come, go, stay idle or do not read (A16, A18, I13).

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::each_broker::for_each_broker_with;
use compat_tests::process::eventually;
use compat_tests::raw::Batch;
use kafka_protocol::messages::{FetchRequest, MetadataRequest};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::process::{descriptors, resident_bytes};
use crate::support::{
    FETCH, batch, connect, create_topic, fetch_partition, fetch_request, on_highwater, produce_ok,
};

fn assert_serves(broker: &Broker) {
    connect(broker)
        .call(9, &MetadataRequest::default())
        .expect("it still serves");
}

#[test]
fn slow_readers_pin_little_memory_and_hold_up_nobody() {
    on_highwater(&BrokerOptions::new(), |broker| {
        create_topic(broker, "slow", 1);
        let mut connection = connect(broker);
        for _ in 0..8 {
            produce_ok(&mut connection, "slow", 0, Batch::of_size(900_000).encode());
        }
        let before = resident_bytes(broker);
        let part = fetch_partition(0, 0).with_partition_max_bytes(8 << 20);
        let request = fetch_request("slow", vec![part]);
        let mut slow: Vec<_> = (0..4).map(|_| connect(broker)).collect();
        for connection in &mut slow {
            for _ in 0..125 {
                connection.send(FETCH, &request).unwrap();
            }
        }
        for _ in 0..20 {
            assert_serves(broker);
        }
        // 500 answers of 7 MB are asked for.
        let grown = resident_bytes(broker).saturating_sub(before);
        assert!(grown < 64 << 20, "slow readers took {} MiB", grown >> 20);
        // What was asked for still comes, in order and whole.
        for _ in 0..10 {
            let reply = slow[0].receive::<FetchRequest>(FETCH).unwrap();
            let records = reply.responses[0].partitions[0].records.as_ref().unwrap();
            assert!(records.len() >= 7_200_000, "{}", records.len());
        }
    });
}

#[test]
fn ten_thousand_connects_and_drops_leave_no_descriptors() {
    // With a short backlog a busy machine drops a SYN now and then, and each costs a second.
    let options = BrokerOptions::new().set("socket.listen.backlog.size", 4000);
    on_highwater(&options, |broker| {
        assert_serves(broker);
        let before = descriptors(broker);
        for round in 0..10_000 {
            let stream = TcpStream::connect(broker.address()).expect("it accepts");
            if round % 100 == 0 {
                assert_serves(broker);
            }
            drop(stream);
        }
        eventually(
            Duration::from_secs(30),
            "descriptors return to the base",
            || (descriptors(broker) <= before + 4).then_some(()),
        );
        assert_serves(broker);
    });
}

#[test]
fn running_out_of_descriptors_does_not_end_accepting() {
    on_highwater(&BrokerOptions::new(), |broker| {
        create_topic(broker, "descriptors", 1);
        produce_ok(&mut connect(broker), "descriptors", 0, batch(1).encode());
        let used = descriptors(broker) as u64;
        let pid = broker.id().and_then(|id| Pid::from_raw(id as i32));
        let limit = Rlimit {
            current: Some(used + 20),
            maximum: Some(used + 4000),
        };
        prlimit(pid, Resource::Nofile, limit).expect("the limit is set");
        let open: Vec<_> = (0..100)
            .map(|_| TcpStream::connect(broker.address()).expect("the backlog takes it"))
            .collect();
        eventually(Duration::from_secs(10), "all descriptors are used", || {
            (descriptors(broker) as u64 >= used + 19).then_some(())
        });
        drop(open);
        eventually(Duration::from_secs(30), "it accepts again", || {
            let mut connection = connect(broker);
            connection
                .stream()
                .set_read_timeout(Some(Duration::from_secs(2)))
                .ok()?;
            connection.call(9, &MetadataRequest::default()).ok()
        });
        produce_ok(&mut connect(broker), "descriptors", 0, batch(1).encode());
    });
}

#[test]
fn idle_connections_are_closed_also_with_a_parked_request() {
    let options = BrokerOptions::new().set("connections.max.idle.ms", 2000);
    for_each_broker_with(&options, |broker| {
        create_topic(broker, "idle", 1);
        let mut parked = connect(broker);
        let request = fetch_request("idle", vec![fetch_partition(0, 0)]).with_max_wait_ms(6000);
        parked.send(FETCH, &request).unwrap();
        let mut idle = connect(broker);
        idle.call(9, &MetadataRequest::default()).unwrap();
        let began = Instant::now();
        let mut byte = [0];
        // A clean end, no reset.
        assert_eq!(
            idle.stream()
                .read(&mut byte)
                .expect("an end without an error"),
            0
        );
        assert!(
            began.elapsed() >= Duration::from_millis(1900),
            "not before its time"
        );
        // The one that waits for its answer too, before that is due: no byte of it comes. The client asks again.
        assert_eq!(
            parked
                .stream()
                .read(&mut byte)
                .expect("an end without an error"),
            0
        );
    });
}

#[test]
fn clients_that_vanish_in_the_middle_leave_nothing() {
    on_highwater(&BrokerOptions::new(), |broker| {
        create_topic(broker, "vanish", 1);
        let mut producer = connect(broker);
        produce_ok(&mut producer, "vanish", 0, Batch::of_size(900_000).encode());
        let before = descriptors(broker);
        let large = fetch_request("vanish", vec![fetch_partition(0, 0)]);
        let parked = fetch_request("vanish", vec![fetch_partition(0, 1)]).with_max_wait_ms(3000);
        for i in 0..200 {
            let mut connection = connect(broker);
            match i % 3 {
                // In the middle of a frame, of an answer, of a wait.
                0 => connection.write(&[0, 0, 1, 0, 0, 3, 0, 1]).unwrap(),
                1 => {
                    connection.send(FETCH, &large).unwrap();
                    let mut some = [0; 1000];
                    connection.stream().read_exact(&mut some).unwrap();
                }
                _ => {
                    connection.send(FETCH, &parked).unwrap();
                }
            }
        }
        eventually(
            Duration::from_secs(30),
            "descriptors return to the base",
            || (descriptors(broker) <= before + 4).then_some(()),
        );
        assert_serves(broker);
    });
}

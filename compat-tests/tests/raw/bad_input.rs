//! Bytes that are no requests, and requests that claim more than they hold (A12, A13).

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::each_broker::for_each_broker;
use compat_tests::process::free_port;
use compat_tests::raw::frame_of;
use kafka_protocol::messages::{
    ApiVersionsRequest, MetadataRequest, OffsetCommitRequest, RequestKind,
};

use crate::compare::subject;
use crate::process::resident_bytes;
use crate::requests::variants;
use crate::support::{connect, on_highwater, s};
use crate::versions::SERVED;

/// `socket.request.max.bytes` by default.
const MAX_FRAME_BYTES: i32 = 100 << 20;

fn assert_serves(broker: &Broker) {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(s("raw"))
        .with_client_software_version(s("1"));
    assert_eq!(
        connect(broker)
            .call(3, &request)
            .expect("it still serves")
            .error_code,
        0
    );
}

/// Sends bytes; whether the broker closed the connection without an answer.
fn is_closed_after(broker: &Broker, bytes: &[u8]) -> bool {
    let mut connection = connect(broker);
    connection.write(bytes).unwrap();
    connection.read_frame().unwrap().is_none()
}

#[test]
fn lengths_that_cannot_be_close_the_connection() {
    for_each_broker(|broker| {
        for length in [-1, i32::MIN, i32::MAX, MAX_FRAME_BYTES + 1, 0] {
            let bytes = length.to_be_bytes();
            assert!(is_closed_after(broker, &bytes), "length {length}");
        }
        // Too short for any header.
        for length in 1..8_i32 {
            let mut bytes = length.to_be_bytes().to_vec();
            bytes.resize(4 + length as usize, 0);
            assert!(is_closed_after(broker, &bytes), "length {length}");
        }
        assert_serves(broker);
    });
}

#[test]
fn foreign_protocols_close_the_connection() {
    for_each_broker(|broker| {
        let tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
        let foreign: [&[u8]; 5] = [
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"POST /topics HTTP/1.1\r\n\r\n",
            tls,
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ];
        for bytes in foreign {
            assert!(
                is_closed_after(broker, bytes),
                "{:?}",
                String::from_utf8_lossy(bytes)
            );
        }
        assert_serves(broker);
    });
}

#[test]
fn largest_frame_is_waited_for_and_takes_no_memory_before_it_arrives() {
    on_highwater(&BrokerOptions::new(), |broker| {
        assert_serves(broker);
        let before = resident_bytes(broker);
        let mut open = Vec::new();
        for i in 0..200 {
            let mut connection = connect(broker);
            connection.write(&MAX_FRAME_BYTES.to_be_bytes()).unwrap();
            // A produce header and some of what it promises; half of them fall silent at once.
            if i % 2 == 0 {
                connection
                    .write(&[0, 0, 0, 9, 0, 0, 0, 1, 0, 3, b'r', b'a', b'w', 0])
                    .unwrap();
                connection.write(&[7; 10_000]).unwrap();
            }
            open.push(connection);
        }
        assert_serves(broker);
        let grown = resident_bytes(broker).saturating_sub(before);
        assert!(grown < 64 << 20, "200 promises took {} MiB", grown >> 20);
        // They are still waited for.
        for connection in &mut open {
            connection.stream().set_nonblocking(true).unwrap();
            let mut byte = [0];
            let error = connection
                .stream()
                .read(&mut byte)
                .expect_err("neither data nor an end");
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        }
    });
}

#[test]
fn foreign_lengths_on_many_connections_leave_memory_flat() {
    on_highwater(&BrokerOptions::new(), |broker| {
        let claims: [&[u8]; 4] = [
            b"GET / HTTP/1.1\r\n\r\n",
            b"\x7f\xff\xff\xff",
            b"\xff\xff\xff\xff",
            &[0, 0, 0, 0],
        ];
        for claim in claims {
            assert!(is_closed_after(broker, claim));
        }
        let before = resident_bytes(broker);
        for _ in 0..1000 {
            for claim in claims {
                assert!(is_closed_after(broker, claim));
            }
        }
        let grown = resident_bytes(broker).saturating_sub(before);
        assert!(grown < 16 << 20, "4,000 refusals took {} MiB", grown >> 20);
        assert_serves(broker);
    });
}

/// Sends a frame and the end of the stream, and takes what comes back within a moment.
fn send_and_leave(broker: &Broker, frame: &[u8]) {
    let mut stream = TcpStream::connect(broker.address()).expect("it accepts");
    stream
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    stream.set_nodelay(true).unwrap();
    if stream.write_all(frame).is_err() || stream.shutdown(Shutdown::Write).is_err() {
        return; // It has closed already.
    }
    let mut buffer = [0; 4096];
    while let Ok(1..) = stream.read(&mut buffer) {}
}

/// An array's count of 2^31 - 1, or as a compact one 2^32 - 2, and a few bytes behind it.
const HUGE_COUNTS: [&[u8]; 3] = [
    &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0],
    &[0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0],
    &[0xff, 0xff, 0xff, 0xff, 0x07, 1, 1, 1],
];

/// The frames: in the smallest request of each API and version, a huge count stands at each place
/// where an array, a string or anything else may be.
fn frames_with_huge_counts(broker: &Broker) -> Vec<Vec<u8>> {
    let on = subject(broker, "huge");
    let mut frames = Vec::new();
    for (key, min, max) in SERVED {
        for version in *min..=*max {
            let Some((_, request)) = variants(*key, version, &on).into_iter().next() else {
                continue;
            };
            let body = encoded(&request, version);
            let places = body.len().min(120);
            for place in 0..=places {
                for count in HUGE_COUNTS {
                    let cut = [&body[..place], count].concat();
                    frames.push(frame_of(*key as i16, version, 1, &cut).to_vec());
                }
            }
        }
    }
    frames
}

fn encoded(request: &RequestKind, version: i16) -> Vec<u8> {
    let mut body = bytes::BytesMut::new();
    request.encode(&mut body, version).expect("it encodes");
    body.to_vec()
}

#[test]
fn huge_counts_at_every_place_of_every_api_cost_no_memory() {
    on_highwater(&BrokerOptions::new(), |broker| {
        let frames = frames_with_huge_counts(broker);
        assert!(frames.len() > 1000, "only {} frames", frames.len());
        let before = resident_bytes(broker);
        std::thread::scope(|scope| {
            for part in frames.chunks(frames.len().div_ceil(16)) {
                let broker = &*broker;
                scope.spawn(move || part.iter().for_each(|frame| send_and_leave(broker, frame)));
            }
        });
        assert_serves(broker);
        if broker.is_highwater() {
            let grown = resident_bytes(broker).saturating_sub(before);
            assert!(
                grown < 64 << 20,
                "{} frames took {} MiB",
                frames.len(),
                grown >> 20
            );
            assert!(!broker.log().contains("panicked"), "a handler panicked");
        }
    });
}

#[test]
fn a_huge_count_closes_the_connection() {
    for_each_broker(|broker| {
        for version in 0..=8_i16 {
            let metadata = frame_of(3, version, 1, &0x7fff_ffff_i32.to_be_bytes());
            assert!(is_closed_after(broker, &metadata), "Metadata v{version}");
        }
        for version in 9..=12 {
            let metadata = frame_of(3, version, 1, &[0xff, 0xff, 0xff, 0xff, 0x0f]);
            assert!(is_closed_after(broker, &metadata), "Metadata v{version}");
        }
        // Tags: 2^32 - 1 of them, or one that claims 4 GB.
        for tags in [
            &[0xff, 0xff, 0xff, 0xff, 0x0f][..],
            &[1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f],
        ] {
            let body = [&[1, 1, 0][..], tags].concat();
            assert!(
                is_closed_after(broker, &frame_of(3, 12, 1, &body)),
                "tags {tags:?}"
            );
        }
        assert_serves(broker);
    });
}

#[test]
fn null_where_none_may_be_closes_the_connection() {
    for_each_broker(|broker| {
        let null_array = (-1_i32).to_be_bytes();
        assert!(
            is_closed_after(broker, &frame_of(3, 0, 1, &null_array)),
            "Metadata v0"
        );
        // DescribeGroups v0 and a null group in a list of one
        assert!(
            is_closed_after(broker, &frame_of(15, 0, 1, &null_array)),
            "DescribeGroups"
        );
        let null_string = [0, 0, 0, 1, 0xff, 0xff];
        assert!(
            is_closed_after(broker, &frame_of(15, 0, 1, &null_string)),
            "a null group"
        );
        // Heartbeat v4: null compact group id
        assert!(
            is_closed_after(broker, &frame_of(12, 4, 1, &[0])),
            "Heartbeat"
        );
        assert_serves(broker);
    });
}

#[test]
fn other_negative_counts_are_read_as_null() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        for count in [-1_i32, -2, i32::MIN] {
            connection.send_body(3, 1, &count.to_be_bytes()).unwrap();
            let reply = connection.receive::<MetadataRequest>(1);
            assert!(reply.is_ok(), "count {count}: {reply:?}");
        }
        // Flexible: -1, -2 and the smallest, then the booleans and no tagged fields.
        let negative: [&[u8]; 3] = [
            &[0],
            &[0xff, 0xff, 0xff, 0xff, 0x0f],
            &[0x81, 0x80, 0x80, 0x80, 0x08],
        ];
        for count in negative {
            let body = [count, &[1, 0, 0]].concat();
            connection.send_body(3, 12, &body).unwrap();
            let reply = connection.receive::<MetadataRequest>(12);
            assert!(reply.is_ok(), "count {count:x?}: {reply:?}");
        }
    });
}

#[test]
fn other_negative_lengths_of_text_are_read_as_null() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        for length in [-1_i16, -2, i16::MIN] {
            // FindCoordinator v0 may not have a null key.
            let body = [&length.to_be_bytes()[..], &[0; 8]].concat();
            assert!(
                is_closed_after(broker, &frame_of(10, 0, 1, &body)),
                "length {length}"
            );
            // OffsetCommit v7: group "g", generation, member "", instance id null, no topics.
            let body = [
                &[0, 1, b'g', 0xff, 0xff, 0xff, 0xff, 0, 0][..],
                &length.to_be_bytes(),
                &[0; 4],
            ]
            .concat();
            connection.send_body(8, 7, &body).unwrap();
            let reply = connection.receive::<OffsetCommitRequest>(7);
            assert!(reply.is_ok(), "length {length}: {reply:?}");
        }
        // A client id, that of the header: the frame of a Metadata v1 request of no topics.
        for length in [-1_i16, -2, i16::MIN] {
            let mut frame = vec![0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 7];
            frame.extend(length.to_be_bytes());
            frame.extend([0; 4]);
            connection.write(&frame).unwrap();
            let reply = connection.read_frame().unwrap().expect("an answer");
            assert_eq!(reply.correlation_id(), 7, "length {length}");
        }
    });
}

#[test]
fn a_string_of_more_than_32767_bytes_closes_the_connection_in_flexible_versions_too() {
    for_each_broker(|broker| {
        // Heartbeat v4: group, generation, member "m", null instance id, no tagged fields.
        for (bytes, closes) in [(32_767_u32, false), (32_768, true)] {
            let length = bytes + 1;
            let mut body = vec![
                length as u8 | 0x80,
                (length >> 7) as u8 | 0x80,
                (length >> 14) as u8,
            ];
            body.resize(body.len() + bytes as usize, b'a');
            body.extend([0, 0, 0, 0, 2, b'm', 0, 0]);
            let frame = frame_of(12, 4, 1, &body);
            if closes {
                assert!(is_closed_after(broker, &frame), "{bytes} bytes");
            } else {
                let mut connection = connect(broker);
                connection.write(&frame).unwrap();
                assert!(connection.read_frame().unwrap().is_some(), "{bytes} bytes");
            }
        }
        assert_serves(broker);
    });
}

#[test]
fn text_that_is_no_utf_8_leaves_the_broker_serving() {
    for_each_broker(|broker| {
        // Metadata v1 of one topic whose name is three bytes of no text.
        send_and_leave(
            broker,
            &frame_of(3, 1, 1, &[0, 0, 0, 1, 0, 3, 0xff, 0xfe, 0xc0]),
        );
        assert_serves(broker);
    });
}

#[test]
fn bytes_behind_a_request_are_ignored() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        connection.send_body(3, 1, &[0, 0, 0, 0, 9, 9, 9]).unwrap();
        connection.receive::<MetadataRequest>(1).unwrap();
    });
}

#[test]
fn request_that_comes_byte_by_byte_is_answered() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        let frame = frame_of(3, 1, 77, &[0, 0, 0, 0]);
        for byte in &frame[..] {
            connection.write(&[*byte]).unwrap();
        }
        assert_eq!(
            connection
                .read_frame()
                .unwrap()
                .expect("an answer")
                .correlation_id(),
            77
        );
        // And many in one piece.
        connection.write(&frame.repeat(50)).unwrap();
        for _ in 0..50 {
            assert_eq!(
                connection
                    .read_frame()
                    .unwrap()
                    .expect("an answer")
                    .correlation_id(),
                77
            );
        }
    });
}

#[test]
fn mutated_requests_never_end_the_broker() {
    on_highwater(&BrokerOptions::new(), |broker| {
        let on = subject(broker, "mutated");
        let mut bases = Vec::new();
        for (key, min, max) in SERVED {
            for version in *min..=*max {
                for (_, request) in variants(*key, version, &on) {
                    let body = encoded(&request, version);
                    bases.push(frame_of(*key as i16, version, 1, &body).to_vec());
                }
            }
        }
        let total = 20_000;
        let before = resident_bytes(broker);
        std::thread::scope(|scope| {
            for seed in 1..=16_u64 {
                let (broker, bases) = (&*broker, &bases);
                scope.spawn(move || {
                    let mut state = seed;
                    let mut random = |below: usize| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(seed);
                        (state >> 33) as usize % below
                    };
                    for _ in 0..total / 16 {
                        let mut frame = bases[random(bases.len())].clone();
                        // The length, key and version stay: those have tests of their own.
                        for _ in 0..=random(4) {
                            let at = 8 + random(frame.len() - 8);
                            frame[at] = match random(4) {
                                0 => 0xff,
                                1 => 0,
                                2 => 0x80,
                                _ => random(256) as u8,
                            };
                        }
                        send_and_leave(broker, &frame);
                    }
                });
            }
        });
        assert_serves(broker);
        if broker.is_highwater() {
            let grown = resident_bytes(broker).saturating_sub(before);
            assert!(
                grown < 256 << 20,
                "mutated requests took {} MiB",
                grown >> 20
            );
            let log = broker.log();
            let panic = log.lines().find(|line| line.contains("panicked"));
            assert!(panic.is_none(), "{panic:?}");
        }
    });
}

#[test]
fn refused_input_is_counted() {
    let port = free_port().expect("a port");
    let options = BrokerOptions::new().set("http.listeners", format!("127.0.0.1:{port}"));
    on_highwater(&options, |broker| {
        let refused = || -> u64 {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the HTTP port");
            stream
                .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                .unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200"), "{text}");
            let counts = text
                .lines()
                .filter(|line| line.starts_with("highwater_network_refused_total{"))
                .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
            counts.sum()
        };
        let mut before = refused();
        let inputs: [(&str, Vec<u8>); 6] = [
            ("HTTP", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
            ("a negative length", vec![0xff; 4]),
            ("length 0", vec![0; 4]),
            ("an unknown api", frame_of(999, 0, 1, &[]).to_vec()),
            ("an unserved version", frame_of(3, 99, 1, &[]).to_vec()),
            (
                "a body that does not parse",
                frame_of(3, 1, 1, &[0, 0, 0, 9]).to_vec(),
            ),
        ];
        for (what, bytes) in inputs {
            assert!(is_closed_after(broker, &bytes), "{what}");
            let after = refused();
            assert_eq!(after, before + 1, "{what} is counted");
            before = after;
        }
    });
}

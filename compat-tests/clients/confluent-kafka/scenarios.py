"""What confluent-kafka does beyond the common commands; see tests/clients/confluent.rs.

Each scenario is `SCENARIO BOOTSTRAP TOPIC ARGUMENTS...`.
"""

import json
import os
import sys
import time

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)


def consumer(bootstrap, group="unused", **more):
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    return Consumer({**settings, **{key.replace("_", "."): value for key, value in more.items()}})


def read(reader, count):
    messages = []
    while len(messages) < count:
        message = reader.poll(30)
        assert message is not None, f"{len(messages)} of {count} records within 30 s"
        if message.error():
            raise KafkaException(message.error())
        messages.append(message)
    return messages


def send(bootstrap, topic, records, **settings):
    delivered = []

    def on_delivery(error, message):
        assert error is None, error
        delivered.append(message)

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})
    for record in records:
        producer.produce(topic, on_delivery=on_delivery, **record)
    assert producer.flush(30) == 0
    return delivered


def seek(bootstrap, topic):
    """Seek to any offset, to both ends, and by time; watermarks and position follow."""
    base = int(time.time() * 1000) - 100_000
    # two records to a time stamp, so that the first of equals can be told
    send(bootstrap, topic, [{"value": f"{i}", "partition": 0, "timestamp": base + i // 2 * 2} for i in range(100)])
    reader = consumer(bootstrap)
    zero = TopicPartition(topic, 0)
    assert reader.get_watermark_offsets(zero, 10) == (0, 100)
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    assert read(reader, 1)[0].offset() == 0
    for offset in [99, 0, 50, 51, 7]:
        reader.seek(TopicPartition(topic, 0, offset))
        message = read(reader, 1)[0]
        assert (message.offset(), message.value()) == (offset, b"%d" % offset)
        assert reader.position([zero])[0].offset == offset + 1
    for moment, offset in [(base - 1, 0), (base, 0), (base + 1, 2), (base + 50, 50), (base + 98, 98)]:
        found = reader.offsets_for_times([TopicPartition(topic, 0, moment)], 10)[0]
        assert found.offset == offset, (moment - base, found.offset)
    assert reader.offsets_for_times([TopicPartition(topic, 0, base + 99)], 10)[0].offset == -1
    reader.seek(TopicPartition(topic, 0, OFFSET_END))
    # the client asks for the end in the background: send until it has it
    message, sent = None, 0
    while message is None and sent < 30:
        send(bootstrap, topic, [{"value": f"{100 + sent}", "partition": 0}])
        sent += 1
        message = reader.poll(1)
    assert message is not None and message.offset() >= 100
    assert message.value() == b"%d" % message.offset()
    # beyond the end: auto.offset.reset decides
    reader.close()
    reader = consumer(bootstrap, auto_offset_reset="earliest")
    reader.assign([TopicPartition(topic, 0, 5000)])
    assert read(reader, 1)[0].offset() == 0
    reader.close()


def timestamps_and_headers(bootstrap, topic, kind):
    """Time stamps of both types, and headers of every shape, in their order."""
    headers = [("a", b"1"), ("b", None), ("a", b"\x00\xff"), ("", b"empty key"), ("long", b"x" * 5000)]
    stamp = int(time.time() * 1000) - 5000
    before = int(time.time() * 1000)
    sent = send(bootstrap, topic, [{"value": b"v", "key": None, "headers": headers, "timestamp": stamp, "partition": 0}])
    reader = consumer(bootstrap)
    reader.assign([TopicPartition(topic, 0, 0)])
    got = read(reader, 1)[0]
    assert got.headers() == headers, got.headers()
    assert got.key() is None
    if kind == "create":
        assert got.timestamp() == (TIMESTAMP_CREATE_TIME, stamp)
    else:
        assert got.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME
        assert before - 1000 <= got.timestamp()[1] <= time.time() * 1000 + 1000
        assert sent[0].timestamp() == got.timestamp(), (sent[0].timestamp(), got.timestamp())
    reader.close()


def idempotent_load(bootstrap, topic, count):
    """Sends numbered records without a pause; prints each number as it is acknowledged."""
    failures = []

    def on_delivery(error, message):
        if error is None:
            print(json.dumps({"acked": [int(message.value()), message.offset()]}), flush=True)
        else:
            failures.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 1,
            "batch.num.messages": 50,
            "message.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.max.ms": 200,
        }
    )
    for i in range(int(count)):
        producer.produce(topic, str(i), partition=0, on_delivery=on_delivery)
        producer.poll(0.0005)
    assert producer.flush(60) == 0
    assert not failures, failures[:3]


def compacted_needs_keys(bootstrap, topic):
    """A compacted topic refuses a record without a key, and says which (cases.md C04)."""
    failed = []
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"no key", partition=0, on_delivery=lambda error, _: failed.append(error))
    producer.flush(30)
    assert failed[0] is not None and failed[0].code() == KafkaError.INVALID_RECORD, failed
    send(bootstrap, topic, [{"key": b"k", "value": b"v", "partition": 0}])


def static_member(bootstrap, topic, group):
    """A static member that bounces within its session time-out keeps its partitions without a rebalance."""
    assignments = []

    def join(instance):
        reader = consumer(
            bootstrap,
            group,
            session_timeout_ms=20_000,
            heartbeat_interval_ms=300,
            group_instance_id=instance,
            auto_offset_reset="earliest",
        )
        reader.subscribe([topic], on_assign=lambda _, partitions: assignments.append((instance, len(partitions))))
        return reader

    def poll_until(readers, holds):
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end, assignments
            for reader in readers:
                reader.poll(0.05)

    first = join("one")
    poll_until([first], lambda: assignments == [("one", 4)])
    second = join("two")
    poll_until([first, second], lambda: sorted(assignments[-2:]) == [("one", 2), ("two", 2)])
    seen = len(assignments)
    # librdkafka does not leave on close when it has an instance id
    second.close()
    again = join("two")
    poll_until([first, again], lambda: assignments[seen:] == [("two", 2)])
    for _ in range(20):
        first.poll(0.05)
        again.poll(0.05)
    assert assignments[seen:] == [("two", 2)], "the other member was disturbed"
    first.close()
    again.close()


def transactional_producer(bootstrap, topic, served):
    """Where transactions are not served, a producer that wants them is told so at once: it does not try for ever."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    try:
        producer.init_transactions(60)
    except KafkaException as exception:
        error = exception.args[0]
        assert served == "false", error
        assert error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED and error.fatal(), error
    else:
        assert served == "true"


def fill(bootstrap, topic):
    """Sends 100 KB records, one at a time, until the first is refused; prints how many were acknowledged."""
    outcomes = []
    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "retries": 0, "linger.ms": 0, "message.timeout.ms": 20_000}
    )
    while not outcomes or outcomes[-1] is None:
        assert len(outcomes) < 10_000, "the disk does not get full"
        value = b"%d " % len(outcomes) + os.urandom(100_000)
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: outcomes.append(error))
        producer.flush(30)
    print(json.dumps({"acked": len(outcomes) - 1, "error": outcomes[-1].code()}))


def read_numbered(bootstrap, topic, count):
    """Reads all that `fill` was told is there."""
    reader = consumer(bootstrap)
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    for number, message in enumerate(read(reader, int(count))):
        assert message.offset() == number
        assert message.value().startswith(b"%d " % number) and len(message.value()) > 100_000
    reader.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

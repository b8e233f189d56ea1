"""kafka-python as a test client; see ../README.md."""

import json
import select
import sys
import time

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, OffsetSpec
from kafka.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata


# Seconds that anything may take on a busy machine, below the limit of the tests for the whole program.
LIMIT = 120


def say(**fields):
    print(json.dumps(fields), flush=True)


def value(index, size):
    text = b"record %d " % index
    return (text * (size // len(text) + 1))[:size]


def produce(bootstrap, topic, partition, codec, acks, first, count, size, base):
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        acks={"0": 0, "1": 1, "-1": "all"}[acks],
        enable_idempotence=acks == "-1",
        linger_ms=20,
        max_block_ms=LIMIT * 1000,
        max_request_size=20_000_000,
    )
    sent = [
        producer.send(
            topic,
            value(i, int(size)),
            f"key-{i}".encode(),
            [("index", str(i).encode())],
            int(partition),
            int(base) + i,
        )
        for i in range(int(first), int(first) + int(count))
    ]
    producer.flush(LIMIT)
    offsets = [future.get(LIMIT).offset for future in sent]
    producer.close()
    say(offsets=[offsets[0], offsets[-1]] if acks != "0" else [-1, -1])


def consume(bootstrap, topic, count):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        consumer_timeout_ms=LIMIT * 1000,
        max_partition_fetch_bytes=20_000_000,
    )
    partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    left = int(count)
    for message in consumer:
        index = int(dict(message.headers)["index"])
        say(
            partition=message.partition,
            offset=message.offset,
            timestamp=message.timestamp,
            key=message.key.decode(),
            index=index,
            size=len(message.value),
            intact=message.value == value(index, len(message.value)),
        )
        left -= 1
        if left == 0:
            break
    assert left == 0, f"no record within {LIMIT} s"
    consumer.close()


class Listener(ConsumerRebalanceListener):
    def __init__(self, consumer):
        self.consumer = consumer

    def on_partitions_revoked(self, revoked):
        say(assigned=[])

    def on_partitions_assigned(self, assigned):
        say(assigned=sorted(p.partition for p in self.consumer.assignment()))


def member(bootstrap, topic, group, session_ms):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=int(session_ms),
        heartbeat_interval_ms=500,
    )
    consumer.subscribe([topic], listener=Listener(consumer))
    while not select.select([sys.stdin], [], [], 0)[0]:
        for records in consumer.poll(100).values():
            for record in records:
                say(record=[record.partition, record.offset])
    consumer.close()


def raises(kind, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind:
        return True
    return False


def eventually(holds):
    """Metadata changes reach a broker's cache a moment after they are answered."""
    end = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < end, "not within 15 s"
        time.sleep(0.02)


def admin(bootstrap, topic):
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    new = {topic: {"num_partitions": 3, "replication_factor": 1, "configs": {"retention.ms": "3600000"}}}
    client.create_topics(new)
    assert raises(TopicAlreadyExistsError, client.create_topics, new)
    bad = topic + "-bad"
    assert raises(InvalidReplicationFactorError, client.create_topics, {bad: {"replication_factor": 3}})
    assert raises(InvalidConfigurationError, client.create_topics, {bad: {"configs": {"no.such.key": "1"}}})
    client.create_topics({bad: {}}, validate_only=True)
    eventually(lambda: topic in client.list_topics())
    assert bad not in client.list_topics()
    client.create_partitions({topic: 5})
    assert raises(InvalidPartitionsError, client.create_partitions, {topic: 4})
    eventually(lambda: len(client.describe_topics([topic])[0]["partitions"]) == 5)

    def described():
        answer = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
        return {key: entry["value"] for key, entry in answer["topic"][topic].items()}

    assert described()["retention.ms"] == "3600000"
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"max.message.bytes": "2000"})])
    eventually(lambda: described()["max.message.bytes"] == "2000")
    client.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, ["retention.ms"])])
    eventually(lambda: described()["retention.ms"] == "604800000")

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for i in range(10):
        producer.send(topic, b"small %d" % i, partition=0)
    producer.flush()
    zero = TopicPartition(topic, 0)
    assert client.list_partition_offsets({zero: OffsetSpec.LATEST})[zero].offset == 10
    client.delete_records({zero: 4})
    assert client.list_partition_offsets({zero: OffsetSpec.EARLIEST})[zero].offset == 4
    assert zero in client.describe_producers([zero])

    group = topic + "-group"
    client.alter_group_offsets(group, {zero: OffsetAndMetadata(7, "note", -1)})
    assert client.list_group_offsets({group: None})[group][zero].offset == 7
    assert group in [g["group_id"] for g in client.list_groups()]
    assert client.describe_groups([group])[group]["group_state"] == "Empty"
    client.delete_groups([group])
    answer = client.delete_groups([group])
    assert answer[group] not in (None, "OK"), answer

    assert [broker["broker_id"] for broker in client.describe_cluster()["brokers"]] == [1]
    assert client.describe_log_dirs()
    client.delete_topics([topic])
    eventually(lambda: raises(UnknownTopicOrPartitionError, client.delete_topics, [topic]))
    client.close()
    say(ok=True)


if __name__ == "__main__":
    {"produce": produce, "consume": consume, "member": member, "admin": admin}[sys.argv[1]](*sys.argv[2:])

"""confluent-kafka (librdkafka) as a test client; see ../README.md."""

import json
import select
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)


def say(**fields):
    print(json.dumps(fields), flush=True)


def value(index, size):
    text = b"record %d " % index
    return (text * (size // len(text) + 1))[:size]


def produce(bootstrap, topic, partition, codec, acks, first, count, size, base):
    offsets = []

    def delivered(error, message):
        if error is not None:
            raise KafkaException(error)
        offsets.append(message.offset())

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "acks": acks,
            "linger.ms": 20,
            "message.max.bytes": 20_000_000,
        }
    )
    for i in range(int(first), int(first) + int(count)):
        producer.produce(
            topic,
            value(i, int(size)),
            f"key-{i}",
            int(partition),
            on_delivery=delivered,
            timestamp=int(base) + i,
            headers=[("index", str(i).encode())],
        )
        producer.poll(0)
    left = producer.flush(30)
    assert left == 0, f"{left} records were not delivered"
    assert len(offsets) == int(count)
    say(offsets=[offsets[0], offsets[-1]] if acks != "0" else [-1, -1])


def consume(bootstrap, topic, count):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 20_000_000,
        }
    )
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
    for _ in range(int(count)):
        message = consumer.poll(30)
        assert message is not None, "no record within 30 s"
        if message.error():
            raise KafkaException(message.error())
        index = int(dict(message.headers())["index"])
        say(
            partition=message.partition(),
            offset=message.offset(),
            timestamp=message.timestamp()[1],
            key=message.key().decode(),
            index=index,
            size=len(message.value()),
            intact=message.value() == value(index, len(message.value())),
        )
    consumer.close()


def member(bootstrap, topic, group, session_ms):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": int(session_ms),
            "heartbeat.interval.ms": 500,
        }
    )

    def assigned(_, partitions):
        say(assigned=sorted(p.partition for p in partitions))

    def revoked(_, __):
        say(assigned=[])

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    while not select.select([sys.stdin], [], [], 0)[0]:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            say(record=[message.partition(), message.offset()])
    consumer.close()


def eventually(holds):
    """Metadata changes reach a broker's cache a moment after they are answered."""
    end = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < end, "not within 15 s"
        time.sleep(0.02)


def commit(consumer, offset):
    """Commits once the coordinator has read its partition."""

    def committed():
        try:
            consumer.commit(offsets=[offset], asynchronous=False)
            return True
        except KafkaException as exception:
            if exception.args[0].code() not in (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR):
                raise
            return False

    eventually(committed)


def failure(future):
    """The error code that a future ends with."""
    try:
        future.result()
    except KafkaException as exception:
        return exception.args[0].code()
    return None


def admin(bootstrap, topic):
    client = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, 3, 1, config={"retention.ms": "3600000"})
    client.create_topics([new])[topic].result()
    assert failure(client.create_topics([new])[topic]) == KafkaError.TOPIC_ALREADY_EXISTS
    bad = topic + "-bad"
    assert failure(client.create_topics([NewTopic(bad, 1, 3)])[bad]) == KafkaError.INVALID_REPLICATION_FACTOR
    unknown = NewTopic(bad, 1, 1, config={"no.such.key": "1"})
    assert failure(client.create_topics([unknown])[bad]) == KafkaError.INVALID_CONFIG
    only_checked = client.create_topics([NewTopic(bad, 1, 1)], validate_only=True)[bad].result()
    assert only_checked is None
    eventually(lambda: topic in client.list_topics(timeout=10).topics)
    names = client.list_topics(timeout=10).topics
    assert len(names[topic].partitions) == 3 and bad not in names

    client.create_partitions([NewPartitions(topic, 5)])[topic].result()
    assert failure(client.create_partitions([NewPartitions(topic, 4)])[topic]) == KafkaError.INVALID_PARTITIONS
    eventually(lambda: len(client.list_topics(topic, 10).topics[topic].partitions) == 5)

    resource = ConfigResource(ResourceType.TOPIC, topic)

    def described():
        return client.describe_configs([resource])[resource].result()

    assert described()["retention.ms"].value == "3600000"
    assert described()["retention.ms"].source == 1  # DYNAMIC_TOPIC_CONFIG
    assert described()["segment.bytes"].source == 5  # DEFAULT_CONFIG
    change = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
        ],
    )
    client.incremental_alter_configs([change])[change].result()
    eventually(lambda: described()["max.message.bytes"].value == "2000")
    assert described()["retention.ms"].value == "604800000"
    wrong = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[ConfigEntry("retention.ms", "soon", incremental_operation=AlterConfigOpType.SET)],
    )
    assert failure(client.incremental_alter_configs([wrong])[wrong]) == KafkaError.INVALID_CONFIG

    # the new limit of 2,000 bytes acts on the next request
    refused = []
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"x" * 3000, partition=0, on_delivery=lambda error, _: refused.append(error.code()))
    assert producer.flush(20) == 0
    for i in range(10):
        producer.produce(topic, b"small %d" % i, partition=0)
    assert producer.flush(20) == 0
    assert refused == [KafkaError.MSG_SIZE_TOO_LARGE], refused

    zero = TopicPartition(topic, 0)
    latest = client.list_offsets({zero: OffsetSpec.latest()})[zero].result()
    assert latest.offset == 10, latest.offset
    deleted = client.delete_records([TopicPartition(topic, 0, 4)])[TopicPartition(topic, 0, 4)].result()
    assert deleted.low_watermark == 4
    earliest = client.list_offsets({zero: OffsetSpec.earliest()})[zero].result()
    assert earliest.offset == 4

    group = topic + "-group"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    commit(consumer, TopicPartition(topic, 0, 7, "note"))
    committed = consumer.committed([zero, TopicPartition(topic, 1)], 10)
    assert (committed[0].offset, committed[0].metadata) == (7, "note") and committed[1].offset < 0
    consumer.close()
    listed = client.list_consumer_groups().result().valid
    assert group in [g.group_id for g in listed]
    state = client.describe_consumer_groups([group])[group].result()
    assert state.state.name == "EMPTY", state.state
    client.delete_consumer_groups([group])[group].result()
    assert failure(client.delete_consumer_groups([group])[group]) == KafkaError.GROUP_ID_NOT_FOUND

    cluster = client.describe_cluster().result()
    assert [node.id for node in cluster.nodes] == [1] and cluster.controller.id == 1
    client.delete_topics([topic])[topic].result()
    eventually(lambda: failure(client.delete_topics([topic])[topic]) == KafkaError.UNKNOWN_TOPIC_OR_PART)
    say(ok=True)


if __name__ == "__main__":
    {"produce": produce, "consume": consume, "member": member, "admin": admin}[sys.argv[1]](*sys.argv[2:])

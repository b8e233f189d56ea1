"""aiokafka as a test client; see ../README.md."""

import asyncio
import json
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete


def say(**fields):
    print(json.dumps(fields), flush=True)


def value(index, size):
    text = b"record %d " % index
    return (text * (size // len(text) + 1))[:size]


async def produce(bootstrap, topic, partition, codec, acks, first, count, size, base):
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        acks={"0": 0, "1": 1, "-1": "all"}[acks],
        enable_idempotence=acks == "-1",
        linger_ms=20,
        max_request_size=20_000_000,
    )
    await producer.start()
    sent = []
    for i in range(int(first), int(first) + int(count)):
        sent.append(
            await producer.send(
                topic,
                value(i, int(size)),
                f"key-{i}".encode(),
                int(partition),
                int(base) + i,
                [("index", str(i).encode())],
            )
        )
    answers = [await future for future in sent]
    await producer.stop()
    say(offsets=[answers[0].offset, answers[-1].offset] if acks != "0" else [-1, -1])


async def consume(bootstrap, topic, count):
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", max_partition_fetch_bytes=20_000_000
    )
    await consumer.start()
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    described = await client.describe_topics([topic])
    await client.close()
    consumer.assign([TopicPartition(topic, p["partition"]) for p in described[0]["partitions"]])
    for _ in range(int(count)):
        message = await asyncio.wait_for(consumer.getone(), 30)
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
    await consumer.stop()


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        say(assigned=[])

    def on_partitions_assigned(self, assigned):
        say(assigned=sorted(p.partition for p in assigned))


async def member(bootstrap, topic, group, session_ms):
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=int(session_ms),
        heartbeat_interval_ms=500,
    )
    await consumer.start()
    consumer.subscribe([topic], listener=Listener())
    end = asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    while not end.done():
        for records in (await consumer.getmany(timeout_ms=100)).values():
            for record in records:
                say(record=[record.partition, record.offset])
    await consumer.stop()


async def eventually(holds):
    """Metadata changes reach a broker's cache a moment after they are answered."""
    end = time.monotonic() + 15
    while not await holds():
        assert time.monotonic() < end, "not within 15 s"
        await asyncio.sleep(0.02)


async def admin(bootstrap, topic):
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    new = NewTopic(topic, 3, 1, topic_configs={"retention.ms": "3600000"})
    first = await client.create_topics([new])
    assert first.topic_errors[0][1] == 0, first
    again = await client.create_topics([new])
    assert again.topic_errors[0][1] == 36, again  # TOPIC_ALREADY_EXISTS
    impossible = await client.create_topics([NewTopic(topic + "-bad", 1, 3)])
    assert impossible.topic_errors[0][1] == 38, impossible  # INVALID_REPLICATION_FACTOR

    async def listed():
        return topic in await client.list_topics()

    await eventually(listed)
    await client.create_partitions({topic: NewPartitions(5)})

    async def partitions():
        return len((await client.describe_topics([topic]))[0]["partitions"]) == 5

    await eventually(partitions)
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)

    async def described():
        answer = (await client.describe_configs([resource]))[0]
        return {entry[0]: entry[1] for entry in answer.resources[0][4]}

    assert (await described())["retention.ms"] == "3600000"
    await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"max.message.bytes": "2000"})])

    async def altered():
        now = await described()
        # AlterConfigs sets the whole map: what it does not name falls back to its default.
        return now["max.message.bytes"] == "2000" and now["retention.ms"] == "604800000"

    await eventually(altered)

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    for i in range(10):
        await producer.send_and_wait(topic, b"small %d" % i, partition=0)
    await producer.stop()
    zero = TopicPartition(topic, 0)
    await client.delete_records({zero: RecordsToDelete(before_offset=4)})
    group = topic + "-group"
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    await consumer.start()
    consumer.assign([zero])
    assert (await consumer.beginning_offsets([zero]))[zero] == 4
    assert (await consumer.end_offsets([zero]))[zero] == 10
    await consumer.commit({zero: (7, "note")})
    assert await consumer.committed(zero) == 7
    await consumer.stop()
    assert group in [entry[0] for entry in await client.list_consumer_groups()]
    offsets = await client.list_consumer_group_offsets(group)
    assert (offsets[zero].offset, offsets[zero].metadata) == (7, "note")
    assert [broker["node_id"] for broker in (await client.describe_cluster())["brokers"]] == [1]
    gone = await client.delete_topics([topic])
    assert gone.topic_error_codes[0][1] == 0, gone

    async def unknown():
        return (await client.delete_topics([topic])).topic_error_codes[0][1] == 3  # UNKNOWN_TOPIC_OR_PARTITION

    await eventually(unknown)
    await client.close()
    say(ok=True)


if __name__ == "__main__":
    command = {"produce": produce, "consume": consume, "member": member, "admin": admin}[sys.argv[1]]
    asyncio.run(command(*sys.argv[2:]))

"""Producers and an observer for the tests of clusters; see tests/cluster/librdkafka.rs.

Each command is `COMMAND BOOTSTRAP TOPIC ARGUMENTS...` and prints lines of JSON.
"""

import json
import sys
import threading
import time
from collections import Counter

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient


def say(**what):
    print(json.dumps(what), flush=True)


class Deliveries:
    """Counts what became of the records of one producer, by the names of librdkafka's errors."""

    def __init__(self, bootstrap, **settings):
        self.ok = 0
        self.errors = Counter()
        self.producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, **settings})

    def on_delivery(self, error, _):
        if error is None:
            self.ok += 1
        else:
            self.errors[error.name()] += 1

    def send(self, topic, value, **where):
        while True:
            try:
                self.producer.produce(topic, value=value, on_delivery=self.on_delivery, **where)
                return
            except BufferError:
                self.producer.poll(0.1)

    def report(self):
        say(ok=self.ok, failed=self.errors.total(), errors=self.errors)


def burst(bootstrap, topic, count, patience_ms):
    """Sends some records one after the other and says what became of them."""
    deliveries = Deliveries(bootstrap, **{"delivery.timeout.ms": int(patience_ms), "request.timeout.ms": 5000, "linger.ms": 5})
    for i in range(int(count)):
        deliveries.send(topic, f"burst-{i}")
    deliveries.producer.flush(int(patience_ms) / 1000 + 30)
    deliveries.report()


def background(bootstrap, topic, partition, size, per_second):
    """Sends records at a steady pace until its input ends, and says how many arrived and how many did not."""
    deliveries = Deliveries(bootstrap, **{"delivery.timeout.ms": 120000, "linger.ms": 5})
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    begun, sent, said = time.monotonic(), 0, 0
    while not ended.is_set():
        due = int((time.monotonic() - begun) * float(per_second))
        for i in range(sent, due):
            deliveries.send(topic, f"{i} ".ljust(int(size), "."), partition=int(partition))
        sent = max(sent, due)
        deliveries.producer.poll(0.02)
        if time.monotonic() > said + 0.1:
            said = time.monotonic()
            deliveries.report()
    deliveries.producer.flush(150)
    deliveries.report()


def observe(bootstrap, topic):
    """What librdkafka's Metadata shows of a topic."""
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=30)
    partitions = sorted(metadata.topics[topic].partitions.values(), key=lambda partition: partition.id)
    say(
        brokers=sorted(metadata.brokers),
        partitions=[[p.leader, list(p.replicas), sorted(p.isrs)] for p in partitions],
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

"""What the demonstrations share: the cluster of ../compose.yaml, and what it says of a partition."""

import pathlib
import subprocess
import sys
import time
import urllib.request

from confluent_kafka import Consumer, ElectionType, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import wire

BROKERS = {1: "localhost:9092", 2: "localhost:9094", 3: "localhost:9096"}
METRICS = {1: "http://localhost:9644", 2: "http://localhost:9645", 3: "http://localhost:9646"}
BOOTSTRAP = ",".join(BROKERS.values())
FOLDER = pathlib.Path(__file__).resolve().parent.parent
# Connections to brokers that are down are no news here.
QUIET = {"log_level": 0, "log.connection.close": False}


def say(text=""):
    print(text, flush=True)


def docker(*arguments):
    """Runs docker, shows how, and gives its output."""
    say("  $ docker " + " ".join(arguments))
    try:
        done = subprocess.run(["docker", *arguments], cwd=FOLDER, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("docker is not installed")
    if done.returncode != 0:
        sys.exit(f"docker failed: {done.stdout}{done.stderr}".strip())
    return done.stdout


def compose(*arguments):
    return docker("compose", *arguments)


def new_topic(name, replicas=3, **config):
    """A topic of one partition, made anew."""
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP, **QUIET})
    until(lambda: len(brokers(admin)) == len(BROKERS), "all brokers are up; `docker compose up -d` starts them")
    if name in admin.list_topics(timeout=30).topics:
        admin.delete_topics([name])[name].result()
        until(lambda: name not in admin.list_topics(timeout=30).topics, "the old topic is gone")
    config = {key.replace("_", "."): str(value) for key, value in config.items()}
    topic = NewTopic(name, num_partitions=1, replication_factor=replicas, config=config)
    admin.create_topics([topic])[name].result()
    until(lambda: len(partition(name)["isr"]) == replicas, f"{name} has {replicas} in-sync replicas")
    return admin


def brokers(admin):
    try:
        return admin.list_topics(timeout=5).brokers
    except KafkaException:
        return {}


def partition(topic, ask=None):
    """Leader, leader epoch, replicas and ISR of partition 0, as the first broker that answers tells."""
    for broker in [ask] if ask else BROKERS:
        try:
            found = wire.partitions(BROKERS[broker], topic)
            if 0 in found:
                return found[0]
        except OSError:
            pass
    return {"leader": -1, "epoch": -1, "replicas": [], "isr": []}


def show(topic):
    found = partition(topic)
    out = [broker for broker in found["replicas"] if broker not in found["isr"]]
    say(f"  leader {found['leader'] if found['leader'] >= 0 else 'none'}, leader epoch {found['epoch']}, "
        f"in sync {found['isr']}, out of sync {out}")
    return found


def until(condition, what, seconds=60):
    """Waits for a condition; ends the demonstration when it does not come true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    sys.exit(f"not within {seconds} s: {what}")


def send(topic, value, acks="all", **settings):
    """Sends one record without trying again; gives the offset, or the name of the error."""
    results = []
    settings = {key.replace("_", "."): value for key, value in settings.items()}
    settings = {"bootstrap.servers": BOOTSTRAP, "acks": acks, "retries": 0, "linger.ms": 0, **QUIET, **settings}
    producer = Producer(settings)
    producer.produce(topic, value, partition=0,
                     on_delivery=lambda error, message: results.append(error.name() if error else message.offset()))
    producer.flush(60)
    return results[0] if results else "no answer"


def end_of(consumer, topic):
    """The high watermark in a tuple; None while the client does not know the leader yet."""
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1:]
    except KafkaException:
        return None


def read_all(topic):
    """The records of partition 0 that consumers may see: a list of offset and text."""
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "demo", "enable.auto.commit": False, **QUIET})
    try:
        end = until(lambda: end_of(consumer, topic), "the leader tells where the log ends")[0]
        consumer.assign([TopicPartition(topic, 0, 0)])
        records = []
        deadline = time.monotonic() + 60
        while (not records or records[-1][0] + 1 < end) and end > 0 and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                records.append((message.offset(), message.value().decode()))
        return records
    finally:
        consumer.close()


def elect(admin, topic, kind=ElectionType.PREFERRED):
    """Asks for an election of partition 0; gives NONE or the name of the error."""
    try:
        result = admin.elect_leaders(kind, [TopicPartition(topic, 0)]).result()
    except KafkaException as error:
        return error.args[0].name()
    error = next(iter(result.values()), None)
    return "NONE" if error is None else error.name()


def refusals(broker, reason):
    """How often a broker has refused something for this reason, from its metrics."""
    page = urllib.request.urlopen(METRICS[broker] + "/metrics", timeout=5).read().decode()
    lines = [line for line in page.splitlines() if f'reason="{reason}"' in line]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines)


def check(condition, what):
    """Says what was shown; a demonstration that shows something else has failed."""
    if not condition:
        sys.exit(f"NOT SHOWN: {what}")
    say(f"  -> {what}")

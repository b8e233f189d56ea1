"""The leader is killed under load: another leads, the ISR shrinks and comes back, nothing acknowledged is missing."""

import threading
import time

from cluster import *

TOPIC = "demo.kill-leader"


class Load(threading.Thread):
    """Sends numbers, each acknowledged by all in-sync replicas, until it is stopped."""

    def __init__(self):
        super().__init__(daemon=True)
        self.acknowledged, self.failed, self.stopping = [], [], threading.Event()

    def run(self):
        producer = Producer({"bootstrap.servers": BOOTSTRAP, "acks": "all", "enable.idempotence": True, **QUIET})

        def delivered(error, message):
            (self.failed if error else self.acknowledged).append(int(message.value()))

        number = 0
        while not self.stopping.is_set():
            producer.produce(TOPIC, str(number), partition=0, on_delivery=delivered)
            producer.poll(0)
            number += 1
            time.sleep(0.005)
        producer.flush(60)


def main():
    say("1. Three replicas, min.insync.replicas=2, a producer with acks=all.")
    admin = new_topic(TOPIC, min_insync_replicas=2)
    first = show(TOPIC)
    load = Load()
    load.start()
    until(lambda: len(load.acknowledged) > 100, "a hundred acknowledged records")

    say("2. kill -9 of the leader.")
    service = f"kafka{first['leader']}"
    compose("kill", service)
    second = until(lambda: (lambda now: now if now["leader"] not in (-1, first["leader"]) else None)(partition(TOPIC)),
                   "another leader")
    show(TOPIC)
    known = len(load.acknowledged)
    until(lambda: len(load.acknowledged) > known, "acknowledged by the new leader")
    check(second["epoch"] > first["epoch"], f"broker {second['leader']} leads in leader epoch {second['epoch']}; "
          "writes go on with two in-sync replicas")

    say("3. It comes back.")
    compose("start", service)
    until(lambda: len(partition(TOPIC)["isr"]) == 3, "three in-sync replicas")
    third = show(TOPIC)
    check(third["leader"] != first["leader"], "it follows first, and is in sync again; the leader stays")

    say("4. The preferred leader is elected.")
    check(elect(admin, TOPIC) == "NONE", "the controller has elected the first of the replicas")
    until(lambda: partition(TOPIC)["leader"] == first["replicas"][0], "the preferred leader leads")
    show(TOPIC)

    load.stopping.set()
    load.join()
    numbers = [int(value) for _, value in read_all(TOPIC)]
    say(f"5. {len(load.acknowledged)} records were acknowledged, {len(load.failed)} failed, {len(numbers)} are there.")
    check(set(load.acknowledged) <= set(numbers), "nothing acknowledged is missing")
    check(len(set(numbers)) == len(numbers), "nothing is there twice")


main()

"""Tells every change of leader, leader epoch and in-sync replicas of a topic, until Ctrl-C.

    demos/run watch_isr TOPIC [SECONDS]
"""

import sys
import time

import wire
from cluster import BROKERS, say


def read(topic):
    for address in BROKERS.values():
        try:
            return wire.partitions(address, topic)
        except OSError:
            pass
    return {}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    end = time.monotonic() + float(sys.argv[2]) if len(sys.argv) == 3 else None
    before = {}
    while end is None or time.monotonic() < end:
        for index, now in sorted(read(sys.argv[1]).items()):
            if now != before.get(index):
                out = [broker for broker in now["replicas"] if broker not in now["isr"]]
                leader = now["leader"] if now["leader"] >= 0 else "none"
                say(f"{time.strftime('%H:%M:%S')} partition {index}: leader {leader}, leader epoch {now['epoch']}, "
                    f"in sync {now['isr']}, out of sync {out}")
                before[index] = now
        time.sleep(0.2)


try:
    main()
except KeyboardInterrupt:
    pass

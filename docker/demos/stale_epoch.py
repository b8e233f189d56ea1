"""A stale leader epoch is refused, and the refusal can be seen: in the answer, in the metrics and in the log."""

from cluster import *

TOPIC = "demo.stale-epoch"


def main():
    new_topic(TOPIC, min_insync_replicas=2)
    first = show(TOPIC)
    send(TOPIC, "of the first leader")
    say("1. Another leader, another epoch.")
    compose("stop", f"kafka{first['leader']}")
    second = until(lambda: (lambda now: now if now["leader"] not in (-1, first["leader"]) else None)(partition(TOPIC)),
                   "another leader")
    show(TOPIC)
    send(TOPIC, "of the second leader")

    say("2. Somebody who has slept through it asks the new leader.")
    leader, address = second["leader"], BROKERS[second["leader"]]
    refused = refusals(leader, "stale_leader_epoch")
    for believed in (first["epoch"], second["epoch"], second["epoch"] + 1):
        error, epoch, end = wire.end_of_epoch(address, TOPIC, believed, first["epoch"])
        ended = f", leader epoch {epoch} ends at offset {end}" if error == "NONE" else ""
        say(f"  in leader epoch {believed}: {error}{ended}")
        expected = {first["epoch"]: "FENCED_LEADER_EPOCH", second["epoch"]: "NONE"}.get(believed, "UNKNOWN_LEADER_EPOCH")
        check(error == expected, f"{error} is right")
    check(refusals(leader, "stale_leader_epoch") > refused, "the refusal is counted under reason=\"stale_leader_epoch\"")
    compose("start", f"kafka{first['leader']}")
    until(lambda: len(partition(TOPIC)["isr"]) == 3, "three in-sync replicas")
    show(TOPIC)


main()

"""Only an in-sync replica is elected: one that lacks acknowledged records waits, even if it is the last one up."""

from cluster import *

TOPIC = "demo.isr-only"


def main():
    admin = new_topic(TOPIC, min_insync_replicas=1)
    first = show(TOPIC)
    leader, behind, other = first["replicas"]
    say("1. One follower stops, and misses a record that is acknowledged.")
    compose("stop", f"kafka{behind}")
    until(lambda: behind not in partition(TOPIC)["isr"], "it leaves the ISR")
    offset = send(TOPIC, "missed by one")
    check(offset == 0, "acknowledged at offset 0")

    say("2. The others stop too, and only the one that missed it comes back.")
    compose("stop", f"kafka{other}")
    until(lambda: partition(TOPIC)["isr"] == [leader], "the leader alone is in sync")
    compose("kill", f"kafka{leader}")
    compose("start", f"kafka{behind}")
    until(lambda: partition(TOPIC, ask=behind)["replicas"], "it answers")
    until(lambda: partition(TOPIC, ask=behind)["leader"] == -1, "nobody leads")
    show(TOPIC)
    answer = elect(admin, TOPIC)
    check(answer in ("PREFERRED_LEADER_NOT_AVAILABLE", "ELIGIBLE_LEADERS_NOT_AVAILABLE"), f"an election is refused: {answer}")

    say("3. The last in-sync replica comes back.")
    compose("start", f"kafka{leader}")
    until(lambda: partition(TOPIC)["leader"] == leader, "it leads")
    compose("start", f"kafka{other}")
    until(lambda: len(partition(TOPIC)["isr"]) == 3, "three in-sync replicas")
    show(TOPIC)
    check(read_all(TOPIC) == [(0, "missed by one")], "the acknowledged record is there")


main()

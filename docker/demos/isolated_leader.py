"""A leader that is cut off goes on writing for a moment; healed, it takes the others' history, without a new write."""

from cluster import *

TOPIC = "demo.isolated-leader"
OUTSIDE = "highwater-demo-outside"  # a network without other nodes, so that the host still reaches the isolated one


def records_on(broker):
    """The records in the log of one broker, committed or not."""
    log = f"/var/lib/highwater/{TOPIC}-0/00000000000000000000.log"
    printed = docker("exec", f"kafka{broker}", "/opt/kafka/bin/kafka-dump-log.sh", "--print-data-log", "--files", log)
    records = [line.split("payload: ")[1] for line in printed.splitlines() if "payload: " in line]
    say(f"  the log of broker {broker} holds {records}")
    return records


def main():
    admin = new_topic(TOPIC, min_insync_replicas=2)
    first = show(TOPIC)
    leader, successor = first["leader"], first["replicas"][1]
    service = f"kafka{leader}"
    network = docker("inspect", "--format", "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}", service)
    network = network.strip()
    only = {"bootstrap.servers": BROKERS[leader]}
    others = {"bootstrap.servers": ",".join(address for broker, address in BROKERS.items() if broker != leader)}
    send(TOPIC, "shared")

    say("1. The leader is cut off from all others. Until its session ends it cannot know.")
    docker("network", "create", OUTSIDE)
    try:
        docker("network", "connect", OUTSIDE, service)
        docker("network", "disconnect", network, service)
        try:
            dirty = send(TOPIC, "dirty", acks=1, **only)
            check(dirty == 1, "acks=1: it acknowledges a record at offset 1 that nobody else has")
            held = records_on(leader)
            check(held == ["shared", "dirty"], "it is in its log")

            say("2. The controllers have another lead, which takes another record for the same offset.")
            second = until(lambda: (lambda now: now if now["leader"] not in (-1, leader) else None)(
                partition(TOPIC, ask=successor)), "another leader")
            clean = send(TOPIC, "clean", **others)
            check(clean == 1, f"broker {second['leader']} leads in leader epoch {second['epoch']} and takes offset 1")
            believed = partition(TOPIC, ask=leader)
            say(f"  the isolated broker believes: leader {believed['leader']}, leader epoch {believed['epoch']}")
            until(lambda: wire.produce(BROKERS[leader], TOPIC, "late", acks=1)[0] == "NOT_LEADER_OR_FOLLOWER",
                  "its session is over")
            say("  -> its session is over, it acknowledges nothing any more, not even with acks=1: NOT_LEADER_OR_FOLLOWER")
        finally:
            say("3. The network is healed. Nothing is written.")
            docker("network", "connect", "--alias", service, network, service)
            docker("network", "disconnect", OUTSIDE, service)
    finally:
        docker("network", "rm", OUTSIDE)
    until(lambda: leader in partition(TOPIC, ask=successor)["isr"], "it is in sync again")
    until(lambda: partition(TOPIC, ask=leader)["leader"] == second["leader"], "it has heard who leads")
    show(TOPIC)
    check(records_on(leader) == ["shared", "clean"], "what only the isolated leader had is gone")
    check(elect(admin, TOPIC) == "NONE" and until(lambda: partition(TOPIC)["leader"] == leader, "it leads again"),
          "it may lead again")
    check(read_all(TOPIC) == [(0, "shared"), (1, "clean")], "and serves what the others have")


main()

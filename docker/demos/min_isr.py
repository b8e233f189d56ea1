"""acks=all with three, two and one in-sync replicas, with min.insync.replicas=2."""

from cluster import *

TOPIC = "demo.min-isr"


def main():
    new_topic(TOPIC, min_insync_replicas=2)
    first = show(TOPIC)
    followers = [broker for broker in first["replicas"] if broker != first["leader"]]
    shown = [(3, "all", send(TOPIC, "with three"))]
    for left, follower in zip((2, 1), followers):
        compose("stop", f"kafka{follower}")
        until(lambda: len(partition(TOPIC)["isr"]) == left, f"{left} in-sync replicas")
        show(TOPIC)
        shown.append((left, "all", send(TOPIC, f"with {left}")))
    end = len(read_all(TOPIC))
    check(end == 2, "the refusal came before the append: the log still ends at offset 2")
    shown.append((1, "1", send(TOPIC, "not so careful", acks=1)))
    for follower in followers:
        compose("start", f"kafka{follower}")
    until(lambda: len(partition(TOPIC)["isr"]) == 3, "three in-sync replicas")
    show(TOPIC)
    shown.append((3, "all", send(TOPIC, "with three again")))

    say()
    say("  in sync  acks  answer")
    for isr, acks, answer in shown:
        say(f"  {isr}        {acks:<4}  {'offset ' + str(answer) if isinstance(answer, int) else answer}")
    check([answer for *_, answer in shown] == [0, 1, "NOT_ENOUGH_REPLICAS", 2, 3],
          "min.insync.replicas holds acks=all back, and only acks=all")


main()

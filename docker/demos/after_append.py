"""acks=all that fails after the append: an error that does not say that nothing was written."""

from cluster import *

TOPIC = "demo.after-append"


def main():
    new_topic(TOPIC, min_insync_replicas=2)
    first = show(TOPIC)
    followers = [f"kafka{broker}" for broker in first["replicas"] if broker != first["leader"]]
    say("1. The followers are frozen: they are in the ISR still, but fetch nothing.")
    compose("pause", *followers)
    try:
        say("2. One record with acks=all. The leader appends it and waits; meanwhile the controllers take them out.")
        answer = send(TOPIC, "in doubt", request_timeout_ms=15_000)
        say(f"  answer: {answer}")
        shrunk = show(TOPIC)
        before = read_all(TOPIC)
    finally:
        compose("unpause", *followers)
    check(answer in ("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"), "it is not known to be written")
    check(shrunk["isr"] == [first["leader"]] and before == [],
          "with fewer in-sync replicas than min.insync.replicas nothing more is committed, so nobody reads it")
    say("3. They go on.")
    until(lambda: len(partition(TOPIC)["isr"]) == 3, "three in-sync replicas")
    show(TOPIC)
    after = until(lambda: read_all(TOPIC), "the record is committed")
    check([value for _, value in after] == ["in doubt"],
          "it was written: whoever sends again without idempotence has it twice")


main()

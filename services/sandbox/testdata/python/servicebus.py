"""Uses a namespace through the official SDK, as its documentation shows it: one scenario after another, over the transport in argv[1]."""
import datetime
import os
import sys

from azure.servicebus import (
    NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue, TransportType,
)
from azure.servicebus.management import CorrelationRuleFilter, ServiceBusAdministrationClient

WAIT = 30


def client():
    return ServiceBusClient.from_connection_string(
        os.environ["CONNECTION"], custom_endpoint_address=os.environ["ENDPOINT"],
        connection_verify=os.environ["CERTIFICATE"], retry_total=0, transport_type=TransportType[sys.argv[1]])


def take(receiver, n, wait=WAIT):
    got = []
    while len(got) < n:
        more = receiver.receive_messages(max_message_count=n - len(got), max_wait_time=wait)
        if not more:
            raise AssertionError(f"got {len(got)} messages, want {n}")
        got += more
    return got


def same(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def send(c):
    with c.get_queue_sender("plain") as sender:
        sender.send_messages(ServiceBusMessage("one", message_id="1", application_properties={"k": 7}))
        sender.send_messages([ServiceBusMessage("two"), ServiceBusMessage("three")])
        batch = sender.create_message_batch()
        batch.add_message(ServiceBusMessage("four"))
        sender.send_messages(batch)


def receive_and_complete(c):
    with c.get_queue_receiver("plain") as receiver:
        got = take(receiver, 4)
        same("bodies", [str(m) for m in got], ["one", "two", "three", "four"])
        same("id", got[0].message_id, "1")
        same("properties", got[0].application_properties, {b"k": 7})
        receiver.renew_message_lock(got[0])
        for m in got:
            receiver.complete_message(m)


def peek(c):
    with c.get_queue_sender("plain") as sender:
        sender.send_messages(ServiceBusMessage("seen"))
    with c.get_queue_receiver("plain") as receiver:
        same("peeked", [str(m) for m in receiver.peek_messages(5)], ["seen"])


def abandon_defer_dead_letter(c):
    with c.get_queue_receiver("plain") as receiver:
        m = take(receiver, 1)[0]
        receiver.abandon_message(m)
        m = take(receiver, 1)[0]
        same("delivery count", m.delivery_count, 1)
        receiver.defer_message(m)
        d = receiver.receive_deferred_messages([m.sequence_number])[0]
        same("deferred", str(d), "seen")
        receiver.dead_letter_message(d, reason="why", error_description="because")
    with c.get_queue_receiver("plain", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        m = take(receiver, 1)[0]
        same("reason", (m.dead_letter_reason, m.dead_letter_error_description), ("why", "because"))
        receiver.complete_message(m)


def schedule(c):
    with c.get_queue_sender("plain") as sender:
        late = datetime.datetime.utcnow() + datetime.timedelta(hours=1)
        numbers = sender.schedule_messages([ServiceBusMessage("a"), ServiceBusMessage("b")], late)
        same("numbers", len(numbers), 2)
        sender.cancel_scheduled_messages(numbers)
    with c.get_queue_receiver("plain") as receiver:
        same("left", receiver.peek_messages(5), [])


def receive_and_delete(c):
    with c.get_queue_sender("plain") as sender:
        sender.send_messages(ServiceBusMessage("gone"))
    with c.get_queue_receiver("plain", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
        same("body", str(take(receiver, 1)[0]), "gone")
    with c.get_queue_receiver("plain") as receiver:
        same("left", receiver.peek_messages(5), [])


def sessions(c):
    with c.get_topic_sender("changes") as sender:
        sender.send_messages([ServiceBusMessage(f"{s}{i}", session_id=s, partition_key=s) for s in "ab" for i in range(3)])
    seen = set()
    for _ in range(2):
        with c.get_subscription_receiver("changes", "projector", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=WAIT) as r:
            got = take(r, 3)
            s = r.session.session_id
            seen.add(s)
            same("order", [str(m) for m in got], [f"{s}{i}" for i in range(3)])
            r.session.set_state("half way")
            same("state", r.session.get_state(), b"half way")
            r.session.renew_lock()
            for m in got:
                r.complete_message(m)
    same("sessions", seen, {"a", "b"})
    with c.get_subscription_receiver("changes", "projector", session_id="a") as r:
        same("state", r.session.get_state(), b"half way")
        r.session.set_state(None)


def observer(c):
    with c.get_subscription_receiver("changes", "observer") as r:
        for m in take(r, 6):
            r.complete_message(m)


def administration(_):
    keys = ";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"
    with ServiceBusAdministrationClient.from_connection_string(
            "Endpoint=" + os.environ["ENDPOINT"].replace("https", "sb") + keys, retry_total=0) as a:
        a.create_queue("made", requires_session=True)
        queue = a.get_queue("made")
        same("sessions", queue.requires_session, True)
        queue.max_delivery_count = 3
        a.update_queue(queue)
        same("queues", sorted(q.name for q in a.list_queues()), ["made", "plain"])
        same("count", a.get_queue_runtime_properties("plain").total_message_count, 0)
        a.create_topic("t")
        a.create_subscription("t", "s")
        a.create_rule("t", "s", "r", filter=CorrelationRuleFilter(label="x"))
        same("rules", [r.name for r in a.list_rules("t", "s")], ["$Default", "r"])
        a.delete_topic("t")
        a.delete_queue("made")


SCENARIOS = [
    send, receive_and_complete, peek, abandon_defer_dead_letter, schedule, receive_and_delete, sessions, observer,
    administration,
]


if __name__ == "__main__":
    with client() as namespace:
        for scenario in SCENARIOS:
            print(scenario.__name__, flush=True)
            scenario(namespace)

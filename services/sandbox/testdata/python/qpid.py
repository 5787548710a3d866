"""Sends, receives, settles and asks with Qpid Proton: links in every settlement mode, and requests by hand."""
import os

from proton import Array, Data, Delivery, Described, Link, Message, UNDESCRIBED, int32, symbol, uint
from proton.reactor import AtLeastOnce, AtMostOnce, Filter, LinkOption
from proton.utils import BlockingConnection

LIMIT = 30


class Second(LinkOption):
    """A receiver that settles after the sender has."""
    def apply(self, link):
        link.snd_settle_mode, link.rcv_settle_mode = Link.SND_UNSETTLED, Link.RCV_SECOND


class Named(LinkOption):
    """A receiver with a name to answer to."""
    def apply(self, link):
        link.target.address = "answers"


def same(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


class Asker:
    """Asks the management node of an entity."""
    def __init__(self, connection, entity):
        self.answers = connection.create_receiver(entity + "/$management", credit=10, options=[Named()])
        self.requests = connection.create_sender(entity + "/$management")
        self.last = 0

    def ask(self, operation, body, status=200):
        self.last += 1
        self.requests.send(Message(body=body, id=str(self.last), reply_to="answers", properties={"operation": operation}))
        answer = self.answers.receive(timeout=LIMIT)
        same("correlation", answer.correlation_id, str(self.last))
        same(operation, answer.properties["statusCode"], status)
        return answer.body


def settled_and_unsettled_sends(connection):
    sender = connection.create_sender("plain", options=AtLeastOnce())
    same("outcome", sender.send(Message(body="unsettled")).remote_state, Delivery.ACCEPTED)
    sender.close()
    sender = connection.create_sender("plain", options=AtMostOnce())
    sender.send(Message(body="settled"))
    sender.close()
    receiver = connection.create_receiver("plain", credit=2)
    for want in ("unsettled", "settled"):
        same("body", receiver.receive(timeout=LIMIT).body, want)
        receiver.accept()
    receiver.close()


def settles_second(connection):
    sender = connection.create_sender("plain")
    sender.send(Message(body="second"))
    receiver = connection.create_receiver("plain", credit=1, options=[Second()])
    same("mode", receiver.link.remote_rcv_settle_mode, Link.RCV_SECOND)
    same("body", receiver.receive(timeout=LIMIT).body, "second")
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.update(Delivery.ACCEPTED)
    connection.wait(lambda: delivery.settled, timeout=LIMIT)
    same("outcome", delivery.remote_state, Delivery.ACCEPTED)
    delivery.settle()
    receiver.close()
    nothing = 204
    Asker(connection, "plain").ask("com.microsoft:peek-message", {"from-sequence-number": 1, "message-count": int32(9)}, nothing)


def drains(connection):
    receiver = connection.create_receiver("plain", credit=0)
    receiver.link.drain(5)
    connection.wait(lambda: receiver.link.credit == 0 and not receiver.link.draining(), timeout=LIMIT)
    sender = connection.create_sender("plain")
    sender.send(Message(body="drained"))
    receiver.link.drain(5)
    same("body", receiver.receive(timeout=LIMIT).body, "drained")
    receiver.accept()
    connection.wait(lambda: receiver.link.credit == 0, timeout=LIMIT)
    receiver.close()


def defers(connection):
    sender = connection.create_sender("plain")
    sender.send(Message(body="later"))
    receiver = connection.create_receiver("plain", credit=1)
    message = receiver.receive(timeout=LIMIT)
    number = message.annotations[symbol("x-opt-sequence-number")]
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.local.undeliverable, delivery.local.failed = True, False
    delivery.update(Delivery.MODIFIED)
    delivery.settle()
    receiver.close()
    asker = Asker(connection, "plain")
    found = asker.ask("com.microsoft:receive-by-sequence-number", {
        "sequence-numbers": Array(UNDESCRIBED, Data.LONG, number), "receiver-settle-mode": uint(1)})["messages"]
    same("messages", len(found), 1)
    deferred = Message()
    deferred.decode(bytes(found[0]["message"]))
    same("body", deferred.body, "later")
    asker.ask("com.microsoft:update-disposition", {
        "disposition-status": "completed", "lock-tokens": Array(UNDESCRIBED, Data.UUID, found[0]["lock-token"])})


def session_state(connection):
    sender = connection.create_sender("changes")
    sender.send(Message(body="one", group_id="proton"))
    sessions = Filter({symbol("com.microsoft:session-filter"): Described(symbol("com.microsoft:session-filter"), "proton")})
    receiver = connection.create_receiver("changes/Subscriptions/projector", credit=1, options=[sessions])
    same("body", receiver.receive(timeout=LIMIT).body, "one")
    asker = Asker(connection, "changes/Subscriptions/projector")
    asker.ask("com.microsoft:set-session-state", {"session-id": "proton", "session-state": b"half way"})
    state = asker.ask("com.microsoft:get-session-state", {"session-id": "proton"})["session-state"]
    same("state", bytes(state), b"half way")
    receiver.accept()
    receiver.close()


SCENARIOS = [settled_and_unsettled_sends, settles_second, drains, defers, session_state]


if __name__ == "__main__":
    for scenario in SCENARIOS:
        print(scenario.__name__, flush=True)
        connection = BlockingConnection("amqp://" + os.environ["ADDRESS"], timeout=LIMIT, user="RootManageSharedAccessKey",
                                        password="SAS_KEY_VALUE", allowed_mechs="PLAIN", allow_insecure_mechs=True)
        scenario(connection)
        connection.close()

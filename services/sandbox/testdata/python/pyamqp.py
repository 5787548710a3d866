"""Sends, receives and asks with pyamqp, the AMQP library that the current Python SDKs bring with them."""
import os
import time

from azure.eventhub._pyamqp import message as amqp_message
from azure.eventhub._pyamqp._connection import Connection
from azure.eventhub._pyamqp.constants import ReceiverSettleMode, SenderSettleMode
from azure.eventhub._pyamqp.management_operation import ManagementOperation
from azure.eventhub._pyamqp.outcomes import Accepted
from azure.eventhub._pyamqp.sasl import SASLAnonymousCredential
from azure.eventhub._pyamqp.types import AMQPTypes, TYPE, VALUE

LIMIT = 30


def until(connection, done):
    end = time.monotonic() + LIMIT
    while not done():
        if time.monotonic() > end:
            raise AssertionError("nothing came within %d s" % LIMIT)
        connection.listen()


def main():
    host, port = os.environ["ADDRESS"].rsplit(":", 1)
    connection = Connection(
        "amqps://" + host, port=int(port), ssl_opts={"ca_certs": os.environ["CERTIFICATE"]}, sasl_credential=SASLAnonymousCredential())
    connection.open()
    session = connection.create_session()
    session.begin()

    tokens = ManagementOperation(session, "$cbs", status_code_field=b"status-code", status_description_field=b"status-description")
    tokens.open()
    until(connection, tokens.ready)
    status, _, _ = tokens.execute(
        amqp_message.Message(value="token", properties=amqp_message.Properties(message_id="0"), application_properties={"name": "sb://host/plain"}),
        operation="put-token", operation_type="servicebus.windows.net:sastoken", timeout=LIMIT)
    assert status == 200, status

    sender = session.create_sender_link("plain", send_settle_mode=SenderSettleMode.Unsettled)
    sender.attach()
    until(connection, lambda: sender.get_state().name == "ATTACHED" and sender.current_link_credit > 0)
    outcomes = []
    sender.send_transfer(amqp_message.Message(data=[b"hello"]), on_send_complete=lambda reason, state: outcomes.append(state))
    until(connection, lambda: outcomes)
    assert list(outcomes[0]) == ["accepted"], outcomes

    asking = ManagementOperation(session, "plain/$management")
    asking.open()
    until(connection, asking.ready)
    status, _, answer = asking.execute(
        amqp_message.Message(
            value={"from-sequence-number": {TYPE: AMQPTypes.long, VALUE: 0}, "message-count": {TYPE: AMQPTypes.int, VALUE: 1}},
            properties=amqp_message.Properties(message_id="0"), application_properties={}),
        operation="com.microsoft:peek-message", operation_type="x", timeout=LIMIT)
    assert status == 200, status
    assert len(answer.value[b"messages"]) == 1, answer

    got = []
    receiver = session.create_receiver_link("plain", target_address="pyamqp", on_transfer=lambda frame, m: got.append((frame, m)), link_credit=1,
        send_settle_mode=SenderSettleMode.Unsettled, rcv_settle_mode=ReceiverSettleMode.Second,
        properties={"x": "y"})
    receiver.attach()
    until(connection, lambda: got)
    frame, m = got[0]
    assert b"".join(m.data) == b"hello", m
    receiver.send_disposition(first_delivery_id=frame[1], settled=True, delivery_state=Accepted())
    receiver.detach(close=True)
    until(connection, lambda: receiver.get_state().name == "DETACHED")
    connection.close()


if __name__ == "__main__":
    main()

"""Runs the Python example of docs/message-contract.md as it is written there, against a namespace at an address of its own.

Arguments: the file with the example, then those of its run().
"""
import os
import sys

from azure import servicebus


class Client(servicebus.ServiceBusClient):
    """Knows where the namespace is and whom to trust: a connection string has no place for either."""

    @classmethod
    def from_connection_string(cls, conn_str, **kwargs):
        return super().from_connection_string(
            conn_str, custom_endpoint_address=os.environ["ENDPOINT"], connection_verify=os.environ["CERTIFICATE"], **kwargs)


servicebus.ServiceBusClient = Client
example = {"__name__": "example"}
with open(sys.argv[1]) as source:
    exec(compile(source.read(), sys.argv[1], "exec"), example)
example["run"](*sys.argv[2:])

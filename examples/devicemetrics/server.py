#!/usr/bin/env python3
"""Serves a page of a DRA driver's devices, as docs/plugins.md specifies it.

    python3 server.py FOLDER DRIVER POOL

The devices are the network interfaces of this machine. It needs Debian's
python3-prometheus-client, or prometheus_client of pip.
"""

import os
import socketserver
import sys

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

LABELS = ["driver", "pool", "device"]


class Interfaces:
    def __init__(self, driver, pool):
        self.device = [driver, pool]

    def collect(self):
        sent = CounterMetricFamily("dra_device_network_transmit_bytes", "Bytes sent", labels=LABELS)
        state = GaugeMetricFamily("dra_device_network_link_state", "State of a port", labels=LABELS + ["port", "state"])
        for name in os.listdir("/sys/class/net"):
            try:
                with open(f"/sys/class/net/{name}/statistics/tx_bytes") as file:
                    sent.add_metric(self.device + [name], int(file.read()))
                with open(f"/sys/class/net/{name}/carrier") as file:
                    state.add_metric(self.device + [name, "1", "active"], int(file.read()))
            except OSError:
                pass  # what cannot be read has no series
        return [sent, state]


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


folder, driver, pool = sys.argv[1:]
registry = CollectorRegistry()
registry.register(Interfaces(driver, pool))
socket = f"{folder}/{driver}.sock"
if os.path.exists(socket):
    os.remove(socket)  # that of a process which was killed
Server(socket, MetricsHandler.factory(registry)).serve_forever()

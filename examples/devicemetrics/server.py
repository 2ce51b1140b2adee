#!/usr/bin/env python3
"""Serves device metrics of network interfaces to dra-exporter.

    python3 server.py --driver=dra.net --pool="$NODE_NAME"

Each network interface of this machine is a device of the driver: its bytes in
both directions, its errors, and whether its link is up. Replace read_devices()
by what reads the devices of your driver. The specification is
plugin/devicemetrics/v1alpha1/devicemetrics.proto.

It needs Debian's python3-grpcio and python3-protobuf, or grpcio and protobuf of
pip. Check it with: dra-exporter check plugin unix:///FOLDER/DRIVER.sock
"""

import argparse
import base64
import concurrent.futures
import os
import re
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf import timestamp_pb2  # noqa: F401, which the specification imports

PACKAGE = "dra_exporter.devicemetrics.v1alpha1"
NETWORKS = "/sys/class/net"


def read_number(*path):
    """Returns the number in a file of sysfs, None if it cannot be read."""
    try:
        with open(os.path.join(*path), encoding="ascii") as file:
            return float(file.read())
    except (OSError, ValueError):
        return None


def read_devices():
    """Returns {device name: [(quantity, details, value)]}, without what cannot be read."""
    devices = {}
    for name in sorted(os.listdir(NETWORKS)):
        if not re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name):
            continue  # not a name of a published device
        folder = os.path.join(NETWORKS, name)
        carrier = read_number(folder, "carrier")
        readings = [
            ("network_transmit", [], read_number(folder, "statistics", "tx_bytes")),
            ("network_receive", [], read_number(folder, "statistics", "rx_bytes")),
            ("network_errors", ["transmit"], read_number(folder, "statistics", "tx_errors")),
            ("network_errors", ["receive"], read_number(folder, "statistics", "rx_errors")),
            ("network_links", ["1", "active"], carrier),
            ("network_links", ["1", "down"], None if carrier is None else 1 - carrier),
        ]
        devices[name] = [reading for reading in readings if reading[2] is not None]
    return devices


def watch(request, options):
    """Yields the messages of one stream: a description when the devices change, and reports."""
    interval = min(max(request.interval_milliseconds / 1000 or 1, 0.2), 5)
    described = None
    while True:
        devices = read_devices()
        names = list(devices)
        if names != described:
            described = names
            message = Response()
            message.description.driver = options.driver
            for name in names:
                message.description.devices.add(pool=options.pool, name=name, model="network interface")
            yield message
        message = Response()
        message.report.measured.GetCurrentTime()
        for index, name in enumerate(names):
            device = message.report.devices.add(device=index)
            for quantity, details, value in devices[name]:
                device.readings.add(quantity=quantity, details=details, value=value)
        yield message
        time.sleep(interval)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True, help="name of the DRA driver")
    parser.add_argument("--pool", required=True, help="pool of the devices, as in the ResourceSlice")
    parser.add_argument("--folder", default="/var/run/dra-exporter/plugins", help="where to create the socket")
    options = parser.parse_args()

    handler = grpc.unary_stream_rpc_method_handler(
        lambda request, _: watch(request, options),
        request_deserializer=Request.FromString,
        response_serializer=Response.SerializeToString,
    )
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(PACKAGE + ".DeviceMetrics", {"Watch": handler}),)
    )
    socket = os.path.join(options.folder, options.driver + ".sock")
    draft = os.path.join(options.folder, "." + options.driver + ".sock")
    if server.add_insecure_port("unix:" + draft) == 0:
        raise SystemExit("cannot listen on " + draft)
    server.start()
    os.rename(draft, socket)  # replaces the socket of a process that has ended
    server.wait_for_termination()


def message_class(name):
    """Returns the class of a message of the specification."""
    descriptor = POOL.FindMessageTypeByName(PACKAGE + "." + name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(POOL).GetPrototype(descriptor)  # before protobuf 4.22


# devicemetrics.proto as a FileDescriptorProto; `make proto` writes it.
SPECIFICATION = """
CjFwbHVnaW4vZGV2aWNlbWV0cmljcy92MWFscGhhMS9kZXZpY2VtZXRyaWNzLnByb3RvEiNkcmFfZXhwb3J0ZXIuZGV2aWNl
bWV0cmljcy52MWFscGhhMRofZ29vZ2xlL3Byb3RvYnVmL3RpbWVzdGFtcC5wcm90byJDCgxXYXRjaFJlcXVlc3QSMwoVaW50
ZXJ2YWxfbWlsbGlzZWNvbmRzGAEgASgNUhRpbnRlcnZhbE1pbGxpc2Vjb25kcyK3AQoNV2F0Y2hSZXNwb25zZRJUCgtkZXNj
cmlwdGlvbhgBIAEoCzIwLmRyYV9leHBvcnRlci5kZXZpY2VtZXRyaWNzLnYxYWxwaGExLkRlc2NyaXB0aW9uSABSC2Rlc2Ny
aXB0aW9uEkUKBnJlcG9ydBgCIAEoCzIrLmRyYV9leHBvcnRlci5kZXZpY2VtZXRyaWNzLnYxYWxwaGExLlJlcG9ydEgAUgZy
ZXBvcnRCCQoHbWVzc2FnZSK8AQoLRGVzY3JpcHRpb24SFgoGZHJpdmVyGAEgASgJUgZkcml2ZXISRQoHZGV2aWNlcxgCIAMo
CzIrLmRyYV9leHBvcnRlci5kZXZpY2VtZXRyaWNzLnYxYWxwaGExLkRldmljZVIHZGV2aWNlcxJOCgpleHRlbnNpb25zGAMg
AygLMi4uZHJhX2V4cG9ydGVyLmRldmljZW1ldHJpY3MudjFhbHBoYTEuRXh0ZW5zaW9uUgpleHRlbnNpb25zItIBCgZEZXZp
Y2USEgoEcG9vbBgBIAEoCVIEcG9vbBISCgRuYW1lGAIgASgJUgRuYW1lEhIKBHV1aWQYAyABKAlSBHV1aWQSHwoLcGNpX2Fk
ZHJlc3MYBCABKAlSCnBjaUFkZHJlc3MSFgoGcGFyZW50GAUgASgJUgZwYXJlbnQSFAoFbW9kZWwYBiABKAlSBW1vZGVsEhYK
BnZlbmRvchgHIAEoCVIGdmVuZG9yEiUKDmRyaXZlcl92ZXJzaW9uGAggASgJUg1kcml2ZXJWZXJzaW9uIoYBCglFeHRlbnNp
b24SEgoEbmFtZRgBIAEoCVIEbmFtZRISCgR1bml0GAIgASgJUgR1bml0Ej0KBGtpbmQYAyABKA4yKS5kcmFfZXhwb3J0ZXIu
ZGV2aWNlbWV0cmljcy52MWFscGhhMS5LaW5kUgRraW5kEhIKBGhlbHAYBCABKAlSBGhlbHAiowEKBlJlcG9ydBI2CghtZWFz
dXJlZBgBIAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5UaW1lc3RhbXBSCG1lYXN1cmVkEksKB2RldmljZXMYAiADKAsyMS5kcmFf
ZXhwb3J0ZXIuZGV2aWNlbWV0cmljcy52MWFscGhhMS5EZXZpY2VSZXBvcnRSB2RldmljZXMSFAoFZXJyb3IYAyABKAlSBWVy
cm9yIokCCgxEZXZpY2VSZXBvcnQSFgoGZGV2aWNlGAEgASgNUgZkZXZpY2USSAoIcmVhZGluZ3MYAiADKAsyLC5kcmFfZXhw
b3J0ZXIuZGV2aWNlbWV0cmljcy52MWFscGhhMS5SZWFkaW5nUghyZWFkaW5ncxJJCgZoZWFsdGgYAyADKAsyMS5kcmFfZXhw
b3J0ZXIuZGV2aWNlbWV0cmljcy52MWFscGhhMS5IZWFsdGhTaWduYWxSBmhlYWx0aBJMCglwcm9jZXNzZXMYBCABKAsyLi5k
cmFfZXhwb3J0ZXIuZGV2aWNlbWV0cmljcy52MWFscGhhMS5Qcm9jZXNzZXNSCXByb2Nlc3NlcyLmAQoHUmVhZGluZxIaCghx
dWFudGl0eRgBIAEoCVIIcXVhbnRpdHkSHAoJZXh0ZW5zaW9uGAIgASgJUglleHRlbnNpb24SGAoHZGV0YWlscxgDIAMoCVIH
ZGV0YWlscxIUCgV2YWx1ZRgEIAEoAVIFdmFsdWUSNgoIbWVhc3VyZWQYBSABKAsyGi5nb29nbGUucHJvdG9idWYuVGltZXN0
YW1wUghtZWFzdXJlZBI5CgpzdGFydF90aW1lGAYgASgLMhouZ29vZ2xlLnByb3RvYnVmLlRpbWVzdGFtcFIJc3RhcnRUaW1l
IoIBCgxIZWFsdGhTaWduYWwSEgoEbmFtZRgBIAEoCVIEbmFtZRJGCgVzdGF0ZRgCIAEoDjIwLmRyYV9leHBvcnRlci5kZXZp
Y2VtZXRyaWNzLnYxYWxwaGExLkhlYWx0aFN0YXRlUgVzdGF0ZRIWCgZyZWFzb24YAyABKAlSBnJlYXNvbiJXCglQcm9jZXNz
ZXMSSgoJcHJvY2Vzc2VzGAEgAygLMiwuZHJhX2V4cG9ydGVyLmRldmljZW1ldHJpY3MudjFhbHBoYTEuUHJvY2Vzc1IJcHJv
Y2Vzc2VzIosBCgdQcm9jZXNzEhAKA3BpZBgBIAEoDVIDcGlkEiYKDG1lbW9yeV9ieXRlcxgCIAEoBEgAUgttZW1vcnlCeXRl
c4gBARIlCgt1dGlsaXphdGlvbhgDIAEoAUgBUgt1dGlsaXphdGlvbogBAUIPCg1fbWVtb3J5X2J5dGVzQg4KDF91dGlsaXph
dGlvbio+CgRLaW5kEhQKEEtJTkRfVU5TUEVDSUZJRUQQABIOCgpLSU5EX0dBVUdFEAESEAoMS0lORF9DT1VOVEVSEAIqfAoL
SGVhbHRoU3RhdGUSHAoYSEVBTFRIX1NUQVRFX1VOU1BFQ0lGSUVEEAASGAoUSEVBTFRIX1NUQVRFX0hFQUxUSFkQARIZChVI
RUFMVEhfU1RBVEVfREVHUkFERUQQAhIaChZIRUFMVEhfU1RBVEVfVU5IRUFMVEhZEAMygQEKDURldmljZU1ldHJpY3MScAoF
V2F0Y2gSMS5kcmFfZXhwb3J0ZXIuZGV2aWNlbWV0cmljcy52MWFscGhhMS5XYXRjaFJlcXVlc3QaMi5kcmFfZXhwb3J0ZXIu
ZGV2aWNlbWV0cmljcy52MWFscGhhMS5XYXRjaFJlc3BvbnNlMAFCTVpLZ2l0aHViLmNvbS9kcmEtZXhwb3J0ZXIvZHJhLWV4
cG9ydGVyL3BsdWdpbi9kZXZpY2VtZXRyaWNzL3YxYWxwaGExO3YxYWxwaGExYgZwcm90bzM=
"""

POOL = descriptor_pool.Default()
POOL.Add(descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(SPECIFICATION)))
Request, Response = message_class("WatchRequest"), message_class("WatchResponse")

if __name__ == "__main__":
    main()

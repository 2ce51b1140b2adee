"""What the ResourceClaims of this pod get of their devices, read from inside.

    import claimwatch

    watch = claimwatch.start()              # never raises, never blocks
    for step, batch in enumerate(loader):
        loss = train(batch)
        watch.step()                        # counts, and nothing else
        if step % 100 == 0:
            print(watch.line())             # a dict of what is known
    print(watch.close())                    # totals of the run

The numbers are those of dra-exporter, asked of the agent of this node or of a
Prometheus. A thread of its own asks; the training never waits for it. What is
unknown is left out, and is never 0. Python's standard library is all it needs.
The environment says whom to ask: README.md has the table.
"""

import base64
import http.client
import json
import math
import os
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, fields

LONGEST_ANSWER = 8 << 20  # bytes; a claim takes about two thousand
LONGEST_PAUSE = 60.0  # seconds between two attempts while there is no answer
IDLE, WAITING = 0.02, 0.5  # busy shares below which a hint is given


class Unusable(Exception):
    """An answer, or a setting, that cannot be used; its text says why."""


@dataclass(frozen=True)
class Device:
    """A device of one claim at one moment. Seconds and joules are counters.

    busy and joules are without what accrued while the device was shared and
    could not be split; that is in shared_busy and shared_joules, and is not
    this claim's alone.
    """

    claim: str
    uuid: str
    held: bool = False
    held_seconds: float | None = None
    device_seconds: float | None = None
    busy: float | None = None
    shared_busy: float | None = None
    joules: float | None = None
    shared_joules: float | None = None
    utilization: float | None = None
    utilization_shared: bool = False
    memory_used: float | None = None
    memory_shared: bool = False
    memory_allocated: float | None = None
    watts: float | None = None
    watts_shared: bool = False
    price: float | None = None
    currency: str = ""

    def reports_use(self):
        return self.utilization is not None and not self.utilization_shared


@dataclass(frozen=True)
class Totals:
    """What has accrued since the first answer, over all devices.

    …_known are the held seconds in which the quantity beside it was reported.
    """

    held: float = 0.0
    device_seconds: float = 0.0
    busy: float = 0.0
    busy_known: float = 0.0
    joules: float = 0.0
    joules_known: float = 0.0
    cost: float = 0.0
    cost_known: float = 0.0

    def __sub__(self, other):
        return Totals(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))


def grown(before, now):
    """How much a counter has grown; one that fell has restarted at zero."""
    if before is None or now is None:
        return None
    return now if now < before else now - before


def accrued(totals, before, now):
    """totals and what a device's counters have gained between two answers."""
    held = grown(before.held_seconds, now.held_seconds) or 0.0
    weighted = grown(before.device_seconds, now.device_seconds)
    gain = {"held": held, "device_seconds": weighted or 0.0}
    busy = grown(before.busy, now.busy)
    mixed = grown(before.shared_busy or 0.0, now.shared_busy or 0.0)
    if busy is not None and before.reports_use() and now.reports_use() and not mixed:
        gain.update(busy=busy, busy_known=held)
    joules = grown(before.joules, now.joules)
    mixed = grown(before.shared_joules or 0.0, now.shared_joules or 0.0)
    if joules is not None and not mixed:
        gain.update(joules=joules, joules_known=held)
    if weighted is not None and now.price is not None:
        gain.update(cost=weighted * now.price / 3600, cost_known=held)
    return Totals(*(getattr(totals, f.name) + gain.get(f.name, 0.0) for f in fields(totals)))


class Watch:
    """Asks a source in the background. step, line and close are for one thread."""

    def __init__(self, source, interval, deadline, problem=""):
        self._source, self._interval, self._deadline = source, interval, deadline
        self._problem = problem  # why nothing is known, or not any more
        self._lock = threading.Lock()
        self._devices, self._at, self._totals = {}, None, Totals()
        self._steps, self._steps_at, self._first_step = 0, 0, 0
        self._shown, self._shown_steps = Totals(), 0
        self._stop, self._last = threading.Event(), threading.Event()
        if source is not None:
            threading.Thread(target=self._run, name="claimwatch", daemon=True).start()

    def step(self):
        """One more step is done."""
        self._steps += 1

    def line(self):
        """What is known now, and what has accrued since the line before."""
        with self._lock:
            out = {"unknown": self._problem} if self._problem else {}
            if self._at is None:
                return out
            age = time.monotonic() - self._at
            out["age_seconds"] = round(age, 1)
            if age <= max(3 * self._interval, 30):
                out.update(present([d for d in self._devices.values() if d.held]))
            window = self._totals - self._shown
            if window.held <= 0:
                return out  # nothing has accrued: say it with the next line
            out.update(share(window, self._steps_at - self._shown_steps))
            self._shown, self._shown_steps = self._totals, self._steps_at
            return out

    def close(self):
        """Totals since the first answer. Waits for one more, for no longer than
        the deadline of one question, and then leaves the thread to itself."""
        self._stop.set()
        if self._source is not None and self._at is not None:
            self._last.wait(self._deadline)
        with self._lock:
            out = {"unknown": self._problem} if self._problem else {}
            if self._at is None:
                return out
            out.update(summary(self._totals, self._steps_at - self._first_step, self._devices.values()))
            return out

    def _run(self):
        failures = 0
        while True:
            last = self._stop.is_set()
            failures = 0 if self._ask() else failures + 1
            if last:
                self._last.set()
                return
            self._stop.wait(min(self._interval * 2 ** min(failures, 10), max(LONGEST_PAUSE, self._interval)))

    def _ask(self):
        """Asks the source once. An error is a text, which is reported when it changes."""
        try:
            devices = {(d.claim, d.uuid): d for d in self._source(time.monotonic() + self._deadline)}
        except Exception as err:
            return self._report(str(err) or type(err).__name__)
        with self._lock:
            for key, now in devices.items():
                if key in self._devices:
                    self._totals = accrued(self._totals, self._devices[key], now)
            if self._at is None:
                self._first_step = self._shown_steps = self._steps
            self._devices, self._at, self._steps_at = devices, time.monotonic(), self._steps
        return self._report("")

    def _report(self, problem):
        with self._lock:
            before, self._problem = self._problem, problem
        if problem != before:
            print(f"claimwatch: {problem or 'numbers are there again'}", file=sys.stderr, flush=True)
        return not problem


def present(devices):
    """Gauges, over the devices that are held. What is shared and cannot be split
    is in none of them, but in shared_devices."""
    out = {"devices": len(devices)}
    used = [d.utilization for d in devices if d.reports_use()]
    if used:
        out["utilization"] = round(sum(used) / len(used), 3)
    memory = [d for d in devices if d.memory_used is not None and not d.memory_shared]
    if memory:
        out["memory_used_bytes"] = int(sum(d.memory_used for d in memory))
        if all(d.memory_allocated is not None for d in memory):
            out["memory_allocated_bytes"] = int(sum(d.memory_allocated for d in memory))
    watts = [d.watts for d in devices if d.watts is not None and not d.watts_shared]
    if watts:
        out["power_watts"] = round(sum(watts), 1)
    shared = sum(d.utilization_shared or d.memory_shared or d.watts_shared for d in devices)
    return out | ({"shared_devices": shared} if shared else {})


def share(window, steps):
    """What a window of totals says, with a hint where the claim waits."""
    out = {"held_seconds": round(window.held, 1)}
    if window.busy_known > 0:
        busy = min(window.busy / window.busy_known, 1.0)
        out["busy_share"] = round(busy, 3)
        if busy < IDLE:
            out["hint"] = "idle: the claim holds its devices and does not use them"
        elif busy < WAITING and steps:
            out["hint"] = f"input-bound: the devices wait {100 * (1 - busy):.0f} % of the time; look at what feeds them"
    if steps and mostly_known(window.joules_known, window.held):
        out["joules_per_step"] = round(window.joules / steps, 3)
    return out


def summary(totals, steps, devices):
    """The run as a whole. A sum that misses a part of it is left out."""
    out = {"device_seconds": round(totals.device_seconds, 1), "held_seconds": round(totals.held, 1)}
    if totals.busy_known > 0:
        out["busy_seconds"] = round(totals.busy, 1)
        out["busy_share"] = round(min(totals.busy / totals.busy_known, 1.0), 3)
    if totals.held > 0 and mostly_known(totals.joules_known, totals.held):
        out["joules"] = round(totals.joules, 1)
        if steps:
            out["joules_per_step"] = round(totals.joules / steps, 3)
    currencies = {d.currency for d in devices if d.price is not None}
    if totals.held > 0 and mostly_known(totals.cost_known, totals.held) and len(currencies) == 1:
        out["cost"], out["currency"] = round(totals.cost, 6), currencies.pop()
    return out


def mostly_known(known, held):
    return known >= 0.99 * held


# Whom to ask.


@dataclass(frozen=True)
class Pod:
    namespace: str
    name: str
    uid: str = ""
    node: str = ""


def agent(url, pod, fetch):
    """Asks the node's agent: docs/api.md."""
    address = url.rstrip("/") + "/api/v1/claims?" + urllib.parse.urlencode({"namespace": pod.namespace})

    def ask(until):
        document = fetch(address, until)
        devices = list(of_agent(document, pod))
        if devices:
            return devices
        node = text(document, "node")
        if pod.node and node != pod.node:
            raise Unusable(f"{url} is the agent of {node}, and this pod is on {pod.node}: the Service needs internalTrafficPolicy: Local")
        raise Unusable(f"the agent of {node} knows no claim of {pod.namespace}/{pod.name}")

    return ask


def of_agent(document, pod):
    """The devices of the pod's claims, from /api/v1/claims."""
    for claim in items(document, "claims"):
        consumers = items(claim, "consumers")
        mine = [c for c in consumers if text(c, "pod") == pod.name and pod.uid in ("", text(c, "podUid"))]
        if not mine or text(claim, "namespace") != pod.namespace or claim.get("adminAccess") is True:
            continue
        for d in items(claim, "devices"):
            accounts, price = items(d, "accounts"), d.get("price") or {}
            yield Device(
                claim=pod.namespace + "/" + text(claim, "name"), uuid=text(d, "uuid"), held=d.get("held") is True,
                held_seconds=number(d, "heldSeconds"), device_seconds=number(d, "deviceSeconds"),
                busy=summed(accounts, "busySeconds", False), shared_busy=summed(accounts, "busySeconds", True),
                joules=summed(accounts, "energyJoules", False), shared_joules=summed(accounts, "energyJoules", True),
                utilization=number(d, "utilizationRatio"), utilization_shared=d.get("utilizationAttribution") == "shared",
                memory_used=number(d, "memoryUsedBytes"), memory_shared=d.get("memoryAttribution") == "shared",
                memory_allocated=number(d, "memoryAllocatedBytes"),
                watts=number(d, "powerWatts"), watts_shared=d.get("attribution") == "shared",
                price=number(price, "perHour"), currency=text(price, "currency"),
            )


def summed(accounts, name, shared):
    values = [number(a, name) for a in accounts if (a.get("attribution") == "shared") == shared]
    known = [v for v in values if v is not None]
    return sum(known) if known else None


# Family without dra_claim_ → field, and the field of the same with attribution="shared".
FAMILIES = {
    "held_seconds_total": ("held_seconds", None), "device_seconds_total": ("device_seconds", None),
    "busy_seconds_total": ("busy", "shared_busy"), "energy_joules_total": ("joules", "shared_joules"),
    "utilization_ratio": ("utilization", "utilization_shared"), "memory_used_bytes": ("memory_used", "memory_shared"),
    "memory_allocated_bytes": ("memory_allocated", None), "power_watts": ("watts", "watts_shared"), "held": ("held", None),
}


def query(pod, matchers=""):
    """One question for all: rows of the claims that this pod consumes, and what
    an hour of their devices costs."""
    quoted = [f"namespace={json.dumps(pod.namespace)}"] + ([matchers] if matchers else [])
    consumer = quoted + [f"pod={json.dumps(pod.name)}"] + ([f"pod_uid={json.dumps(pod.uid)}"] if pod.uid else [])
    mine = "on (cluster, node, namespace, resourceclaim, uuid) dra_claim_consumer_info{%s}" % ", ".join(consumer)
    names = "dra_claim_(" + "|".join(FAMILIES) + ")"
    return (
        "({__name__=~%s, %s} and %s)" % (json.dumps(names), ", ".join(quoted), mine)
        + " or (dra_device_price_per_hour and on (cluster, node, uuid, deviceclass)"
        + " (dra_claim_device_info{%s} and %s))" % (", ".join(quoted), mine)
    )


def prometheus(url, pod, fetch, matchers=""):
    """Asks a Prometheus, or what answers as one."""
    address = url.rstrip("/") + "/api/v1/query?" + urllib.parse.urlencode({"query": query(pod, matchers)})

    def ask(until):
        document = fetch(address, until)
        if document.get("status") != "success":
            raise Unusable(f"Prometheus: {text(document, 'error') or 'no answer to a query'}")
        devices = of_prometheus(document)
        if not devices:
            raise Unusable(f"Prometheus has no claim of {pod.namespace}/{pod.name} yet")
        return devices

    return ask


def of_prometheus(document):
    """The devices of an answer to query()."""
    rows, prices = {}, {}
    for item in items(document.get("data") or {}, "result"):
        labels, value = item.get("metric"), sample(item)
        if not isinstance(labels, dict) or value is None:
            continue
        name = text(labels, "__name__")
        if name == "dra_device_price_per_hour":
            prices[text(labels, "uuid")] = {"price": value, "currency": text(labels, "currency")}
            continue
        field, shared = FAMILIES.get(name.removeprefix("dra_claim_"), (None, None))
        if field is None:
            continue
        row = rows.setdefault((text(labels, "namespace") + "/" + text(labels, "resourceclaim"), text(labels, "uuid")), {})
        put(row, field, shared, labels.get("attribution") == "shared", value)
    return [Device(claim, uuid, **(row | prices.get(uuid, {}))) for (claim, uuid), row in rows.items()]


def put(row, field, shared_field, shared, value):
    """Enters a sample: counters add up, a gauge is marked where it is shared."""
    if field == "held":
        row["held"] = value == 1
    elif shared_field in ("shared_busy", "shared_joules"):
        field = shared_field if shared else field
        row[field] = row.get(field, 0.0) + value
    else:
        row[field] = value
        if shared_field is not None:
            row[shared_field] = shared


def sample(item):
    value = item.get("value")
    if not isinstance(value, list) or len(value) != 2:
        return None
    found = float(value[1])
    return found if math.isfinite(found) else None


# Parsing of untrusted answers.


def text(document, name):
    value = document.get(name, "") if isinstance(document, dict) else None
    if not isinstance(value, str):
        raise Unusable(f"the answer's {name} is no text")
    return value


def number(document, name):
    value = document.get(name) if isinstance(document, dict) else None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Unusable(f"the answer's {name} is no number")
    return float(value)


def items(document, name):
    value = document.get(name, []) if isinstance(document, dict) else None
    if value is None and isinstance(document, dict):
        return []  # an empty list of Go's
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise Unusable(f"the answer's {name} is no list of objects")
    return value


def fetcher(headers, context):
    """Asks a URL for a JSON object, until a moment of the monotonic clock. No
    proxy (what is asked is in the cluster) and no redirect: it would carry the
    credentials elsewhere."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(context=context), urllib.request.UnknownHandler(),
        urllib.request.HTTPErrorProcessor(), urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)

    def fetch(url, until):
        where = url.partition("?")[0]
        try:
            with opener.open(urllib.request.Request(url, headers=headers()), timeout=left(until)) as answer:
                document = json.loads(read(answer, until), parse_constant=float)
        except urllib.error.HTTPError as err:
            with err:
                raise Unusable(f"{where}: {err.code} {err.reason}") from err
        except (OSError, ValueError, RecursionError, http.client.HTTPException) as err:
            raise Unusable(f"{where}: {getattr(err, 'reason', None) or err or type(err).__name__}") from err
        if not isinstance(document, dict):
            raise Unusable(f"{where}: the answer is no JSON object")
        return document

    return fetch


def left(until):
    remaining = until - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("no answer in time")
    return remaining


def read(answer, until):
    """The whole body. A timeout of the socket is for each read: a server that
    sends a byte now and then would keep it going for ever."""
    parts, size = [], 0
    while part := answer.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if size > LONGEST_ANSWER:
            raise Unusable(f"the answer is longer than {LONGEST_ANSWER} bytes")
        left(until)
    return b"".join(parts)


# Settings.


def start(environ=os.environ):
    """A Watch by the environment. One that cannot work says why in each line."""
    try:
        interval = seconds(environ, "CLAIMWATCH_INTERVAL", 5.0)
        deadline = seconds(environ, "CLAIMWATCH_TIMEOUT", 3.0)
        return Watch(source(environ), interval, deadline)
    except Exception as err:
        print(f"claimwatch: {err}", file=sys.stderr, flush=True)
        return Watch(None, 1.0, 1.0, problem=str(err))


def source(environ):
    pod = Pod(*(environ.get(name, "") for name in ("POD_NAMESPACE", "POD_NAME", "POD_UID", "NODE_NAME")))
    if not pod.namespace or not pod.name:
        raise Unusable("POD_NAMESPACE and POD_NAME are not set: a fieldRef of the pod sets them")
    urls = [environ.get(name, "") for name in ("DRA_EXPORTER_URL", "PROMETHEUS_URL")]
    if bool(urls[0]) == bool(urls[1]):
        raise Unusable("set one of DRA_EXPORTER_URL and PROMETHEUS_URL")
    for url in filter(None, urls):
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise Unusable(f"{url!r} does not begin with http:// or https://")
    context = ssl.create_default_context(cafile=environ.get("CLAIMWATCH_CA_FILE") or None)
    fetch = fetcher(lambda: authorization(environ), context)
    if urls[0]:
        return agent(urls[0], pod, fetch)
    return prometheus(urls[1], pod, fetch, environ.get("CLAIMWATCH_MATCHERS", ""))


def authorization(environ):
    """Read again for each question: tokens of pods are replaced every hour."""
    if path := environ.get("CLAIMWATCH_TOKEN_FILE"):
        with open(path, encoding="utf-8") as file:
            return {"Authorization": "Bearer " + file.read().strip()}
    if path := environ.get("CLAIMWATCH_BASIC_AUTH_FILE"):  # NAME:PASSWORD
        with open(path, "rb") as file:
            return {"Authorization": "Basic " + base64.b64encode(file.read().strip()).decode()}
    return {}


def seconds(environ, name, default):
    value = environ.get(name) or str(default)
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not 0.1 <= found <= 3600:
        raise Unusable(f"{name} is {value!r}: it is to be a number of seconds from 0.1 to 3600")
    return found

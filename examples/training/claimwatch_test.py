"""python3 -m unittest claimwatch_test: what claimwatch makes of answers."""

import math
import unittest

import claimwatch
from claimwatch import Device, Pod, Totals, Unusable, accrued

POD = Pod("ml", "train-0", "uid-1")


def device(**values):
    """One that is used alone, and has held for 10 s, half of them busy."""
    known = {"held": True, "held_seconds": 10.0, "device_seconds": 10.0, "busy": 5.0, "joules": 1000.0, "utilization": 0.5}
    return Device("ml/gpu", "GPU-1", **(known | values))


def claim(**values):
    return {
        "namespace": "ml", "name": "gpu", "adminAccess": False,
        "consumers": [{"pod": "train-0", "podUid": "uid-1", "container": "train"}],
        "devices": [{
            "uuid": "GPU-1", "held": True, "attribution": "exclusive", "heldSeconds": 10, "deviceSeconds": 10,
            "utilizationRatio": 0.5, "utilizationAttribution": "exclusive",
            "accounts": [{"attribution": "exclusive", "busySeconds": 5}, {"attribution": "shared", "busySeconds": 2}],
        }],
    } | values


def agents(*claims):
    return list(claimwatch.of_agent({"node": "n", "claims": list(claims)}, POD))


class Accrued(unittest.TestCase):
    """What counters gain between two answers."""

    def gain(self, before, now):
        return accrued(Totals(), before, now)

    def test_growth(self):
        got = self.gain(device(), device(held_seconds=14.0, device_seconds=14.0, busy=8.0, joules=3000.0, price=3.6, currency="EUR"))
        self.assertEqual(got, Totals(4.0, 4.0, 3.0, 4.0, 2000.0, 4.0, 0.004, 4.0))

    def test_an_agent_that_restarted(self):
        got = self.gain(device(), device(held_seconds=2.0, device_seconds=2.0, busy=1.0, joules=100.0))
        self.assertEqual((got.held, got.busy, got.joules), (2.0, 1.0, 100.0))

    def test_shared_time_is_not_idle_time(self):
        later = {"held_seconds": 14.0}
        for now in (device(**later, utilization_shared=True), device(**later, utilization=None), device(**later, shared_busy=3.0)):
            got = self.gain(device(), now)
            self.assertEqual((got.held, got.busy, got.busy_known), (4.0, 0.0, 0.0), now)

    def test_shared_energy_is_not_attributed(self):
        got = self.gain(device(), device(held_seconds=14.0, shared_joules=500.0))
        self.assertEqual((got.joules, got.joules_known), (0.0, 0.0))

    def test_what_was_never_reported(self):
        bare = Device("ml/nic", "nic-1", held=True, held_seconds=10.0)
        got = self.gain(bare, Device("ml/nic", "nic-1", held=True, held_seconds=14.0))
        self.assertEqual(got, Totals(held=4.0))


class Words(unittest.TestCase):
    """What a line and the summary say."""

    def test_hints(self):
        for busy, want in ((0.0, "idle"), (0.05, "idle"), (1.0, "input-bound"), (3.0, None)):
            got = claimwatch.share(Totals(held=4.0, busy=busy, busy_known=4.0), steps=10).get("hint")
            self.assertEqual(got and got.partition(":")[0], want, busy)

    def test_without_use_no_hint(self):
        self.assertEqual(claimwatch.share(Totals(held=4.0), steps=10), {"held_seconds": 4.0})

    def test_a_part_of_the_energy_is_no_energy(self):
        self.assertNotIn("joules_per_step", claimwatch.share(Totals(held=8.0, joules=100.0, joules_known=4.0), steps=10))
        self.assertNotIn("joules", claimwatch.summary(Totals(held=8.0, joules=100.0, joules_known=4.0), 10, []))

    def test_two_currencies_are_no_sum(self):
        both = [device(price=1.0, currency="EUR"), device(price=1.0, currency="USD")]
        self.assertNotIn("cost", claimwatch.summary(Totals(held=8.0, cost=1.0, cost_known=8.0), 10, both))

    def test_shared_values_are_in_no_gauge(self):
        got = claimwatch.present([device(), device(utilization=1.0, utilization_shared=True)])
        self.assertEqual(got, {"devices": 2, "utilization": 0.5, "shared_devices": 1})


class Answers(unittest.TestCase):
    """Whose devices an answer contains, and what it is refused for."""

    def test_ours(self):
        got = agents(claim())
        self.assertEqual((len(got), got[0].busy, got[0].shared_busy, got[0].joules), (1, 5.0, 2.0, None))

    def test_others(self):
        self.assertEqual(agents(claim(consumers=[{"pod": "train-0", "podUid": "uid-0"}])), [])
        self.assertEqual(agents(claim(namespace="web")), [])
        self.assertEqual(agents(claim(adminAccess=True)), [])

    def test_garbage(self):
        for bad in (
            claim(devices="GPU-1"), claim(devices=[7]), claim(name=1), claim(consumers={}),
            claim(devices=[{"uuid": "GPU-1", "heldSeconds": "many"}]), claim(devices=[{"uuid": "GPU-1", "heldSeconds": math.nan}]),
            claim(devices=[{"uuid": "GPU-1", "heldSeconds": True}]), claim(devices=[{"uuid": "GPU-1", "price": 3}]),
        ):
            with self.assertRaises(Unusable, msg=bad):
                agents(bad)

    def test_another_node(self):
        ask = claimwatch.agent("http://a", Pod("ml", "train-0", "uid-1", "mine"), lambda url, until: {"node": "other", "claims": []})
        with self.assertRaisesRegex(Unusable, "internalTrafficPolicy"):
            ask(0)

    def test_prometheus(self):
        def row(name, value, **more):
            labels = {"__name__": name, "namespace": "ml", "resourceclaim": "gpu", "uuid": "GPU-1", "node": "n"} | more
            return {"metric": labels, "value": [1, value]}

        got = claimwatch.of_prometheus({"data": {"result": [
            row("dra_claim_held", "1"), row("dra_claim_utilization_ratio", "0.5", attribution="process"),
            row("dra_claim_busy_seconds_total", "5", attribution="exclusive"),
            row("dra_claim_busy_seconds_total", "2", attribution="process"),
            row("dra_claim_busy_seconds_total", "9", attribution="shared"),
            row("dra_claim_power_watts", "300", attribution="shared"), row("dra_claim_memory_used_bytes", "NaN"),
            row("dra_device_price_per_hour", "2.5", currency="EUR"),
        ]}})
        want = Device("ml/gpu", "GPU-1", held=True, utilization=0.5, busy=7.0, shared_busy=9.0, watts=300.0, watts_shared=True, price=2.5, currency="EUR")
        self.assertEqual(got, [want])

    def test_names_cannot_leave_their_quotes(self):
        self.assertIn(r'pod="a\"} or vector(1)"', claimwatch.query(Pod("ml", 'a"} or vector(1)')))


class Settings(unittest.TestCase):
    """A wrong setting is reported, and ends nothing."""

    def test_reported(self):
        pod = {"POD_NAMESPACE": "ml", "POD_NAME": "train-0"}
        for environ, want in (
            ({}, "POD_NAMESPACE"), (pod, "DRA_EXPORTER_URL"),
            (pod | {"DRA_EXPORTER_URL": "http://a", "PROMETHEUS_URL": "http://b"}, "one of"),
            (pod | {"DRA_EXPORTER_URL": "file:///etc/passwd"}, "http://"),
            (pod | {"DRA_EXPORTER_URL": "http://a", "CLAIMWATCH_INTERVAL": "soon"}, "CLAIMWATCH_INTERVAL"),
            (pod | {"DRA_EXPORTER_URL": "http://a", "CLAIMWATCH_TIMEOUT": "nan"}, "CLAIMWATCH_TIMEOUT"),
            (pod | {"DRA_EXPORTER_URL": "http://a", "CLAIMWATCH_CA_FILE": "/nowhere"}, "No such file"),
        ):
            watch = claimwatch.start(environ)
            watch.step()
            self.assertIn(want, watch.line()["unknown"])
            self.assertEqual(watch.close(), watch.line())


if __name__ == "__main__":
    unittest.main()

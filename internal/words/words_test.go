package words

import (
	"math"
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	const gib, day = 1 << 30, 24 * time.Hour
	for got, want := range map[string]string{
		Count(1, "device", "devices"):         "1 device",
		Count(int64(0), "device", "devices"):  "0 devices",
		Count(2.5, "device", "devices"):       "2.5 devices",
		List([]string{"a", "b", "c", "d"}, 2): "a, b and 2 more",
		List([]string{"a", "b"}, 2):           "a, b",
		Join([]string{"a", "b", "c"}, "or"):   "a, b or c",
		Join(nil, "and"):                      "",
		Sentence("éclair"):                    "Éclair.",
		Sentence("why?"):                      "Why?",
		Capital(""):                           "",
		Percent(0.425):                        "42%",
		Watts(300):                            "300 W",
		Watts(12_340):                         "12.3 kW",
		Celsius(61.4):                         "61 °C",
		Bytes(512):                            "512 B",
		Bytes(9.5 * gib):                      "9.5 GiB",
		ShortBytes(71.4 * gib):                "71G",
		ShortBytes(9.5 * gib):                 "9.5G",
		Bytes(1536):                           "1.5 KiB", Bytes(1023): "1023 B", Bytes(141.3 * gib): "141 GiB", Bytes(1 << 60): "1024 PiB",
		Energy(1800): "0.5 Wh", Energy(7_920_000): "2.2 kWh", Watts(689.4): "689 W", Number(76235669504): "76235669504",
		Duration(Seconds(0.25)): "0.2 s", Duration(9999 * time.Millisecond): "10.0 s", Duration(Seconds(200_000)): "2 d 7 h",
		Energy(3.6e6):                       "1 kWh",
		Money(0.0123, "USD"):                "0.012 USD",
		Money(12.5, "EUR"):                  "12.50 EUR",
		Duration(3 * time.Second):           "3.0 s",
		Duration(95 * time.Second):          "95 s",
		Age(-time.Second):                   "0 s",
		Age(3 * time.Second):                "3 s",
		Age(5 * time.Minute):                "5 min",
		Age(time.Hour + 5*time.Minute):      "1 h 5 min",
		Age(9*day + 3*time.Hour):            "9 d 3 h",
		ShortAge(time.Hour + 5*time.Minute): "1h05m",
		ShortAge(9*day + 3*time.Hour):       "9d03h",
		ShortAge(Seconds(math.Inf(1))):      "106751d",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

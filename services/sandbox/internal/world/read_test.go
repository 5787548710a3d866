package world

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRead_TakesWhatIsNotGivenFromTheBase(t *testing.T) {
	t.Parallel()
	got, err := Read(strings.NewReader(`{"name": "ours", "base": "standard", "service_bus": {"round_trip": "12ms", "costs": {"settle": 2}}}`))
	must(t, err)
	want, err := Named("standard")
	must(t, err)
	want.Name = "ours"
	want.ServiceBus.RoundTrip = 12 * ms
	want.ServiceBus.Costs.Settle = 2
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRead_GivesBackWhatIsWritten(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		want, err := Named(name)
		must(t, err)
		text, err := json.Marshal(want)
		must(t, err)
		got, err := Read(strings.NewReader(string(text)))
		must(t, err)
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestRead_NamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                                     "a world is a JSON object",
		`null`:                                   "a world is a JSON object, not null",
		`{"mongodb": null}`:                      "mongodb: null is no figure",
		`{"name": null}`:                         "name: null is no figure",
		`{"mongodb": {"round_trip": null}}`:      "mongodb.round_trip: null is no figure",
		`{"mongodb": {"max_connections": null}}`: "mongodb.max_connections: null is no figure",
		`{"mongodb": {"max_connections": 1000000000001}}`:                               "mongodb.max_connections: 1000000000001 is above 1000000000000",
		`{"service_bus": {"credits_per_second": 1000001}}`:                              "service_bus.credits_per_second: 1000001 is above 1000000",
		`{"base": "standard", "service_bus": {"costs": {"send": 9223372036854775807}}}`: "service_bus.costs.send: 9223372036854775807 is above",
		`{"service_bus": {"send": {"p99": "1s"}}}`:                                      "service_bus.send.p99: it has no effect without p50",
		`{"service_bus": {"busy_wait": "1s"}}`:                                          "service_bus.busy_wait: it has no effect where nothing is refused",
		`{} {}`:                                                                         "something follows",
		`{"base": "moon"}`:                                                              `base: there is no world "moon"; there are loopback`,
		`{"base": 1}`:                                                                   "base: 1 is not the name",
		`{"mongo": {}}`:                                                                 "mongo: there is no such field; there are mongodb, name, service_bus",
		`{"mongodb": 3}`:                                                                "mongodb: 3 is not an object",
		`{"mongodb": {"rtt": "1ms"}}`:                                                   "mongodb.rtt: there is no such field",
		`{"mongodb": {"round_trip": 5}}`:                                                `mongodb.round_trip: 5 is not a time such as "20ms"`,
		`{"mongodb": {"majority": "5"}}`:                                                `mongodb.majority: "5" is not a time`,
		`{"mongodb": {"majority": "-5ms"}}`:                                             "mongodb.majority: -5ms is not between",
		`{"mongodb": {"max_connections": -1}}`:                                          "mongodb.max_connections: -1 is below 0",
		`{"service_bus": {"send": {"x": "1s"}}}`:                                        "service_bus.send.x: there is no such field; there are p50, p99",
		`{"service_bus": {"send": {"p50": "2s", "p99": "1s"}}}`:                         "service_bus.send.p99: 1s is below p50",
		`{"service_bus": {"credits_per_second": "many"}}`:                               "service_bus.credits_per_second: json",
		`{"service_bus": {"costs": {"send": 1}}}`:                                       "service_bus.costs: they have no effect",
		`{"service_bus": {"max_message_bytes": 1000}}`:                                  "service_bus.max_message_bytes: 1000 is below 1024",
		`{"service_bus": {"queue_time": "1s"}}`:                                         "service_bus.queue_time: it has no effect",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", text, err, want)
		}
	}
}

func TestLatency_DrawsByItsPercentiles(t *testing.T) {
	t.Parallel()
	l := Latency{P50: 20 * ms, P99: 500 * ms}
	drawn := make([]time.Duration, 20_000)
	for i := range drawn {
		drawn[i] = l.Draw()
	}
	slices.Sort(drawn)
	for at, want := range map[int]Duration{10_000: l.P50, 19_800: l.P99} {
		if got := float64(drawn[at]) / float64(want); got < 0.8 || got > 1.25 {
			t.Errorf("got %s at place %d, want about %s", drawn[at], at, time.Duration(want))
		}
	}
	if (Latency{}).Draw() != 0 {
		t.Error("got a time from no latency")
	}
}

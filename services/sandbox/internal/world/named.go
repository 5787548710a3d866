package world

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	ns = Duration(time.Nanosecond)
	us = Duration(time.Microsecond)
	ms = Duration(time.Millisecond)
	s  = Duration(time.Second)

	kb = int64(1) << 10
	mb = int64(1) << 20
)

// Names lists the named worlds. The first is a sandbox without a world.
func Names() []string {
	return []string{"loopback", "datacenter", "standard", "premium-1mu", "emulator", "wan"}
}

// Named is the world of a name.
func Named(name string) (World, error) {
	if !slices.Contains(Names(), name) {
		return World{}, fmt.Errorf("there is no world %q; there are %s, or the name of a file", name, strings.Join(Names(), ", "))
	}
	w := map[string]func() World{
		"loopback": func() World { return World{} }, "datacenter": datacenter, "standard": standard,
		"premium-1mu": premium, "emulator": emulator, "wan": wan,
	}[name]()
	w.Name = name
	return w, nil
}

func datacenter() World {
	near := Link{RoundTrip: 1500 * us, Jitter: 200 * us, BytesPerSecond: 100 * mb}
	return World{
		MongoDB: MongoDB{Link: near, Majority: 5 * ms, JournalInterval: 100 * ms, ResumePerEntry: 2200 * ns, MaxConnections: 3000},
		ServiceBus: ServiceBus{
			Link: near, Send: Latency{1500 * us, 8500 * us}, Settle: Latency{1500 * us, 8500 * us}, Accept: Latency{3500 * us, 10 * ms},
			MaxMessageBytes: mb, MaxBatchBytes: mb, MaxBatchMessages: 4500,
			MaxConnections: 5000, MaxSessionLinks: 256, LinkIdle: 600 * s, ConnectionIdle: 300 * s, AcceptWait: 65 * s,
		},
	}
}

func standard() World {
	w := datacenter()
	w.MongoDB.MaxConnections = 1500
	b := &w.ServiceBus
	b.BytesPerSecond = 4 * mb
	b.Send, b.Settle, b.Accept = Latency{18500 * us, 498500 * us}, Latency{20 * ms, 100 * ms}, Latency{58500 * us, 200 * ms}
	b.CreditsPerSecond, b.BusyWait = 1000, 2*s
	b.Costs = Costs{Send: 1, Receive: 1, Peek: 1, Management: 10, Filter: 1}
	b.MaxMessageBytes, b.MaxBatchBytes, b.MaxBatchMessages = 256*kb, 256*kb, 4500
	b.MaxEntities, b.MaxSubscriptions = 10_000, 2000
	return w
}

func premium() World {
	w := datacenter()
	b := &w.ServiceBus
	b.BytesPerSecond = 4 * mb
	b.Send, b.Settle, b.Accept = Latency{12600 * us, 358500 * us}, Latency{20 * ms, 100 * ms}, Latency{38500 * us, 200 * ms}
	b.MessagesPerSecond, b.ThroughputBytes, b.QueueTime, b.BusyWait = 2200, 4*mb, 450*ms, 4*s
	b.MaxMessageBytes, b.MaxBatchBytes, b.MaxBatchMessages = mb, mb, 15_885
	b.MaxEntities, b.MaxSubscriptions = 1000, 2000
	return w
}

func emulator() World {
	w := World{}
	w.MongoDB = MongoDB{Majority: 2 * ms, JournalInterval: 100 * ms, ResumePerEntry: 2200 * ns}
	w.ServiceBus = ServiceBus{
		Link: Link{RoundTrip: 200 * us, BytesPerSecond: 50 * mb},
		Send: Latency{4800 * us, 49800 * us}, Settle: Latency{4800 * us, 49800 * us}, Accept: Latency{9800 * us, 50 * ms},
		MaxMessageBytes: 256 * kb, MaxBatchBytes: 256 * kb, MaxBatchMessages: 4500,
		MaxEntities: 50, MaxSubscriptions: 50, MaxConnections: 10, MaxSessionLinks: 256,
		LinkIdle: 600 * s, ConnectionIdle: 300 * s, AcceptWait: 65 * s,
	}
	return w
}

func wan() World {
	w := premium()
	far := Link{RoundTrip: 70 * ms, Jitter: 2 * ms, BytesPerSecond: 4 * mb}
	w.MongoDB.Link, w.ServiceBus.Link = far, far
	return w
}

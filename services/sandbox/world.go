package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/network"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/world"
)

// World says what the servers' surroundings are like: distance, bandwidth, what
// a namespace allows in a second, how long a majority takes. The zero World is
// none: everything takes the time of this process. docs/sandbox.md has the
// named worlds and the form of one's own.
type World = world.World

// ErrWorld is what FindWorld returns for a world that cannot be had.
var ErrWorld = errors.New("find the world")

// WorldNames lists the named worlds. The first is none.
func WorldNames() []string { return world.Names() }

// NamedWorld is one of the worlds that have names, such as "standard".
func NamedWorld(name string) (World, error) { return world.Named(name) }

// ReadWorld reads a world in JSON.
func ReadWorld(from io.Reader) (World, error) { return world.Read(from) }

// FindWorld is the world of a name, or else the one in a file.
func FindWorld(nameOrFile string) (World, error) {
	if slices.Contains(world.Names(), nameOrFile) {
		return world.Named(nameOrFile)
	}
	file, err := os.Open(nameOrFile)
	if errors.Is(err, os.ErrNotExist) {
		_, err = world.Named(nameOrFile)
	}
	if err != nil {
		return World{}, fmt.Errorf("%w: %w", ErrWorld, err)
	}
	defer file.Close()
	w, err := world.Read(file)
	if err != nil {
		return World{}, fmt.Errorf("%w: %s: %w", ErrWorld, nameOrFile, err)
	}
	return w, nil
}

// surroundings are the present world, and what of it is not a server's own.
type surroundings struct {
	changing  sync.Mutex
	present   atomic.Pointer[World]
	mongo     network.Shape
	messaging network.Shape
}

// World is the present one.
func (s *Sandbox) World() World { return *s.surroundings.present.Load() }

// SetWorld changes the world at once, for connections that are open as well.
// What is there stays: entities, connections and messages beyond a new limit,
// and the bound of entities that were made before.
func (s *Sandbox) SetWorld(w World) {
	s.surroundings.changing.Lock()
	defer s.surroundings.changing.Unlock()
	w.Name = cmp.Or(w.Name, world.Names()[0])
	s.surroundings.present.Store(&w)
	s.surroundings.mongo.Set(conditions(w.MongoDB.Link))
	s.surroundings.messaging.Set(conditions(w.ServiceBus.Link))
	s.mongo.SetMaxConnections(w.MongoDB.MaxConnections)
	s.engine.SetPace(engine.Pace{
		Majority:        time.Duration(w.MongoDB.Majority),
		JournalInterval: time.Duration(w.MongoDB.JournalInterval),
		Lag:             time.Duration(w.MongoDB.Lag),
		ResumePerEntry:  time.Duration(w.MongoDB.ResumePerEntry),
	})
	s.broker.Allow(allowance(w.ServiceBus))
	s.amqp.SetPace(pace(w.ServiceBus))
}

func conditions(l world.Link) network.Conditions {
	return network.Conditions{
		RoundTrip: time.Duration(l.RoundTrip), Jitter: time.Duration(l.Jitter), BytesPerSecond: l.BytesPerSecond,
	}
}

func allowance(w world.ServiceBus) broker.Allowance {
	return broker.Allowance{
		CreditsPerSecond: w.CreditsPerSecond, Costs: broker.Costs(w.Costs), BusyWait: time.Duration(w.BusyWait),
		MessagesPerSecond: w.MessagesPerSecond, BytesPerSecond: w.ThroughputBytes, QueueTime: time.Duration(w.QueueTime),
		MaxMessageBytes: w.MaxMessageBytes, MaxBatchBytes: w.MaxBatchBytes, MaxBatchMessages: w.MaxBatchMessages,
		MaxEntities: w.MaxEntities, MaxSubscriptions: w.MaxSubscriptions,
	}
}

func pace(w world.ServiceBus) amqpserver.Pace {
	return amqpserver.Pace{
		Send: w.Send.Draw, Settle: w.Settle.Draw, Accept: w.Accept.Draw,
		MaxConnections: int(w.MaxConnections), MaxLinks: int(w.MaxSessionLinks),
		LinklessTimeout: time.Duration(w.ConnectionIdle), LinkIdleTimeout: time.Duration(w.LinkIdle),
		AcceptTimeout: time.Duration(w.AcceptWait),
	}
}

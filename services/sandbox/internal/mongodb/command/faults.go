package command

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Fault is something that goes wrong with commands, as with the fail point
// failCommand. Several may be started side by side, and beside a client's own
// fail point.
type Fault struct {
	// Commands are the names of those it befalls; none is any command.
	Commands []string
	// AppName, if not empty, is that of the clients it befalls.
	AppName string
	// Times is how many commands it befalls; 0 is all until it is ended.
	Times int64
	// Delay is waited before the command, or before what else goes wrong.
	Delay time.Duration
	// Close closes the connection instead of an answer.
	Close bool
	// Code, if not 0, is answered instead of running the command.
	Code mongoerr.Code
}

// StartFault starts a fault, which goes on until end is called. A command that
// there is not is an error.
func (s *Server) StartFault(f Fault) (end func(), err error) {
	rule := &FailRule{AppName: f.AppName, Times: f.Times, Fault: Mishap{
		Block: f.Delay, CloseConnection: f.Close, ErrorCode: f.Code,
	}}
	if f.Times == 0 {
		rule.Times = -1
	}
	for _, name := range f.Commands {
		if s.commandsByName[name] == nil {
			return nil, mongoerr.New(mongoerr.CommandNotFound, "no such command: '%s'", name)
		}
		rule.Commands = append(rule.Commands, name)
	}
	point := &FailPoint{rule: rule}
	s.faults.add(point)
	return func() { s.faults.remove(point) }, nil
}

// demanded are the faults that were started. Commands read them without a lock.
type demanded struct {
	mu     sync.Mutex // held while the list is exchanged
	points atomic.Pointer[[]*FailPoint]
}

func (d *demanded) list() []*FailPoint {
	if points := d.points.Load(); points != nil {
		return *points
	}
	return nil
}

func (d *demanded) add(point *FailPoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	points := append(slices.Clone(d.list()), point)
	d.points.Store(&points)
}

func (d *demanded) remove(point *FailPoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	points := slices.DeleteFunc(slices.Clone(d.list()), func(p *FailPoint) bool { return p == point })
	d.points.Store(&points)
}

// before is what happens to a command, or instead of it.
func (d *demanded) before(ctx context.Context, c *Call) error {
	for _, point := range d.list() {
		if err := point.Take(c).Before(ctx); err != nil {
			return err
		}
	}
	return nil
}

// armed reports that commands are being made to fail.
func (d *demanded) armed() bool {
	return slices.ContainsFunc(d.list(), func(p *FailPoint) bool { return p.armed() })
}

// open are the connections of clients, to be cut.
type open struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func (o *open) add(nc net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns == nil {
		o.conns = map[net.Conn]struct{}{}
	}
	o.conns[nc] = struct{}{}
}

func (o *open) remove(nc net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, nc)
}

// Cut resets every connection, as a failing network does, and returns how many
// there were.
func (s *Server) Cut() int {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	for nc := range s.open.conns {
		if tcp, ok := nc.(interface{ SetLinger(seconds int) error }); ok {
			_ = tcp.SetLinger(0) // so that closing it resets it
		}
		_ = nc.Close()
	}
	return len(s.open.conns)
}

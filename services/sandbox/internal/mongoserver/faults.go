package mongoserver

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"changerelay/services/sandbox/internal/mongoerr"
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
	rule := &failRule{appName: f.AppName, times: f.Times, fault: fault{
		block: f.Delay, closeConnection: f.Close, errorCode: f.Code,
	}}
	if f.Times == 0 {
		rule.times = -1
	}
	for _, name := range f.Commands {
		if s.commandsByName[name] == nil {
			return nil, mongoerr.New(mongoerr.CommandNotFound, "no such command: '%s'", name)
		}
		rule.commands = append(rule.commands, name)
	}
	point := &failPoint{rule: rule}
	s.faults.add(point)
	return func() { s.faults.remove(point) }, nil
}

// demanded are the faults that were started. Commands read them without a lock.
type demanded struct {
	mu     sync.Mutex // held while the list is exchanged
	points atomic.Pointer[[]*failPoint]
}

func (d *demanded) list() []*failPoint {
	if points := d.points.Load(); points != nil {
		return *points
	}
	return nil
}

func (d *demanded) add(point *failPoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	points := append(slices.Clone(d.list()), point)
	d.points.Store(&points)
}

func (d *demanded) remove(point *failPoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	points := slices.DeleteFunc(slices.Clone(d.list()), func(p *failPoint) bool { return p == point })
	d.points.Store(&points)
}

// before is what happens to a command, or instead of it.
func (d *demanded) before(ctx context.Context, c *call) error {
	for _, point := range d.list() {
		if err := point.take(c).before(ctx); err != nil {
			return err
		}
	}
	return nil
}

// armed reports that commands are being made to fail.
func (d *demanded) armed() bool {
	return slices.ContainsFunc(d.list(), func(p *failPoint) bool { return p.armed() })
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
		if tcp, ok := nc.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // so that closing it resets it
		}
		_ = nc.Close()
	}
	return len(s.open.conns)
}

package mongoserver_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/mongoserver"
)

// pipes are a listener whose connections are in memory, as a bubble of synctest
// needs them.
type pipes struct {
	net.Listener
	opened chan net.Conn
	over   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.opened:
		return nc, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.over)
	return p.Listener.Close()
}

// startPiped runs a server in a bubble, and gives it with a client.
func startPiped(t *testing.T) (*command.Server, *rawClient) {
	t.Helper()
	p := &pipes{opened: make(chan net.Conn), over: make(chan struct{})}
	server, err := mongoserver.New(command.Config{
		Address: "127.0.0.1:0", Engine: engine.New(engine.Config{}), Log: zerolog.Nop(),
		Network: func(l net.Listener) net.Listener { p.Listener = l; return p },
	})
	must(t, err)
	go func() { must(t, server.Run(t.Context())) }()
	near, far := net.Pipe()
	p.opened <- far
	client := newRawClient(t, "")
	client.nc = near
	return server, client
}

const (
	sessionA = `{"id": {"$binary": {"base64": "EBESExQVFhcYGRobHB0eHw==", "subType": "04"}}}`
	sessionB = `{"id": {"$binary": {"base64": "ABESExQVFhcYGRobHB0eHw==", "subType": "04"}}}`
)

// https://www.mongodb.com/docs/v4.4/reference/server-sessions/
func TestCursors_AreClosedWithTheSessionThatNobodyUses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// use is sent every 20 minutes for an hour.
		use  string
		open int
	}{
		"nothing is sent":                  {`{"hello": 1, "$db": "admin"}`, 0},
		"another session is used":          {`{"ping": 1, "lsid": ` + sessionB + `, "$db": "admin"}`, 0},
		"another session is refreshed":     {`{"refreshSessions": [` + sessionB + `], "$db": "admin"}`, 0},
		"any command of the session comes": {`{"ping": 1, "lsid": ` + sessionA + `, "$db": "admin"}`, 2},
		"the session is refreshed":         {`{"refreshSessions": [` + sessionA + `], "$db": "admin"}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, client := startPiped(t)
				sent(t, client, `{"insert": "c", "documents": [{}, {}, {}], "$db": "shop"}`)
				sent(t, client, `{"find": "c", "batchSize": 1, "lsid": `+sessionA+`, "$db": "shop"}`)
				sent(t, client, `{"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 1}, "lsid": `+sessionA+`, "$db": "shop"}`)
				time.Sleep(29 * time.Minute) //nolint:forbidigo // in a bubble
				if got := server.Cursors.Stats().Open; got != 2 {
					t.Errorf("after 29 minutes: got %d cursors, want 2", got)
				}
				for range 3 {
					sent(t, client, c.use)
					time.Sleep(20 * time.Minute) //nolint:forbidigo // in a bubble
				}
				if got := server.Cursors.Stats().Open; got != c.open {
					t.Errorf("got %d cursors, want %d", got, c.open)
				}
			})
		})
	}
}

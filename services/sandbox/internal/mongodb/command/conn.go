package command

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime/debug"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"changerelay/services/sandbox/internal/mongodb/mongowire"
)

// conn is one client's connection. Its fields are owned by the serve loop, but
// for nc, which the read loop may exchange before the first request.
type conn struct {
	server *Server
	ID     int64
	Nc     net.Conn
	out    []byte
	Log    zerolog.Logger
	// Greeted tells that a hello has come; only the first may describe the client.
	Greeted bool
	AppName string
	// Told is the election's counter in the last reply to the exhaust request
	// under way, or 0.
	Told  int64
	Login Login
	// LastWrite is the last request, if that was a write.
	LastWrite *LastWrite
}

// LastWrite is a write, by the command that it was or became, and what that
// answered.
type LastWrite struct {
	Command string
	Reply   bson.Raw
}

// errHangUp ends a connection without a word, as a fail point may ask for.
var errHangUp = errors.New("hang up")

// bufferBytes is the read buffer of a connection; most commands fit.
const bufferBytes = 16 << 10

// serve runs a connection to its end.
func (s *Server) serve(ctx context.Context, nc net.Conn) {
	id := s.LastConnection.Add(1)
	s.Connections.Add(1)
	defer s.Connections.Add(-1)
	if s.full() {
		s.log.Warn().Msg("connection refused, too many are open")
		_ = nc.Close()
		return
	}
	s.open.add(nc)
	defer s.open.remove(nc)
	c := &conn{server: s, ID: id, Nc: &metered{Conn: nc, server: s}, Log: s.log.With().Int64("connection_id", id).Logger()}
	c.Log.Debug().Stringer("remote", nc.RemoteAddr()).Msg("connection opened")
	group, ctx := errgroup.WithContext(ctx)
	requests := make(chan *mongowire.Request)
	group.Go(func() error {
		<-ctx.Done()
		return nc.Close()
	})
	group.Go(func() error {
		return c.read(ctx, requests)
	})
	group.Go(func() (err error) {
		defer c.survive(&err)
		return c.handle(ctx, requests)
	})
	err := group.Wait()
	if _, broken := errors.AsType[*mongowire.ProtocolError](err); broken {
		c.Log.Warn().Err(err).Msg("connection closed, the client broke the protocol")
		return
	}
	c.Log.Debug().AnErr("reason", err).Msg("connection closed")
}

// read hands requests to the serve loop. It always returns an error: the reason
// why the connection is over.
func (c *conn) read(ctx context.Context, requests chan<- *mongowire.Request) error {
	in, err := c.secure(bufio.NewReaderSize(c.Nc, bufferBytes))
	if err != nil {
		return err
	}
	for {
		request, err := c.server.inbox.ReadRequest(ctx, in)
		if err != nil {
			return err
		}
		select {
		case requests <- request:
		case <-ctx.Done():
			request.Release()
			return io.ErrClosedPipe
		}
	}
}

// handle answers requests one after another.
func (c *conn) handle(ctx context.Context, requests <-chan *mongowire.Request) error {
	for {
		select {
		case request := <-requests:
			err := c.answer(ctx, request)
			request.Release()
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// survive makes a panic of a command the end of its connection, and not of the
// process: unless it left a write half done, as nothing is right after that.
func (c *conn) survive(err *error) {
	reason := recover()
	if reason == nil {
		return
	}
	if c.server.Engine.Broken() {
		panic(reason)
	}
	c.Log.Error().Interface("panic", reason).Bytes("stack", debug.Stack()).Msg("connection closed, a command panicked: this is a defect of the sandbox")
	*err = errHangUp
}

// answer runs one request and writes its reply, or for an exhaust request one
// reply after another ("Exhaust" in the OP_MSG specification:
// https://github.com/mongodb/specifications/blob/master/source/message/OP_MSG.md).
func (c *conn) answer(ctx context.Context, request *mongowire.Request) error {
	responseTo := request.ID
	c.Told = 0
	for {
		body, more, err := c.server.run(ctx, c, request)
		if err != nil {
			return err
		}
		if c.remember(request, body); request.Flags&mongowire.MoreToCome != 0 {
			return nil // the client does not read a reply
		}
		id := c.server.lastRequest.Add(1)
		flags := mongowire.Flags(0)
		if more {
			flags = mongowire.MoreToCome
		}
		switch {
		case request.Plain:
			c.out = mongowire.AppendPlainReply(c.out[:0], id, responseTo, body)
		case request.Legacy:
			c.out = mongowire.AppendLegacyReply(c.out[:0], id, responseTo, body)
		default:
			c.out = mongowire.AppendReply(c.out[:0], id, responseTo, flags, body)
		}
		if _, err := c.Nc.Write(c.out); err != nil {
			return err
		}
		if cap(c.out) > keepBytes {
			c.out = nil
		}
		if next := request.Next(body); next != nil {
			request, more = next, true
		}
		if !more {
			return nil
		}
		responseTo = id
	}
}

// remember keeps the outcome of a write for getLastError, until something else
// is run.
func (c *conn) remember(request *mongowire.Request, reply bson.Raw) {
	command := ""
	if first, err := request.Body.IndexErr(0); err == nil {
		command = first.Key()
	}
	switch command {
	case "insert", "update", "delete":
		c.LastWrite = &LastWrite{Command: command, Reply: reply}
	case "getLastError", "getlasterror":
	default:
		c.LastWrite = nil
	}
}

// keepBytes is the largest reply buffer that an idle connection keeps.
const keepBytes = 1 << 20

// recordHeader begins a TLS connection: a handshake record of version 3 (RFC
// 8446, section 5.1). Read as the length of a message of the wire protocol it
// would be one that no client begins with.
const recordHeader = "\x16\x03"

// secure looks at how a connection begins, and makes it a TLS connection where
// that is a handshake: one address serves both, as with tlsMode preferTLS.
func (c *conn) secure(in *bufio.Reader) (*bufio.Reader, error) {
	if c.server.tls == nil {
		return in, nil
	}
	first, err := in.Peek(len(recordHeader))
	if err != nil {
		return nil, err
	}
	if string(first) != recordHeader {
		return in, nil
	}
	c.Nc = tls.Server(&bufferedConn{Conn: c.Nc, in: in}, c.server.tls)
	return bufio.NewReaderSize(c.Nc, bufferBytes), nil
}

// metered counts what goes over a connection.
type metered struct {
	net.Conn
	server *Server
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.server.BytesIn.Add(int64(n))
	return n, err
}

func (m *metered) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	m.server.BytesOut.Add(int64(n))
	return n, err
}

// bufferedConn reads through what has been looked at.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.in.Read(p) }

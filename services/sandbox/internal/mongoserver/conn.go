package mongoserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"changerelay/services/sandbox/internal/mongowire"
)

// conn is one client's connection. Its fields are owned by the serve loop, but
// for nc, which the read loop may exchange before the first request.
type conn struct {
	server *Server
	id     int64
	nc     net.Conn
	out    []byte
	log    zerolog.Logger
	// greeted tells that a hello has come; only the first may describe the client.
	greeted bool
	appName string
	// told is the election's counter in the last reply to the exhaust request
	// under way, or 0.
	told  int64
	login login
}

// errHangUp ends a connection without a word, as a fail point may ask for.
var errHangUp = errors.New("hang up")

// bufferBytes is the read buffer of a connection; most commands fit.
const bufferBytes = 16 << 10

// serve runs a connection to its end.
func (s *Server) serve(ctx context.Context, nc net.Conn) {
	id := s.lastConnection.Add(1)
	s.connections.Add(1)
	defer s.connections.Add(-1)
	s.open.add(nc)
	defer s.open.remove(nc)
	c := &conn{server: s, id: id, nc: nc, log: s.log.With().Int64("connection_id", id).Logger()}
	c.log.Debug().Stringer("remote", nc.RemoteAddr()).Msg("connection opened")
	group, ctx := errgroup.WithContext(ctx)
	requests := make(chan *mongowire.Request)
	group.Go(func() error {
		<-ctx.Done()
		return nc.Close()
	})
	group.Go(func() error {
		return c.read(ctx, requests)
	})
	group.Go(func() error {
		return c.handle(ctx, requests)
	})
	err := group.Wait()
	if _, broken := errors.AsType[*mongowire.ProtocolError](err); broken {
		c.log.Warn().Err(err).Msg("connection closed, the client broke the protocol")
		return
	}
	c.log.Debug().AnErr("reason", err).Msg("connection closed")
}

// read hands requests to the serve loop. It always returns an error: the reason
// why the connection is over.
func (c *conn) read(ctx context.Context, requests chan<- *mongowire.Request) error {
	in, err := c.secure(bufio.NewReaderSize(c.nc, bufferBytes))
	if err != nil {
		return err
	}
	for {
		request, err := mongowire.ReadRequest(in)
		if err != nil {
			return err
		}
		select {
		case requests <- request:
		case <-ctx.Done():
			return io.ErrClosedPipe
		}
	}
}

// handle answers requests one after another.
func (c *conn) handle(ctx context.Context, requests <-chan *mongowire.Request) error {
	for {
		select {
		case request := <-requests:
			if err := c.answer(ctx, request); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// answer runs one request and writes its reply, or for an exhaust request one
// reply after another ("Exhaust" in the OP_MSG specification:
// https://github.com/mongodb/specifications/blob/master/source/message/OP_MSG.md).
func (c *conn) answer(ctx context.Context, request *mongowire.Request) error {
	responseTo := request.ID
	c.told = 0
	for {
		body, more, err := c.server.run(ctx, c, request)
		if err != nil {
			return err
		}
		if request.Flags&mongowire.MoreToCome != 0 {
			return nil // the client does not read a reply
		}
		id := c.server.lastRequest.Add(1)
		flags := mongowire.Flags(0)
		if more {
			flags = mongowire.MoreToCome
		}
		if request.Legacy {
			c.out = mongowire.AppendLegacyReply(c.out[:0], id, responseTo, body)
		} else {
			c.out = mongowire.AppendReply(c.out[:0], id, responseTo, flags, body)
		}
		if _, err := c.nc.Write(c.out); err != nil {
			return err
		}
		if cap(c.out) > keepBytes {
			c.out = nil
		}
		if !more {
			return nil
		}
		responseTo = id
	}
}

// keepBytes is the largest reply buffer that an idle connection keeps.
const keepBytes = 1 << 20

package command

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/mongowire"
)

// Caller is who in this process a command is run for; the zero Caller is nobody.
type Caller struct {
	User, Password string
	// DB is where the user was created; empty is admin.
	DB string
}

// Local runs one command for a caller in this process, and returns its reply. The
// user may do what a client with the same user may. The body says its database in
// $db, and must leave no cursor open.
//
// A write is a client's like any other and meets every fault. Anything else
// leaves no trace: faults do not see it, so that looking uses none of them up.
//
// Errors are *mongoerr.Error, or ctx's.
func (s *Server) Local(ctx context.Context, who Caller, body bson.Raw) (bson.Raw, error) {
	conn := &conn{server: s, Log: s.log}
	if err := conn.signIn(who); err != nil {
		return nil, err
	}
	c := &Call{Server: s, Conn: conn, Request: &mongowire.Request{Body: body}, Body: body, Now: s.Engine.Now()}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	run := c.runInSession
	if c.command.Write {
		run = c.runPast
	}
	r := NewReply()
	if err := run(ctx, r); errors.Is(err, errHangUp) {
		return nil, mongoerr.New(mongoerr.HostUnreachable, "a fault closed the connection in place of an answer")
	} else if err != nil {
		return nil, err
	}
	return c.finish(r), nil
}

// Authorizes tells that clients have to say who they are.
func (s *Server) Authorizes() bool { return s.authorization }

// Authenticate tells why who is not a user; nobody is refused where the server
// asks for no authentication.
func (s *Server) Authenticate(who Caller) error {
	conn := &conn{server: s, Log: s.log}
	if err := conn.signIn(who); err != nil {
		return err
	}
	if s.authorization && conn.Login.User == (access.Name{}) {
		return mongoerr.New(mongoerr.Unauthorized, "this requires authentication")
	}
	return nil
}

// signIn makes the user the connection's, as an exchange of SCRAM would.
func (c *conn) signIn(who Caller) error {
	if !c.server.authorization || who.User == "" {
		return nil
	}
	user := access.Name{Name: who.User, DB: who.DB}
	if user.DB == "" {
		user.DB = "admin"
	}
	if err := c.server.Accounts.Verify(user, who.Password); err != nil {
		c.Log.Info().Err(err).Msg("authentication failed")
		return mongoerr.New(mongoerr.AuthenticationFailed, "Authentication failed.")
	}
	c.Login.User = user
	return c.Login.Refresh(c.server.Accounts)
}

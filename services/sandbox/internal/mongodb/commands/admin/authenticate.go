package admin

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/accounts"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/scram"
)

func saslStart(_ context.Context, c *command.Call, r *command.Reply) error {
	answer, err := startExchange(c, c.Body, c.DB)
	if err != nil {
		return err
	}
	r.Append(answer)
	return nil
}

// conversationID is the same for all: a connection has one exchange at a time.
const conversationID = 1

// startExchange answers the first message of an authentication, in a command of
// its own or in a hello
// (https://github.com/mongodb/specifications/blob/master/source/auth/auth.md).
func startExchange(c *command.Call, body bson.Raw, db string) (bson.Raw, error) {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	e := &command.Exchange{DB: db}
	var mechanism scram.Mechanism
	var payload []byte
	for it := bsonkit.Iterate(body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "mechanism":
			mechanism = scram.Mechanism(a.Text(name, v))
		case "payload":
			payload = payloadOf(&a, v)
		case "options":
			e.Short = command.IsTrue(a.Document(name, v), "skipEmptyExchange")
		}
	}
	if a.Err != nil {
		return nil, a.Err
	}
	if !mechanism.Known() {
		return nil, mongoerr.New(mongoerr.MechanismUnavailable,
			"Received authentication for mechanism %s which is unknown or not enabled", mechanism)
	}
	c.Conn.Login.Exchange = nil
	conversation, answer, err := scram.Start(payload, func(user string) (scram.Credentials, error) {
		return c.Server.Accounts.Credentials(access.Name{Name: user, DB: db}, mechanism)
	})
	if err != nil {
		return nil, refuse(c, err)
	}
	e.Conversation = conversation
	c.Conn.Login.Exchange = e
	return exchangeReply(false, answer), nil
}

func saslContinue(_ context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	id, _ := bsonkit.Get(c.Body, "conversationId")
	payload, _ := bsonkit.Get(c.Body, "payload")
	message := payloadOf(&a, payload)
	if a.Err != nil {
		return a.Err
	}
	l := &c.Conn.Login
	e := l.Exchange
	if n, ok := id.AsInt64OK(); e == nil || !ok || n != conversationID {
		return mongoerr.New(mongoerr.ProtocolError, "No SASL session state found")
	}
	if e.Proven {
		l.Exchange = nil
		r.Append(exchangeReply(true, nil))
		return nil
	}
	proof, err := e.Conversation.Finish(message)
	if err != nil {
		l.Exchange = nil
		return refuse(c, err)
	}
	l.User, l.Version, l.Owner = access.Name{Name: e.Conversation.User(), DB: e.DB}, 0, nil
	if err := l.Refresh(c.Server.Accounts); err != nil {
		return err
	}
	if e.Proven = true; e.Short {
		l.Exchange = nil
	}
	r.Append(exchangeReply(e.Short, proof))
	return nil
}

// refuse tells the client nothing but that it failed; the log says why.
func refuse(c *command.Call, reason error) error {
	c.Conn.Log.Info().Err(reason).Msg("authentication failed")
	if e, ok := errors.AsType[*mongoerr.Error](reason); ok && e.Code == mongoerr.InternalError {
		return e
	}
	return mongoerr.New(mongoerr.AuthenticationFailed, "Authentication failed.")
}

func payloadOf(a *command.Arguments, v bson.RawValue) []byte {
	_, data, ok := v.BinaryOK()
	if !ok {
		a.WrongType("payload", v, "binData")
	}
	return data
}

func exchangeReply(done bool, payload []byte) bson.Raw {
	return bson.Raw(bsoncore.NewDocumentBuilder().
		AppendInt32("conversationId", conversationID).
		AppendBoolean("done", done).
		AppendBinary("payload", bson.TypeBinaryGeneric, payload).
		Build())
}

func logout(_ context.Context, c *command.Call, _ *command.Reply) error {
	if c.Conn.Login.User.DB == c.DB {
		c.Conn.Login = command.Login{}
	}
	return nil
}

func connectionStatus(_ context.Context, c *command.Call, r *command.Reply) error {
	l := &c.Conn.Login
	if err := l.Refresh(c.Server.Accounts); err != nil {
		return err
	}
	var users, roles []bson.D
	if l.User != (access.Name{}) {
		users = append(users, bson.D{{Key: "user", Value: l.User.Name}, {Key: "db", Value: l.User.DB}})
		var doc accounts.UserDocument
		if _, err := c.Server.Accounts.Read(accounts.UsersNamespace, l.User, &doc); err != nil {
			return err
		}
		for _, role := range doc.Roles {
			roles = append(roles, bson.D{{Key: "role", Value: role.Role}, {Key: "db", Value: role.DB}})
		}
	}
	r.OpenDocument("authInfo")
	if err := errors.Join(r.Marshalled("authenticatedUsers", users), r.Marshalled("authenticatedUserRoles", roles)); err != nil {
		return err
	}
	if command.IsTrue(c.Body, "showPrivileges") {
		if err := r.Marshalled("authenticatedUserPrivileges", l.Grants.Privileges()); err != nil {
			return err
		}
	}
	r.Close()
	return nil
}

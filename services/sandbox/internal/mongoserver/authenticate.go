package mongoserver

import (
	"context"
	"crypto/sha256"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/scram"
)

// login is who a connection is, owned by its serve loop. There is one user at a
// time; another who authenticates takes the place of the first.
type login struct {
	// user is the zero Name before anybody has authenticated.
	user   access.Name
	grants access.Grants
	// version is that of the accounts when grants were read.
	version uint64
	// owner is the uid of the user's sessions, nil before it is asked for.
	owner []byte

	// exchange is the authentication under way, nil for none.
	exchange *exchange
}

// exchange is one run of SASL.
type exchange struct {
	db           string
	conversation *scram.Conversation
	// proven tells that only an empty message is to come.
	proven bool
	// short leaves that out.
	short bool
}

// refresh reads again what the user may do, where that may have changed.
func (l *login) refresh(a *accounts) error {
	version := a.version.Load()
	if l.user == (access.Name{}) || l.version == version {
		return nil
	}
	grants, found, err := a.grants(l.user)
	if err != nil {
		return err
	}
	if !found {
		*l = login{}
		return nil
	}
	l.grants, l.version = grants, version
	return nil
}

// sessionOwner is the uid of the user's sessions: the SHA-256 of its name, of
// nothing for nobody.
func (l *login) sessionOwner() []byte {
	if l.owner != nil {
		return l.owner
	}
	name := ""
	if l.user != (access.Name{}) {
		name = l.user.String()
	}
	sum := sha256.Sum256([]byte(name))
	l.owner = sum[:]
	return l.owner
}

func saslStart(_ context.Context, c *call, r *reply) error {
	answer, err := c.startExchange(c.body, c.db)
	if err != nil {
		return err
	}
	r.append(answer)
	return nil
}

// conversationID is the same for all: a connection has one exchange at a time.
const conversationID = 1

// startExchange answers the first message of an authentication, in a command of
// its own or in a hello
// (https://github.com/mongodb/specifications/blob/master/source/auth/auth.md).
func (c *call) startExchange(command bson.Raw, db string) (bson.Raw, error) {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	e := &exchange{db: db}
	var mechanism string
	var payload []byte
	for it := bsonkit.Iterate(command); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "mechanism":
			mechanism = a.text(name, v)
		case "payload":
			payload = a.payload(v)
		case "options":
			e.short = isTrue(a.document(name, v), "skipEmptyExchange")
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	if mechanism != scram.Mechanism {
		return nil, mongoerr.New(mongoerr.MechanismUnavailable,
			"Received authentication for mechanism %s which is unknown or not enabled", mechanism)
	}
	c.conn.login.exchange = nil
	conversation, answer, err := scram.Start(payload, func(user string) (scram.Credentials, error) {
		return c.server.accounts.credentials(access.Name{Name: user, DB: db})
	})
	if err != nil {
		return nil, c.refuse(err)
	}
	e.conversation = conversation
	c.conn.login.exchange = e
	return exchangeReply(false, answer), nil
}

func saslContinue(_ context.Context, c *call, r *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	id, _ := bsonkit.Get(c.body, "conversationId")
	payload, _ := bsonkit.Get(c.body, "payload")
	message := a.payload(payload)
	if a.err != nil {
		return a.err
	}
	l := &c.conn.login
	e := l.exchange
	if n, ok := id.AsInt64OK(); e == nil || !ok || n != conversationID {
		return mongoerr.New(mongoerr.ProtocolError, "No SASL session state found")
	}
	if e.proven {
		l.exchange = nil
		r.append(exchangeReply(true, nil))
		return nil
	}
	proof, err := e.conversation.Finish(message)
	if err != nil {
		l.exchange = nil
		return c.refuse(err)
	}
	l.user, l.version, l.owner = access.Name{Name: e.conversation.User(), DB: e.db}, 0, nil
	if err := l.refresh(c.server.accounts); err != nil {
		return err
	}
	if e.proven = true; e.short {
		l.exchange = nil
	}
	r.append(exchangeReply(e.short, proof))
	return nil
}

// refuse tells the client nothing but that it failed; the log says why.
func (c *call) refuse(reason error) error {
	c.conn.log.Info().Err(reason).Msg("authentication failed")
	if e, ok := errors.AsType[*mongoerr.Error](reason); ok && e.Code == mongoerr.InternalError {
		return e
	}
	return mongoerr.New(mongoerr.AuthenticationFailed, "Authentication failed.")
}

func (a *arguments) payload(v bson.RawValue) []byte {
	_, data, ok := v.BinaryOK()
	if !ok {
		a.wrongType("payload", v, "binData")
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

func logout(_ context.Context, c *call, _ *reply) error {
	if c.conn.login.user.DB == c.db {
		c.conn.login = login{}
	}
	return nil
}

func connectionStatus(_ context.Context, c *call, r *reply) error {
	l := &c.conn.login
	if err := l.refresh(c.server.accounts); err != nil {
		return err
	}
	var users, roles []bson.D
	if l.user != (access.Name{}) {
		users = append(users, bson.D{{Key: "user", Value: l.user.Name}, {Key: "db", Value: l.user.DB}})
		var doc userDocument
		if _, err := c.server.accounts.read(usersNamespace, l.user, &doc); err != nil {
			return err
		}
		for _, role := range doc.Roles {
			roles = append(roles, bson.D{{Key: "role", Value: role.Role}, {Key: "db", Value: role.DB}})
		}
	}
	r.openDocument("authInfo")
	if err := errors.Join(r.marshalled("authenticatedUsers", users), r.marshalled("authenticatedUserRoles", roles)); err != nil {
		return err
	}
	if isTrue(c.body, "showPrivileges") {
		if err := r.marshalled("authenticatedUserPrivileges", l.grants.Privileges()); err != nil {
			return err
		}
	}
	r.close()
	return nil
}

// marshalled writes an array of documents.
func (r *reply) marshalled(key string, docs any) error {
	raw, err := bson.Marshal(bson.D{{Key: key, Value: docs}})
	if err != nil {
		return err
	}
	if v, ok := bsonkit.Get(raw, key); ok && v.Type == bson.TypeArray {
		r.value(key, v)
		return nil
	}
	r.strings(key, nil)
	return nil
}

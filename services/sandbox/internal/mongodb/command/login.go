package command

import (
	"crypto/sha256"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/accounts"
	"changerelay/services/sandbox/internal/mongodb/scram"
)

// Login is who a connection is, owned by its serve loop. There is one user at a
// time; another who authenticates takes the place of the first.
type Login struct {
	// User is the zero Name before anybody has authenticated.
	User   access.Name
	Grants access.Grants
	// Version is that of the accounts when grants were read.
	Version uint64
	// Owner is the uid of the user's sessions, nil before it is asked for.
	Owner []byte

	// Exchange is the authentication under way, nil for none.
	Exchange *Exchange
}

// Exchange is one run of SASL.
type Exchange struct {
	DB           string
	Conversation *scram.Conversation
	// Proven tells that only an empty message is to come.
	Proven bool
	// Short leaves that out.
	Short bool
}

// Refresh reads again what the user may do, where that may have changed.
func (l *Login) Refresh(a *accounts.Store) error {
	version := a.Version.Load()
	if l.User == (access.Name{}) || l.Version == version {
		return nil
	}
	grants, found, err := a.Grants(l.User)
	if err != nil {
		return err
	}
	if !found {
		*l = Login{}
		return nil
	}
	l.Grants, l.Version = grants, version
	return nil
}

// SessionOwner is the uid of the user's sessions: the SHA-256 of its name, of
// nothing for nobody.
func (l *Login) SessionOwner() []byte {
	if l.Owner != nil {
		return l.Owner
	}
	name := ""
	if l.User != (access.Name{}) {
		name = l.User.String()
	}
	sum := sha256.Sum256([]byte(name))
	l.Owner = sum[:]
	return l.Owner
}

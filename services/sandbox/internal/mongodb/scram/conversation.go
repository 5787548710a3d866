package scram

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
)

// ErrRefused is a proof that does not belong to the credentials.
var ErrRefused = errors.New("the proof is wrong")

// Conversation is one exchange between its two messages from the client.
type Conversation struct {
	credentials Credentials
	first       clientFirst
	nonce       string
	serverFirst string
}

// Start reads the client's first message and returns the answer to it. find
// gives the credentials of a user.
func Start(message []byte, find func(user string) (Credentials, error)) (*Conversation, []byte, error) {
	first, err := parseFirst(message)
	if err != nil {
		return nil, nil, err
	}
	credentials, err := find(first.user)
	if err != nil {
		return nil, nil, err
	}
	if err := credentials.Check(); err != nil {
		return nil, nil, err
	}
	c := &Conversation{credentials: credentials, first: first, nonce: first.nonce + rand.Text()}
	c.serverFirst = serverFirst(c.nonce, credentials)
	return c, []byte(c.serverFirst), nil
}

// Finish reads the client's final message and returns the server's proof, or
// ErrRefused.
func (c *Conversation) Finish(message []byte) ([]byte, error) {
	final, err := parseFinal(message)
	if err != nil {
		return nil, err
	}
	if final.nonce != c.nonce || final.binding != c.first.header {
		return nil, errors.New("the final message belongs to another exchange")
	}
	signed := c.first.bare + "," + c.serverFirst + "," + final.withoutProof
	mechanism := c.credentials.Mechanism
	signature := mechanism.mac(c.credentials.StoredKey, signed)
	if len(final.proof) != len(signature) {
		return nil, ErrRefused
	}
	clientKey := make([]byte, len(signature))
	subtle.XORBytes(clientKey, final.proof, signature)
	if subtle.ConstantTimeCompare(mechanism.sum(clientKey), c.credentials.StoredKey) != 1 {
		return nil, ErrRefused
	}
	proof := mechanism.mac(c.credentials.ServerKey, signed)
	return []byte("v=" + base64.StdEncoding.EncodeToString(proof)), nil
}

// User is who the client says it is.
func (c *Conversation) User() string { return c.first.user }

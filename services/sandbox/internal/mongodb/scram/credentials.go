package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
)

// Bounds of the iteration count: RFC 7677 asks for the lower, and no stored
// count above the upper is believed.
const (
	MinIterations = 4096
	MaxIterations = 1_000_000
)

// counterBytes are left free in a block of the hash, as the server's salts do:
// the first round of PBKDF2 has a counter there.
const counterBytes = 4

// Credentials are what is kept of a password.
type Credentials struct {
	Mechanism  Mechanism
	Salt       []byte
	Iterations int
	// StoredKey and ServerKey are those of RFC 5802, section 3.
	StoredKey, ServerKey []byte
}

// NewCredentials makes credentials of a secret, with a fresh salt.
func (m Mechanism) NewCredentials(secret string, iterations int) (Credentials, error) {
	salt := make([]byte, m.size()-counterBytes)
	_, _ = rand.Read(salt) // it never fails
	return m.derive(secret, salt, iterations)
}

func (m Mechanism) derive(secret string, salt []byte, iterations int) (Credentials, error) {
	salted, err := pbkdf2.Key(m.hash, secret, salt, iterations, m.size())
	if err != nil {
		return Credentials{}, fmt.Errorf("derive the keys of a password: %w", err)
	}
	c := Credentials{Mechanism: m, Salt: salt, Iterations: iterations, ServerKey: m.mac(salted, "Server Key")}
	c.StoredKey = m.sum(m.mac(salted, "Client Key"))
	return c, c.Check()
}

// Verify tells whether a password of a user is the one that the credentials were
// made of: ErrRefused if it is another.
func (c Credentials) Verify(user, password string) error {
	if err := c.Check(); err != nil {
		return err
	}
	secret, err := c.Mechanism.Secret(user, password)
	if err != nil {
		return err
	}
	derived, err := c.Mechanism.derive(secret, c.Salt, c.Iterations)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(derived.StoredKey, c.StoredKey) != 1 {
		return ErrRefused
	}
	return nil
}

// Check refuses credentials that cannot be used.
func (c Credentials) Check() error {
	switch {
	case !c.Mechanism.Known():
		return fmt.Errorf("mechanism %q is none of %v", c.Mechanism, Mechanisms())
	case c.Iterations < MinIterations || c.Iterations > MaxIterations:
		return fmt.Errorf("an iteration count of %d, where %d to %d are allowed", c.Iterations, MinIterations, MaxIterations)
	case len(c.Salt) == 0 || len(c.StoredKey) != c.Mechanism.size() || len(c.ServerKey) != c.Mechanism.size():
		return errors.New("a salt or key of the wrong length")
	}
	return nil
}

func (m Mechanism) mac(key []byte, text string) []byte {
	h := hmac.New(m.hash, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

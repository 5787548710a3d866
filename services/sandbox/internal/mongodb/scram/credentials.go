package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/xdg-go/stringprep"
)

// Mechanism is the name of what this package speaks.
const Mechanism = "SCRAM-SHA-256"

// Bounds of the iteration count: RFC 7677 asks for the lower, and no stored
// count above the upper is believed.
const (
	MinIterations     = 4096
	DefaultIterations = 15_000
	MaxIterations     = 1_000_000
)

// saltBytes leaves room for a counter of four bytes in a block of SHA-256, as
// the server's salts do.
const saltBytes = sha256.Size - 4

// Credentials are what is kept of a password.
type Credentials struct {
	Salt       []byte
	Iterations int
	// StoredKey and ServerKey are those of RFC 5802, section 3.
	StoredKey, ServerKey []byte
}

// NewCredentials makes credentials of a password, with a fresh salt.
func NewCredentials(password string, iterations int) (Credentials, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // it never fails
	return derive(password, salt, iterations)
}

func derive(password string, salt []byte, iterations int) (Credentials, error) {
	prepared, err := stringprep.SASLprep.Prepare(password)
	if err != nil {
		return Credentials{}, errors.New("the password has characters that SASLprep does not allow")
	}
	salted, err := pbkdf2.Key(sha256.New, prepared, salt, iterations, sha256.Size)
	if err != nil {
		return Credentials{}, fmt.Errorf("derive the keys of a password: %w", err)
	}
	c := Credentials{Salt: salt, Iterations: iterations, ServerKey: mac(salted, "Server Key")}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	c.StoredKey = stored[:]
	return c, c.Check()
}

// Verify tells whether a password is the one that the credentials were made of:
// ErrRefused if it is another.
func (c Credentials) Verify(password string) error {
	if err := c.Check(); err != nil {
		return err
	}
	derived, err := derive(password, c.Salt, c.Iterations)
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
	case c.Iterations < MinIterations || c.Iterations > MaxIterations:
		return fmt.Errorf("an iteration count of %d, where %d to %d are allowed", c.Iterations, MinIterations, MaxIterations)
	case len(c.Salt) == 0 || len(c.StoredKey) != sha256.Size || len(c.ServerKey) != sha256.Size:
		return errors.New("a salt or key of the wrong length")
	}
	return nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

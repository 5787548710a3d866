package scram

import (
	"crypto/md5"  //nolint:gosec // what a client of SCRAM-SHA-1 takes for its password
	"crypto/sha1" //nolint:gosec // what the mechanism is made of
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"

	"github.com/xdg-go/stringprep"
)

// Mechanism is the name of one of those that this package speaks.
type Mechanism string

// The mechanisms, in the order in which a server names them.
const (
	SHA1   Mechanism = "SCRAM-SHA-1"
	SHA256 Mechanism = "SCRAM-SHA-256"
)

// Mechanisms are all of them.
func Mechanisms() []Mechanism { return []Mechanism{SHA1, SHA256} }

// Known reports that the package speaks it.
func (m Mechanism) Known() bool { return m == SHA1 || m == SHA256 }

// DefaultIterations is the count for new credentials, the server's own.
func (m Mechanism) DefaultIterations() int {
	if m == SHA1 {
		return 10_000
	}
	return 15_000
}

func (m Mechanism) hash() hash.Hash {
	if m == SHA1 {
		return sha1.New() //nolint:gosec // see the import
	}
	return sha256.New()
}

func (m Mechanism) size() int { return m.hash().Size() }

func (m Mechanism) sum(data []byte) []byte {
	h := m.hash()
	h.Write(data)
	return h.Sum(nil)
}

// Secret is what stands for a user's password: with SCRAM-SHA-1 the digest that
// MongoDB has kept from before it had the mechanism.
func (m Mechanism) Secret(user, password string) (string, error) {
	if m == SHA1 {
		digest := md5.Sum([]byte(user + ":mongo:" + password)) //nolint:gosec // see the import
		return hex.EncodeToString(digest[:]), nil
	}
	prepared, err := stringprep.SASLprep.Prepare(password)
	if err != nil {
		return "", errors.New("the password has characters that SASLprep does not allow")
	}
	return prepared, nil
}

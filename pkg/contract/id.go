package contract

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// Identity is what makes a change itself, whoever reads it and however often.
type Identity struct {
	Database   string
	Collection string
	// DocumentKey is the BSON of the changed document's key: of its _id alone where the
	// version is known, as a copy of the document does not show a shard key.
	DocumentKey []byte
	Operation   Operation
	Version     Version
	Position    Position
}

// MessageID derives the message id: 43 characters, a hash, because neither a
// document key nor a resume token is bounded by what an id may hold.
//
// With a version the id rests on collection, key, operation and version, and
// Snapshot counts as Insert, so stream, snapshot, healing and replay agree.
// Without one it rests on the whole position, not on the cluster time only: a
// transaction may change one document twice at one cluster time, and the two
// changes must not look like repeats.
func (i Identity) MessageID() string {
	op := i.Operation
	if op == Snapshot && i.Version.Known {
		op = Insert
	}
	var room [512]byte
	parts := appendPart(room[:0], i.Database)
	parts = appendPart(parts, i.Collection)
	parts = appendPart(parts, i.DocumentKey)
	parts = appendPart(parts, op)
	if i.Version.Known {
		var digits [versionDigits]byte
		parts = appendPart(parts, appendVersion(digits[:0], i.Version.Number))
	} else {
		parts = appendPart(parts, i.Position)
	}
	sum := sha256.Sum256(parts)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// appendPart adds one part with its length, so that no two lists of parts hash
// alike by running into each other.
func appendPart[T ~string | ~[]byte](parts []byte, part T) []byte {
	parts = binary.BigEndian.AppendUint64(parts, uint64(len(part)))
	return append(parts, part...)
}

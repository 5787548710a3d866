package changestream

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Fingerprint stands for what is read and with which options: a resume token
// that was given out under one fingerprint is not to be used under another.
func (s Source) Fingerprint() (string, error) {
	named := s
	named.Collections = slices.Sorted(slices.Values(s.Collections)) // in any order it is the same stream
	pipeline, err := bson.Marshal(bson.D{{Key: "pipeline", Value: named.pipeline()}})
	if err != nil {
		return "", fmt.Errorf("write the pipeline of %s: %w", s, err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q ", s.Database.Name(), named.Collections, s.FullDocument, s.BeforeChange)
	h.Write(pipeline)
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

package mapping

import (
	"encoding/hex"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// IDValues are all values whose aggregate id is a text.
func IDValues(text string) bson.A {
	values := bson.A{text}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		values = append(values, n)
	}
	if strings.ToLower(text) != text {
		return values
	}
	if id, err := bson.ObjectIDFromHex(text); err == nil {
		values = append(values, id)
	}
	if plain := strings.ReplaceAll(text, "-", ""); len(text) == 36 && len(plain) == 32 {
		if data, err := hex.DecodeString(plain); err == nil {
			values = append(values, bson.Binary{Subtype: bson.TypeBinaryUUID, Data: data})
		}
	}
	return values
}

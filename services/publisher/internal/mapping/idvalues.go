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

// LaterSpellings are the values of other types that have the text of an aggregate id,
// and that a sort by ids has behind it: integers come before strings, and those before
// UUIDs and ObjectIds.
func LaterSpellings(id bson.RawValue) []bson.RawValue {
	switch id.Type {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeString:
	default:
		return nil
	}
	return spellings(id, func(other bson.Type) bool { return other != bson.TypeInt64 && other != id.Type })
}

// EarlierSpellings are those that a sort by ids has before it; integers have 64 bits.
func EarlierSpellings(id bson.RawValue) []bson.RawValue {
	switch id.Type {
	case bson.TypeString:
		return spellings(id, func(other bson.Type) bool { return other == bson.TypeInt64 })
	case bson.TypeBinary, bson.TypeObjectID:
		return spellings(id, func(other bson.Type) bool { return other == bson.TypeString })
	default:
		return nil
	}
}

// spellings are the values of some types that have the text of an aggregate id.
func spellings(id bson.RawValue, of func(bson.Type) bool) []bson.RawValue {
	text, ok := idText(value{kind: id.Type, data: id.Value})
	if !ok {
		return nil
	}
	var all []bson.RawValue
	for _, other := range IDValues(text) {
		kind, data, err := bson.MarshalValue(other)
		if err != nil || !of(kind) {
			continue
		}
		if same, _ := idText(value{kind: kind, data: data}); same == text {
			all = append(all, bson.RawValue{Type: kind, Value: data})
		}
	}
	return all
}

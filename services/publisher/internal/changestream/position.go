package changestream

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/pkg/contract"
)

// timestampTag is the first byte of a resume token: the tag of a timestamp in
// the server's KeyString encoding. The timestamp follows in 8 bytes, seconds
// first, both big-endian.
const timestampTag = "82"

// tokenEnd is the last byte of a resume token, as a complete one has it.
const tokenEnd = "04"

// objectEnd is the last byte of an object, such as the one that names a change.
const objectEnd = "00"

// Whole reports whether a position's token may be complete: one that was cut off
// somewhere is in general not. The source knows for sure.
func Whole(position contract.Position) bool {
	_, data, _ := strings.Cut(string(position), ".")
	return len(data)%2 == 0 && strings.HasSuffix(data, tokenEnd)
}

// PositionOf returns the position of a resume token; empty where the token is
// not one. The token's own cluster time is used, as tokens of empty reads have
// no other, and it equals the change's. A fragment has the position of its change.
func PositionOf(token []byte) contract.Position {
	value, err := bson.Raw(token).LookupErr("_data")
	if err != nil {
		return ""
	}
	data, ok := value.StringValueOK()
	data = strings.ToUpper(data)
	if !ok || len(data) < 18 || !strings.HasPrefix(data, timestampTag) || strings.Trim(data, "0123456789ABCDEF") != "" {
		return ""
	}
	seconds, _ := strconv.ParseUint(data[2:10], 16, 32)
	increment, _ := strconv.ParseUint(data[10:18], 16, 32)
	return Unsplit(contract.StreamPosition(uint32(seconds), uint32(increment), data))
}

// Unsplit returns the position of the whole change where a position is that of a
// fragment, as earlier releases have it. How a change is split rests on the documents
// that are looked up for it, so a fragment's number is no part of its place.
//
// A token ends with an object that names the change, and that with a zero byte. A
// fragment's number, from 0, comes behind it as an integer of one byte (resume_token.cpp
// and key_string.cpp of the server).
func Unsplit(position contract.Position) contract.Position {
	const zero, oneByte = "29", "2B"
	named, ended := strings.CutSuffix(string(position), tokenEnd)
	n := len(named)
	switch {
	case !ended:
		return position
	case strings.HasSuffix(named, objectEnd+zero):
		named = named[:n-2]
	case n > 6 && named[n-6:n-2] == objectEnd+oneByte && named[n-2:] != objectEnd:
		named = named[:n-4]
	default:
		return position
	}
	return contract.Position(named + tokenEnd)
}

// unsplit returns the token of the whole change where a token is that of a fragment.
func unsplit(token bson.Raw) bson.Raw {
	_, data, _ := strings.Cut(string(PositionOf(token)), ".")
	if data == "" || len(data) == len(token.Lookup("_data").StringValue()) {
		return token
	}
	elements, err := token.Elements()
	if err != nil {
		return token
	}
	build := bsoncore.NewDocumentBuilder().AppendString("_data", data)
	for _, e := range elements {
		if value := e.Value(); e.Key() != "_data" {
			build.AppendValue(e.Key(), bsoncore.Value{Type: bsoncore.Type(value.Type), Data: value.Value})
		}
	}
	return bson.Raw(build.Build())
}

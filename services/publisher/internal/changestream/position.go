package changestream

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
)

// timestampTag is the first byte of a resume token: the tag of a timestamp in
// the server's KeyString encoding. The timestamp follows in 8 bytes, seconds
// first, both big-endian.
const timestampTag = "82"

// tokenEnd is the last byte of a resume token, as a complete one has it.
const tokenEnd = "04"

// Whole reports whether a position's token may be complete: one that was cut off
// somewhere is in general not. The source knows for sure.
func Whole(position contract.Position) bool {
	_, data, _ := strings.Cut(string(position), ".")
	return len(data)%2 == 0 && strings.HasSuffix(data, tokenEnd)
}

// PositionOf returns the position of a resume token; empty where the token is
// not one. The token's own cluster time is used, as tokens of empty reads have
// no other, and it equals the change's.
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
	return contract.StreamPosition(uint32(seconds), uint32(increment), data)
}

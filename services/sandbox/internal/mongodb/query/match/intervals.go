package match

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// label is how an edge is shown. The empty label is that of no bound.
type label struct {
	text string
	// open tells that what is shown is not within.
	open bool
}

func shownValue(v bson.RawValue) label { return label{text: bsonkit.Describe(v)} }

// shownType are the ends of the values that compare with those of a type.
func shownType(t bson.Type) (first, last label) {
	const firstID, lastID = "ObjectId('000000000000000000000000')", "ObjectId('ffffffffffffffffffffffff')"
	switch t {
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		return label{text: "-inf.0"}, label{text: "inf.0"}
	case bson.TypeString, bson.TypeSymbol:
		return label{text: `""`}, label{text: "{}", open: true}
	case bson.TypeEmbeddedDocument:
		return label{text: "{}"}, label{text: "[]", open: true}
	case bson.TypeBinary:
		return label{text: "BinData(0, )"}, label{text: firstID, open: true}
	case bson.TypeObjectID:
		return label{text: firstID}, label{text: lastID}
	case bson.TypeBoolean:
		return label{text: "false"}, label{text: "true"}
	case bson.TypeDateTime:
		return label{text: "new Date(-9223372036854775808)"}, label{text: "new Date(9223372036854775807)"}
	case bson.TypeTimestamp:
		return label{text: "Timestamp(0, 0)"}, label{text: "Timestamp(4294967295, 4294967295)"}
	case bson.TypeNull:
		return label{text: "null"}, label{text: "null"}
	case bson.TypeRegex:
		return label{text: "/.*/"}, label{text: "/.*/"}
	}
	return label{}, label{}
}

// Everything is the bounds that exclude nothing.
func Everything() Bounds { return everything() }

// shownPrefix are the ends of the texts that begin with one.
func shownPrefix(prefix string) (first, behind label) {
	next := []byte(prefix)
	if len(next) > 0 {
		next[len(next)-1]++
	}
	return label{text: `"` + prefix + `"`}, label{text: `"` + strings.ToValidUTF8(string(next), "?") + `"`, open: true}
}

// maxIntervals bounds what is shown of one field.
const maxIntervals = 1000

// Intervals are the bounds as explain shows them, in the order of an index that
// is read from its last value to its first where descending is set.
func (b Bounds) Intervals(descending bool) []string {
	spans := b.spans[:min(len(b.spans), maxIntervals)]
	intervals := make([]string, 0, len(spans))
	for _, s := range spans {
		low, high := s.low.label, s.high.label
		if low.text == "" {
			low.text = "MinKey"
		}
		if high.text == "" {
			high.text = "MaxKey"
		}
		if descending {
			low, high = high, low
		}
		text := "["
		if low.open {
			text = "("
		}
		text += low.text + ", " + high.text
		if high.open {
			text += ")"
		} else {
			text += "]"
		}
		intervals = append(intervals, text)
	}
	if descending {
		slices.Reverse(intervals)
	}
	return intervals
}

package storage

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// ScanDates reads through an index on one field the documents with a date there
// that is not after a time.
func (t *Table) ScanDates(ix *Index, end time.Time) *Scan {
	return NewScan(t, Access{Index: ix, ranges: []keyRange{datesUpTo(ix.Spec.Fields[0], end)}})
}

// datesUpTo covers the index keys of dates from the earliest to a time.
func datesUpTo(f IndexField, end time.Time) keyRange {
	date := func(ms int64) string {
		value := make([]byte, 8)
		for i := range value {
			value[i] = byte(uint64(ms) >> (8 * i))
		}
		return string(f.appendKey(nil, bson.RawValue{Type: bson.TypeDateTime, Value: value}))
	}
	low, high := date(minDate), date(end.UnixMilli())
	if f.Descending {
		low, high = high, low
	}
	return keyRange{low: low, high: string(bsonkit.KeyAfter([]byte(high)))}
}

// minDate is the earliest date BSON can hold, in milliseconds.
const minDate = -1 << 63

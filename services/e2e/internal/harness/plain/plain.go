// Package plain turns BSON into plain Go values that compare with
// reflect.DeepEqual: documents become maps, arrays []any, every whole number
// int64, so that a value which came through JSON on its way equals the one it
// came from.
package plain

import (
	"fmt"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Document returns a BSON document as a map.
func Document(raw bson.Raw) (map[string]any, error) {
	var doc bson.D
	if err := bson.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("decode BSON: %w", err)
	}
	return fields(doc), nil
}

func fields(doc bson.D) map[string]any {
	m := make(map[string]any, len(doc))
	for _, e := range doc {
		m[e.Key] = value(e.Value)
	}
	return m
}

func value(v any) any {
	switch v := v.(type) {
	case bson.D:
		return fields(v)
	case bson.A:
		list := make([]any, len(v))
		for i := range v {
			list[i] = value(v[i])
		}
		return list
	case int32:
		return int64(v)
	case float64:
		// Exact up to 2^53; above, the number stays what it is.
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
		return v
	case bson.DateTime:
		return v.Time().UTC()
	case time.Time:
		return v.UTC()
	}
	return v
}

package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// bits tests positions of whole numbers, taken as two's complement without end,
// and of binary values, whose first byte holds positions 0 to 7.
type bits struct {
	positions []int
	set, all  bool
}

func newBits(name string, v bson.RawValue) (*bits, error) {
	b := &bits{
		set: name == "$bitsAllSet" || name == "$bitsAnySet",
		all: name == "$bitsAllSet" || name == "$bitsAllClear",
	}
	switch v.Type {
	case bson.TypeArray:
		for it := bsonkit.Iterate(v.Value); it.Next(); {
			position, ok := bsonkit.WholeNumber(it.Value())
			if !ok || position < 0 {
				return nil, mongoerr.New(mongoerr.BadValue, "bit positions must be non-negative whole numbers: %s", name)
			}
			b.positions = append(b.positions, int(position))
		}
	case bson.TypeBinary:
		_, data := v.Binary()
		b.addMask(data)
	default:
		mask, ok := bsonkit.WholeNumber(v)
		if bsonkit.IsNumber(v.Type) && (!ok || mask < 0) {
			return nil, mongoerr.New(mongoerr.FailedToParse, "Expected a non-negative integer number in: %s: %s", name, bsonkit.Describe(v))
		}
		if !ok {
			return nil, mongoerr.New(mongoerr.BadValue, "%s takes an Array, a number, or a BinData but received: %s", name, bsonkit.Describe(v))
		}
		for i := range 63 {
			if mask>>i&1 == 1 {
				b.positions = append(b.positions, i)
			}
		}
	}
	return b, nil
}

func (b *bits) addMask(mask []byte) {
	for i, octet := range mask {
		for j := range 8 {
			if octet>>j&1 == 1 {
				b.positions = append(b.positions, i*8+j)
			}
		}
	}
}

func (b *bits) pass(v bson.RawValue, _ *int) bool {
	var bit func(int) bool
	switch {
	case bsonkit.IsNumber(v.Type):
		n, ok := bsonkit.WholeNumber(v)
		if !ok {
			return false
		}
		bit = func(i int) bool { return n>>min(i, 63)&1 == 1 }
	case v.Type == bson.TypeBinary:
		_, data := v.Binary()
		bit = func(i int) bool { return i/8 < len(data) && data[i/8]>>(i%8)&1 == 1 }
	default:
		return false
	}
	for _, i := range b.positions {
		if (bit(i) == b.set) != b.all {
			return !b.all
		}
	}
	return b.all
}

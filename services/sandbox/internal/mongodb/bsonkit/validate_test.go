package bsonkit_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// everything holds one value of each type.
func everything(t testing.TB) bson.Raw {
	t.Helper()
	b := bsonkit.NewBuilder(nil)
	b.Append("undefined", bson.RawValue{Type: bson.TypeUndefined})
	for it := bsonkit.Iterate(document(t, `{
		"double":1.5,"string":"é","document":{"a":{"b":[]}},"array":[1,[2]],"binary":{"$binary":{"base64":"AAEC","subType":"00"}},
		"old binary":{"$binary":{"base64":"AAEC","subType":"02"}},"oid":{"$oid":"000000000000000000000001"},"bool":true,
		"date":{"$date":{"$numberLong":"5"}},"null":null,"regex":{"$regularExpression":{"pattern":"a","options":"i"}},
		"pointer":{"$dbPointer":{"$ref":"db.c","$id":{"$oid":"000000000000000000000001"}}},"code":{"$code":"x"},"symbol":{"$symbol":"s"},
		"scoped":{"$code":"x","$scope":{"a":1}},"int":1,"timestamp":{"$timestamp":{"t":1,"i":2}},"long":{"$numberLong":"1"},
		"decimal":{"$numberDecimal":"1"},"min":{"$minKey":1},"max":{"$maxKey":1}}`)); it.Next(); {
		b.Append(string(it.Key()), it.Value())
	}
	return b.Finish()
}

func TestValidate_ValidateAcceptsEveryType(t *testing.T) {
	t.Parallel()
	doc := everything(t)
	if err := bsonkit.Validate(doc, bsonkit.MaxDepth); err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	fields := 0
	for it := bsonkit.Iterate(doc); it.Next(); {
		fields++
	}
	if fields != 22 {
		t.Errorf("fields: got %d, want 22", fields)
	}
}

func TestValidate_ValidateRefusesBrokenDocuments(t *testing.T) {
	t.Parallel()
	good := document(t, `{"s":"abc","d":{"x":1},"b":true}`)
	// element makes a document of one element.
	element := func(t bson.Type, value ...byte) []byte {
		b := bsonkit.NewBuilder(nil)
		b.Append("k", bson.RawValue{Type: t, Value: value})
		return b.Finish()
	}
	change := func(at int, to byte) []byte {
		c := slices.Clone(good)
		c[at] = to
		return c
	}
	for name, raw := range map[string][]byte{
		"nothing":                               nil,
		"four bytes":                            {4, 0, 0, 0},
		"cut short":                             good[:len(good)-1],
		"more than it says":                     append(slices.Clone(good), 0),
		"a negative length":                     binary.LittleEndian.AppendUint32(nil, 1<<31),
		"no end mark":                           change(len(good)-1, 1),
		"an unknown type":                       change(4, 0x20),
		"a text longer than the document":       change(7, 0xff),
		"a text without its end":                change(14, 'x'),
		"a name that does not end":              {7, 0, 0, 0, 8, 'k', 'k'},
		"a text of length 0":                    element(bson.TypeString, 0, 0, 0, 0),
		"a boolean that is neither":             element(bson.TypeBoolean, 2),
		"an inner document that is too short":   element(bson.TypeEmbeddedDocument, 4, 0, 0, 0),
		"an inner document without an end":      element(bson.TypeEmbeddedDocument, 5, 0, 0, 0, 1),
		"a binary longer than there is":         element(bson.TypeBinary, 9, 0, 0, 0, 0, 1),
		"a binary of negative length":           element(bson.TypeBinary, 0xff, 0xff, 0xff, 0xff, 0),
		"an old binary of wrong inner length":   element(bson.TypeBinary, 5, 0, 0, 0, 2, 9, 0, 0, 0, 1),
		"an old binary without an inner length": element(bson.TypeBinary, 1, 0, 0, 0, 2, 9),
		"a regex without options":               element(bson.TypeRegex, 'a', 0)[:9],
		"code with scope of wrong length":       element(bson.TypeCodeWithScope, 20, 0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0),
		"code with scope and a wrong code":      element(bson.TypeCodeWithScope, 14, 0, 0, 0, 9, 0, 0, 0, 0, 5, 0, 0, 0, 0),
		"an end in the middle":                  {7, 0, 0, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := bsonkit.Validate(raw, bsonkit.MaxDepth); err == nil {
				t.Errorf("got no error for %x", raw)
			}
		})
	}
}

func TestValidate_ValidateLimitsTheDepth(t *testing.T) {
	t.Parallel()
	v := bsonkit.Int32(1)
	for range 9 {
		b := bsonkit.NewBuilder(nil)
		b.Append("d", v)
		v = bsonkit.Document(b.Finish())
	}
	if err := bsonkit.Validate(v.Value, 9); err != nil {
		t.Errorf("depth 9 of 9: got %v, want no error", err)
	}
	if err := bsonkit.Validate(v.Value, 8); err == nil {
		t.Error("depth 9 of 8: got no error")
	}
}

// FuzzValidate feeds hostile bytes to everything that reads documents: nothing
// panics, and what is accepted can be read to its end.
func FuzzValidate(f *testing.F) {
	f.Add([]byte(everything(f)))
	f.Add([]byte(document(f, `{"a":[{"b":[1,2]},{"b":3}]}`)))
	f.Add([]byte{7, 0, 0, 0, 8, 'k', 'k'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := bsonkit.Validate(raw, 20)
		bsonkit.AppendKey(nil, bsonkit.Document(raw))
		bsonkit.Compare(bsonkit.Document(raw), bsonkit.Document(raw))
		bsonkit.IndexValues(raw, "a.b")
		node := bsonkit.NewNode(bsonkit.Document(raw))
		node.Append("new", bsonkit.Int32(1))
		made := node.Bytes()
		if err != nil {
			return
		}
		if err := bsonkit.Validate(made, 20); err != nil {
			t.Errorf("an edited copy of a valid document is not valid: %v", err)
		}
		if err := bson.Raw(raw).Validate(); err != nil {
			t.Errorf("the driver refuses what was accepted: %v", err)
		}
	})
}

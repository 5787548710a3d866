package javascript

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// maxDepth is how deep a value may be nested.
const maxDepth = 200

// decode reads a value as the prelude writes it. A script can forge what it
// writes, so nothing is taken on trust.
func decode(text string) (bson.RawValue, error) {
	d := decoder{json.NewDecoder(strings.NewReader(text))}
	d.UseNumber()
	v, err := d.value(0)
	if err != nil {
		return v, mongoerr.New(mongoerr.JSInterpreterFailure, "the script's value cannot be stored: %v", err)
	}
	if len(v.Value) > bsonkit.MaxBuilt {
		return v, mongoerr.New(mongoerr.BSONObjectTooLarge, "the script's value has %d bytes", len(v.Value))
	}
	return v, nil
}

type decoder struct{ *json.Decoder }

func (d decoder) value(depth int) (bson.RawValue, error) {
	token, err := d.Token()
	if err != nil {
		return bson.RawValue{}, err
	}
	if depth > maxDepth {
		return bson.RawValue{}, fmt.Errorf("it is nested too deeply")
	}
	switch t := token.(type) {
	case nil:
		return bsonkit.Null(), nil
	case bool:
		return bsonkit.Boolean(t), nil
	case string:
		return bsonkit.String(t), nil
	case json.Number:
		f, err := t.Float64()
		return bsonkit.Double(f), err
	case json.Delim:
		if t == '[' {
			return d.array(depth)
		}
		if t == '{' {
			return d.object(depth)
		}
	}
	return bson.RawValue{}, fmt.Errorf("unexpected %v", token)
}

func (d decoder) array(depth int) (bson.RawValue, error) {
	b := bsonkit.NewBuilder(nil)
	for i := 0; d.More(); i++ {
		v, err := d.value(depth + 1)
		if err != nil {
			return v, err
		}
		b.AppendIndex(i, v)
	}
	_, err := d.Token()
	return bson.RawValue{Type: bson.TypeArray, Value: b.Finish()}, err
}

func (d decoder) object(depth int) (bson.RawValue, error) {
	b := bsonkit.NewBuilder(nil)
	for first := true; d.More(); first = false {
		token, err := d.Token()
		if err != nil {
			return bson.RawValue{}, err
		}
		name, _ := token.(string)
		if first && name == "\x00" {
			return d.tagged(depth)
		}
		if strings.Contains(name, "\x00") {
			return bson.RawValue{}, fmt.Errorf("the name %q of a field has a null byte", name)
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return v, err
		}
		b.Append(name, v)
	}
	_, err := d.Token()
	return bsonkit.Document(b.Finish()), err
}

// tagged reads the rest of a value that JSON has no text for.
func (d decoder) tagged(depth int) (bson.RawValue, error) {
	token, err := d.Token()
	if err != nil {
		return bson.RawValue{}, err
	}
	p := parts{}
	p.kind, _ = token.(string)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return bson.RawValue{}, err
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return v, err
		}
		switch token {
		case "t":
			p.t = v
		case "v":
			p.v = v
		case "s":
			p.s = v
		}
	}
	if _, err := d.Token(); err != nil {
		return bson.RawValue{}, err
	}
	v, ok := p.value()
	if !ok {
		return v, fmt.Errorf("it is no %s", p.kind)
	}
	return v, nil
}

// parts are what a tagged value is made of.
type parts struct {
	kind    string
	t, v, s bson.RawValue
}

func (p parts) value() (v bson.RawValue, ok bool) {
	text, isText := p.v.StringValueOK()
	n, isNumber := p.v.DoubleOK()
	t, hasType := p.t.DoubleOK()
	switch p.kind {
	case "undefined":
		return bson.RawValue{Type: bson.TypeUndefined}, true
	case "min":
		return bson.RawValue{Type: bson.TypeMinKey}, true
	case "max":
		return bson.RawValue{Type: bson.TypeMaxKey}, true
	case "double":
		f, err := strconv.ParseFloat(text, 64)
		return bsonkit.Double(f), err == nil
	case "int":
		return bsonkit.Int32(int32(int64(n))), isNumber
	case "long":
		i, err := strconv.ParseInt(text, 10, 64)
		return bsonkit.Int64(i), err == nil
	case "decimal":
		decimal, err := bson.ParseDecimal128(text)
		return bsonkit.Decimal(decimal), err == nil
	case "oid":
		id, err := bson.ObjectIDFromHex(text)
		return bsonkit.ObjectID(id), err == nil
	case "date":
		return bsonkit.DateMillis(int64(n)), isNumber
	case "timestamp":
		return bsonkit.Timestamp(bson.Timestamp{T: uint32(int64(t)), I: uint32(int64(n))}), isNumber && hasType
	case "binary":
		data, err := base64.StdEncoding.DecodeString(text)
		return bson.RawValue{Type: bson.TypeBinary, Value: bsoncore.AppendBinary(nil, byte(int64(t)), data)}, err == nil && hasType
	case "regexp":
		options, isOptions := p.t.StringValueOK()
		if strings.Contains(text, "\x00") || strings.Contains(options, "\x00") {
			return v, false
		}
		return bson.RawValue{Type: bson.TypeRegex, Value: bsoncore.AppendRegex(nil, text, options)}, isText && isOptions
	case "pointer":
		name, isName := p.t.StringValueOK()
		id, err := bson.ObjectIDFromHex(text)
		return bson.RawValue{Type: bson.TypeDBPointer, Value: bsoncore.AppendDBPointer(nil, name, id)}, err == nil && isName
	case "code":
		if scope, ok := p.s.DocumentOK(); ok {
			return bson.RawValue{Type: bson.TypeCodeWithScope, Value: bsoncore.AppendCodeWithScope(nil, text, bsoncore.Document(scope))}, isText
		}
		return bson.RawValue{Type: bson.TypeJavaScript, Value: bsoncore.AppendJavaScript(nil, text)}, isText
	}
	return v, false
}

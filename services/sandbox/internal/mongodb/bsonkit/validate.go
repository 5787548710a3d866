package bsonkit

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// MaxDepth is how deep the server lets documents nest.
const MaxDepth = 200

// ErrTooDeep is why Validate refuses a document that nests too deeply.
var ErrTooDeep = errors.New("document nests too deeply")

// Validate checks bytes from outside: that raw is exactly one BSON document,
// that every length in it agrees, and that it nests no deeper than maxDepth
// (the document itself is depth 1). Text that is not UTF-8 is let through, as
// the server does. The error says where and what.
func Validate(raw []byte, maxDepth int) error {
	if len(raw) < 5 {
		return errors.New("document is shorter than 5 bytes")
	}
	n := int(int32(binary.LittleEndian.Uint32(raw)))
	if n != len(raw) {
		return fmt.Errorf("document says it has %d bytes and has %d", n, len(raw))
	}
	return validateDocument(raw, maxDepth)
}

// validateDocument has a document whose length is known to be right.
func validateDocument(doc []byte, depth int) error {
	if depth <= 0 {
		return ErrTooDeep
	}
	if doc[len(doc)-1] != 0 {
		return errors.New("document does not end with a zero byte")
	}
	it := Iterate(doc)
	for it.Next() {
		if err := validateValue(it.value, depth); err != nil {
			return fmt.Errorf("%q: %w", it.key, err)
		}
	}
	if len(it.rest) != 1 {
		return errors.New("document holds a malformed element")
	}
	return nil
}

// validateValue has a value whose size is within its document.
func validateValue(v bson.RawValue, depth int) error {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return validateText(v.Value)
	case bson.TypeDBPointer:
		return validateText(v.Value[:len(v.Value)-12])
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return validateDocument(v.Value, depth-1)
	case bson.TypeBoolean:
		if v.Value[0] > 1 {
			return fmt.Errorf("boolean is %d", v.Value[0])
		}
	case bson.TypeBinary:
		return validateBinary(v.Value)
	case bson.TypeCodeWithScope:
		return validateScopedCode(v.Value, depth)
	}
	return nil
}

func validateText(b []byte) error {
	if b[len(b)-1] != 0 {
		return errors.New("text does not end with a zero byte")
	}
	return nil
}

// validateBinary checks the second length that subtype 2 carries.
func validateBinary(b []byte) error {
	if b[4] != bson.TypeBinaryBinaryOld {
		return nil
	}
	if len(b) < 9 || int(int32(binary.LittleEndian.Uint32(b[5:]))) != len(b)-9 {
		return errors.New("binary of subtype 2 has a wrong inner length")
	}
	return nil
}

func validateScopedCode(b []byte, depth int) error {
	_, scope := scopedCodeParts(b)
	if len(scope) < 5 || int(int32(binary.LittleEndian.Uint32(scope))) != len(scope) {
		return errors.New("code with scope has lengths that do not agree")
	}
	if err := validateText(b[8 : len(b)-len(scope)]); err != nil {
		return err
	}
	return validateDocument(scope, depth-1)
}

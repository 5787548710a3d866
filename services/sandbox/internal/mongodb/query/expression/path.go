package expression

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// fieldPath is "$a.b", without the dollar.
func fieldPath(path string) (operand, error) {
	if path == "" {
		return operand{}, mongoerr.New(16872, "'$' by itself is not a valid FieldPath")
	}
	parts, err := splitPath(path)
	if err != nil {
		return operand{}, err
	}
	return operand{eval: func(s *scope) (bson.RawValue, error) { return follow(s, s.current, parts), nil }}, nil
}

func splitPath(path string) ([]string, error) {
	if strings.HasSuffix(path, ".") {
		return nil, mongoerr.New(40353, "FieldPath must not end with a '.'.")
	}
	parts := strings.Split(path, ".")
	for _, part := range parts {
		switch {
		case part == "":
			return nil, mongoerr.New(15998, "FieldPath field names may not be empty strings.")
		case part[0] == '$':
			return nil, mongoerr.New(16410, "FieldPath field names may not start with '$'.")
		case strings.IndexByte(part, 0) >= 0:
			return nil, mongoerr.New(16411, "FieldPath field names may not contain '\\0'.")
		}
	}
	return parts, nil
}

// follow goes down a path. Through an array it gives the array of what the path
// leads to in each element that is a document. Numbers are names like others.
func follow(s *scope, doc []byte, parts []string) bson.RawValue {
	v, _ := bsonkit.Get(doc, parts[0])
	if len(parts) == 1 {
		return v
	}
	return followValue(s, v, parts[1:])
}

func followValue(s *scope, v bson.RawValue, parts []string) bson.RawValue {
	switch {
	case len(parts) == 0:
		return v
	case v.Type == bson.TypeEmbeddedDocument:
		return follow(s, v.Value, parts)
	case v.Type != bson.TypeArray:
		return bson.RawValue{}
	}
	var found []bson.RawValue
	for it := s.walk(v); it.Next(); {
		if it.Value().Type != bson.TypeEmbeddedDocument {
			continue
		}
		if w := follow(s, it.Value().Value, parts); w.Type != bsonkit.Missing {
			found = append(found, w)
		}
	}
	return bsonkit.Array(found)
}

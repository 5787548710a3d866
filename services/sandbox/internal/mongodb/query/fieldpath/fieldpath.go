// Package fieldpath has the rules for dotted names of fields that sorts,
// projections, updates and stages share.
package fieldpath

import (
	"strings"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Check refuses paths that no document can have, as sorts,
// projections and stages do.
func Check(path string) error {
	switch {
	case path == "":
		return mongoerr.New(40352, "FieldPath cannot be constructed with empty string")
	case strings.HasSuffix(path, "."):
		return mongoerr.New(40353, "FieldPath must not end with a '.'.")
	}
	for part := range strings.SplitSeq(path, ".") {
		switch {
		case part == "":
			return mongoerr.New(15998, "FieldPath field names may not be empty strings.")
		case part[0] == '$':
			return mongoerr.New(16410, "FieldPath field names may not start with '$'.")
		case strings.ContainsRune(part, 0):
			return mongoerr.New(16411, "FieldPath field names may not contain '\\0'.")
		}
	}
	return nil
}

// Join appends a part to a path, which may be empty.
func Join(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}

package query

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/fieldpath"
)

// unwinding makes a document for every element of an array.
type unwinding struct {
	path  []string
	index []string // where to put the element's index, if anywhere
	keep  bool     // documents without elements stay
}

func unwindStage(v bson.RawValue) (stage, error) {
	u := unwinding{}
	var path string
	switch v.Type {
	case bson.TypeString:
		path = v.StringValue()
	case bson.TypeEmbeddedDocument:
		var err error
		if path, err = u.options(v.Value); err != nil {
			return stage{}, err
		}
	default:
		return stage{}, mongoerr.New(15981, "expected either a string or an object as specification for $unwind stage, got %s", bsonkit.TypeName(v.Type))
	}
	if path == "" {
		return stage{}, mongoerr.New(28812, "no path specified to $unwind stage")
	}
	field, ok := strings.CutPrefix(path, "$")
	if !ok {
		return stage{}, mongoerr.New(28818, "path option to $unwind stage should be prefixed with a '$': %s", path)
	}
	if err := fieldpath.Check(field); err != nil {
		return stage{}, err
	}
	u.path = strings.Split(field, ".")
	return stage{run: u.run}, nil
}

func (u *unwinding) options(spec bson.Raw) (path string, err error) {
	for it := bsonkit.Iterate(spec); it.Next(); {
		v := it.Value()
		switch string(it.Key()) {
		case "path":
			s, ok := v.StringValueOK()
			if !ok {
				return "", mongoerr.New(28808, "expected a string as the path for $unwind stage, got %s", bsonkit.TypeName(v.Type))
			}
			path = s
		case "preserveNullAndEmptyArrays":
			if v.Type != bson.TypeBoolean {
				return "", mongoerr.New(28809, "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got %s", bsonkit.TypeName(v.Type))
			}
			u.keep = v.Boolean()
		case "includeArrayIndex":
			s, ok := v.StringValueOK()
			if !ok || s == "" {
				return "", mongoerr.New(28810, "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got %s", bsonkit.TypeName(v.Type))
			}
			if s[0] == '$' {
				return "", mongoerr.New(28822, "includeArrayIndex option to $unwind stage should not be prefixed with a '$': %s", s)
			}
			u.index = strings.Split(s, ".")
		default:
			return "", mongoerr.New(28811, "unrecognized option to $unwind stage: %s", it.Key())
		}
	}
	return path, nil
}

func (u unwinding) run(_ context.Context, in documents) documents {
	return func(yield func(bson.Raw, error) bool) {
		for doc, err := range in {
			if err != nil {
				yield(nil, err)
				return
			}
			if !u.document(doc, yield) {
				return
			}
		}
	}
}

func (u unwinding) document(doc bson.Raw, yield func(bson.Raw, error) bool) bool {
	v, _ := bsonkit.Lookup(doc, strings.Join(u.path, "."))
	if v.Type != bson.TypeArray {
		none := v.Type == bsonkit.Missing || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined
		return none && !u.keep || yield(u.with(doc, v, bsonkit.Null()), nil)
	}
	i := int64(0)
	for it := bsonkit.Iterate(v.Value); it.Next(); i++ {
		if !yield(u.with(doc, it.Value(), bsonkit.Int64(i)), nil) {
			return false
		}
	}
	if i == 0 && u.keep {
		return yield(u.with(doc, bson.RawValue{}, bsonkit.Null()), nil)
	}
	return true
}

// with puts the element, which may be missing, in the place of the array.
func (u unwinding) with(doc bson.Raw, element, index bson.RawValue) bson.Raw {
	root := bsonkit.NewNode(bsonkit.Document(doc))
	put(root, u.path, element)
	if u.index != nil {
		put(root, u.index, index)
	}
	return root.Bytes()
}

// put sets or removes a field in documents, without looking into arrays.
func put(node *bsonkit.Node, path []string, v bson.RawValue) {
	for n, part := range path {
		i := node.Find(part)
		last := n == len(path)-1
		switch {
		case i < 0 && v.Type == bsonkit.Missing:
			return
		case i < 0:
			node.Append(part, bsonkit.Nest(path[n+1:], v))
			return
		case last && v.Type == bsonkit.Missing:
			node.Remove(i)
			return
		case last:
			node.At(i).Set(v)
			return
		case node.At(i).Type() != bson.TypeEmbeddedDocument:
			node.At(i).Set(bsonkit.Nest(path[n+1:], v))
			return
		}
		node = node.At(i)
	}
}

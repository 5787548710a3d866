package modify

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// operatorUpdate is an update by operators, in the order in which they are
// applied: that of their paths.
type operatorUpdate struct {
	changes []pathChange
	filters map[string]*match.Filter // arrayFilters by their name
	// positional says that a path has the $ of the matched element.
	positional bool
	// several says that a path can mean several elements.
	several bool
	// nulls tells a change stream of an element that is unset as set to null.
	nulls bool
	// interrupted, if not nil, is asked between elements; an error ends the update.
	interrupted func() error
}

// pathChange is what an operator does at a path.
type pathChange struct {
	parts []string
	path  string
	do    mutation
	// onInsert limits the change to upserts that insert.
	onInsert bool
	// from is the source of a $rename, whose path is the target.
	from []string
}

func compileOperators(spec bson.Raw, o Options) (*operatorUpdate, error) {
	filters, err := compileArrayFilters(o)
	if err != nil {
		return nil, err
	}
	u := &operatorUpdate{
		filters: filters, interrupted: o.Env.Interrupted, nulls: o.SinceFive, changes: make([]pathChange, 0, fieldsIn(spec)),
	}
	for it := bsonkit.Iterate(spec); it.Next(); {
		if err := u.operator(string(it.Key()), it.Value(), o); err != nil {
			return nil, err
		}
	}
	if err := u.checkPaths(spec); err != nil {
		return nil, err
	}
	slices.SortStableFunc(u.changes, func(a, b pathChange) int { return slices.Compare(a.parts, b.parts) })
	return u, nil
}

// fieldsIn counts the fields of all operators.
func fieldsIn(spec bson.Raw) (n int) {
	for it := bsonkit.Iterate(spec); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeEmbeddedDocument {
			for fields := bsonkit.Iterate(v.Value); fields.Next(); n++ {
			}
		}
	}
	return n
}

// operator reads one operator with its fields.
func (u *operatorUpdate) operator(name string, v bson.RawValue, o Options) error {
	maker, ok := mutationMaker(name)
	if !ok {
		return mongoerr.New(mongoerr.FailedToParse,
			"Unknown modifier: %s. Expected a valid update modifier or pipeline-style update specified as an array", name)
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return mongoerr.New(mongoerr.FailedToParse,
			"Modifiers operate on fields but we found type %s instead. For example: {$mod: {<field>: ...}} not {%s: %s}",
			bsonkit.TypeName(v.Type), name, bsonkit.Describe(v))
	}
	empty := true
	for it := bsonkit.Iterate(v.Value); it.Next(); empty = false {
		c, err := newPathChange(string(it.Key()))
		if err != nil {
			return err
		}
		if name == "$rename" {
			if c, err = renameChange(c, it.Value()); err != nil {
				return err
			}
		} else if c.do, err = maker(c.path, it.Value(), o.Env); err != nil {
			return err
		}
		c.onInsert = name == "$setOnInsert"
		u.changes = append(u.changes, c)
	}
	if empty && !o.SinceFive {
		return mongoerr.New(mongoerr.FailedToParse,
			"'%s' is empty. You must specify a field like so: {%s: {<field>: ...}}", name, name)
	}
	return nil
}

// newPathChange refuses a path that no document is deep enough for. Walking one
// takes time by the square of its parts.
func newPathChange(path string) (pathChange, error) {
	if path == "" {
		return pathChange{}, mongoerr.New(mongoerr.EmptyFieldName, "An empty update path is not valid.")
	}
	if strings.Count(path, ".") >= MaxStoredDepth {
		return pathChange{}, tooDeep()
	}
	c := pathChange{path: path, parts: strings.Split(path, ".")}
	positional := 0
	for i, part := range c.parts {
		switch {
		case part == "":
			return c, mongoerr.New(mongoerr.EmptyFieldName,
				"The update path '%s' contains an empty field name, which is not allowed.", path)
		case i == 0 && isReferenceField(part):
			return c, mongoerr.New(mongoerr.InvalidDBRef, "Found %s field without the fields of a reference before it, which is invalid.", part)
		case part[0] != '$' || isReferenceField(part):
			continue
		case part != "$" && !isArrayPart(part):
			return c, mongoerr.New(mongoerr.DollarPrefixedFieldName,
				"The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", part, path)
		case i == 0:
			return c, mongoerr.New(mongoerr.BadValue,
				"Cannot have positional (i.e. '$') element in the first position in path '%s'", path)
		case part == "$":
			positional++
		}
	}
	if positional > 1 {
		return c, mongoerr.New(mongoerr.BadValue,
			"Too many positional (i.e. '$') elements found in path '%s'", path)
	}
	return c, nil
}

// isArrayPart has $[] and $[name].
func isArrayPart(part string) bool {
	return strings.HasPrefix(part, "$[") && strings.HasSuffix(part, "]")
}

func arrayPartName(part string) string { return part[2 : len(part)-1] }

func renameChange(c pathChange, v bson.RawValue) (pathChange, error) {
	if v.Type != bson.TypeString {
		return c, mongoerr.New(mongoerr.BadValue, "The 'to' field for $rename must be a string: %s: %s", c.path, bsonkit.Describe(v))
	}
	if strings.ContainsRune(v.StringValue(), 0) {
		return c, mongoerr.New(mongoerr.BadValue, "The 'to' field for $rename cannot contain an embedded null byte: %s: %s", c.path, bsonkit.Describe(v))
	}
	to, err := newPathChange(v.StringValue())
	if err != nil {
		return c, err
	}
	if to.path == c.path {
		return c, mongoerr.New(mongoerr.BadValue, "The source and target field for $rename must differ: %s: %q", c.path, to.path)
	}
	isDynamic := func(part string) bool { return strings.HasPrefix(part, "$") }
	if slices.ContainsFunc(c.parts, isDynamic) {
		return c, mongoerr.New(mongoerr.BadValue, "The source field for $rename may not be dynamic: %s", c.path)
	}
	if slices.ContainsFunc(to.parts, isDynamic) {
		return c, mongoerr.New(mongoerr.BadValue, "The destination field for $rename may not be dynamic: %s", to.path)
	}
	to.from = c.parts
	return to, nil
}

// checkPaths refuses paths that lie within each other, and array filters that
// are missing or idle.
func (u *operatorUpdate) checkPaths(spec bson.Raw) error {
	paths := make([][]string, 0, len(u.changes))
	used := map[string]bool{}
	for _, c := range u.changes {
		paths = append(paths, c.parts)
		if c.from != nil {
			paths = append(paths, c.from)
		}
		for _, part := range c.parts {
			switch {
			case part == "$":
				u.positional = true
			case isArrayPart(part):
				u.several = true
				name := arrayPartName(part)
				if name != "" && u.filters[name] == nil {
					return mongoerr.New(mongoerr.BadValue, "No array filter found for identifier '%s' in path '%s'", name, c.path)
				}
				used[name] = true
			}
		}
	}
	for name := range u.filters {
		if !used[name] {
			return mongoerr.New(mongoerr.FailedToParse, "The array filter for identifier '%s' was not used in the update %s",
				name, bsonkit.Describe(bsonkit.Document(spec)))
		}
	}
	return checkConflicts(paths)
}

// checkConflicts finds a path that is the same as, or leads through, another.
// In sorted order such two have only others of the kind between them.
func checkConflicts(paths [][]string) error {
	slices.SortFunc(paths, slices.Compare)
	for i := 1; i < len(paths); i++ {
		a, b := paths[i-1], paths[i]
		if len(a) <= len(b) && slices.Equal(a, b[:len(a)]) {
			return conflict(strings.Join(b, "."), strings.Join(a, "."))
		}
	}
	return nil
}

func conflict(path, at string) error {
	return mongoerr.New(mongoerr.ConflictingUpdateOperators, "Updating the path '%s' would create a conflict at '%s'", path, at)
}

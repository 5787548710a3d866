package modify

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/fieldpath"
)

// maxPadding is how many nulls an update may put before a new element.
const maxPadding = 1_500_000

// maxWalked bounds the paths that $[] and $[name] stand for, each with all its
// parts. A document's own are seldom longer than itself.
const maxWalked = 100 << 20

// walk goes down from node along parts and applies do where they lead. done is
// the path to node.
func (a *application) walk(node *bsonkit.Node, parts []string, done string, do mutation) error {
	for {
		part := parts[0]
		if isArrayPart(part) {
			return a.each(node, part, parts[1:], done, do)
		}
		i := node.Find(part)
		if i < 0 {
			return a.create(node, part, parts[1:], done, do)
		}
		path := fieldpath.Join(done, part)
		if len(parts) == 1 {
			return a.change(node, i, path, do)
		}
		child := node.At(i)
		if !child.IsContainer() {
			return notViable(child.Value(), part, parts[1], do)
		}
		node, parts, done = child, parts[1:], path
	}
}

// each applies the rest of a path to the elements that $[] or $[name] means.
func (a *application) each(node *bsonkit.Node, part string, rest []string, done string, do mutation) error {
	if node.Type() != bson.TypeArray {
		return notArray(done, node.Value())
	}
	outermost := !a.inside
	array := a.array(done)
	defer func() { a.inside = !outermost }()
	before := a.changed
	defer func() { a.changed = a.changed || before }()
	for i := range node.Len() {
		if a.interrupted != nil {
			if err := a.interrupted(); err != nil {
				return err
			}
		}
		a.changed, a.inside = false, true
		ok, err := a.matchesElement(arrayPartName(part), node.At(i).Value())
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		path := fieldpath.Join(done, strconv.Itoa(i))
		switch {
		case len(rest) == 0:
			err = a.change(node, i, path, do)
		case node.At(i).IsContainer():
			err = a.walk(node.At(i), rest, path, do)
		default:
			err = notViable(node.At(i).Value(), strconv.Itoa(i), rest[0], do)
		}
		if err != nil {
			return err
		}
		if a.changed {
			array.changed[i], before = true, true
		}
	}
	return nil
}

// array is what is noted of an array whose elements are changed. Nothing is
// said of one inside an element: the element is reported.
func (a *application) array(path string) *changedArray {
	for _, known := range a.arrays {
		if known.path == path {
			return known
		}
	}
	array := &changedArray{path: path, changed: map[int]bool{}}
	if !a.inside {
		a.arrays = append(a.arrays, array)
	}
	return array
}

// logArrays writes what a change stream says of arrays whose elements were
// changed by $[] and $[name]. They are looked up again: their nodes move when a
// field before them is removed.
func (a *application) logArrays() {
	for _, array := range a.arrays {
		if a.updated == nil || len(array.changed) == 0 {
			continue
		}
		node := a.root
		for part := range strings.SplitSeq(array.path, ".") {
			node = node.At(node.Find(part))
		}
		if len(array.changed) > 1 {
			a.tellSet(array.path, node.Value())
			continue
		}
		for i := range array.changed {
			a.tellSet(fieldpath.Join(array.path, strconv.Itoa(i)), node.At(i).Value())
		}
	}
}

// change applies a mutation to a value that is there.
func (a *application) change(parent *bsonkit.Node, i int, path string, do mutation) error {
	if err := a.touch(path); err != nil {
		return err
	}
	child := parent.At(i)
	out, err := do.apply(child.Value(), place{path, a.root})
	if err != nil || out.kind == unchanged {
		return err
	}
	a.changed = true
	if out.kind == removed {
		a.remove(parent, i, path)
		return nil
	}
	if err := a.place(out.value, path); err != nil {
		return err
	}
	child.Set(out.value)
	a.log(path, out)
	return nil
}

// place checks a value that goes to path. All that are set stay in the document,
// so their sum is no larger than that may be.
func (a *application) place(v bson.RawValue, path string) error {
	if a.placed += len(v.Value); a.placed > bsonkit.MaxDocument {
		return tooLarge(a.inserting)
	}
	return checkStorableValue(v, path)
}

// remove takes a field away. An element of an array becomes null, which a change
// stream tells as removed, and from 5.0 on as set to null (the server's
// UnsetNode::logUpdate).
func (a *application) remove(parent *bsonkit.Node, i int, path string) {
	element := parent.Type() == bson.TypeArray
	if element {
		parent.At(i).Set(bsonkit.Null())
	} else {
		parent.Remove(i)
	}
	switch {
	case element && a.nulls:
		a.log(path, outcome{value: bsonkit.Null()})
	case !a.inside && a.tells(len(path)):
		a.removed = append(a.removed, path)
	}
}

// create applies a mutation to a path that ends before its last part, and makes
// the documents on the way to a new value.
func (a *application) create(node *bsonkit.Node, part string, rest []string, done string, do mutation) error {
	path := fieldpath.Join(done, strings.Join(append([]string{part}, rest...), "."))
	if err := a.touch(path); err != nil {
		return err
	}
	if node.Type() == bson.TypeArray && !bsonkit.IsIndex(part) {
		return notViable(node.Value(), done[strings.LastIndexByte(done, '.')+1:], part, do)
	}
	if i := slices.IndexFunc(rest, isArrayPart); i >= 0 {
		return mongoerr.New(mongoerr.BadValue, "The path '%s' must exist in the document in order to apply array updates.",
			fieldpath.Join(done, strings.Join(append([]string{part}, rest[:i]...), ".")))
	}
	out, err := do.apply(bson.RawValue{}, place{path, a.root})
	if err != nil || out.kind != set {
		return err
	}
	if err := a.place(out.value, path); err != nil {
		return err
	}
	if strings.Count(path, ".") >= MaxStoredDepth {
		return tooDeep()
	}
	if err := pad(node, part); err != nil {
		return err
	}
	node.Append(part, bsonkit.Nest(rest, out.value))
	a.changed = true
	out.appended = 0
	a.log(path, out)
	return nil
}

// notViable says that value, found under name, cannot have a field.
func notViable(value bson.RawValue, name, field string, do mutation) error {
	if isArrayPart(field) {
		return notArray(name, value)
	}
	if !do.demands() {
		return nil
	}
	return mongoerr.New(mongoerr.PathNotViable, "Cannot create field '%s' in element {%s: %s}", field, name, bsonkit.Describe(value))
}

func notArray(name string, value bson.RawValue) error {
	return mongoerr.New(mongoerr.BadValue, "Cannot apply array updates to non-array element %s: %s", name, bsonkit.Describe(value))
}

// pad fills an array with nulls up to the new element.
func pad(node *bsonkit.Node, part string) error {
	if node.Type() != bson.TypeArray {
		return nil
	}
	index, _ := strconv.Atoi(part)
	if index-node.Len() > maxPadding {
		return mongoerr.New(mongoerr.CannotBackfillArray, "can't backfill more than %d elements", maxPadding)
	}
	for node.Len() < index {
		node.Append("", bsonkit.Null())
	}
	return nil
}

// log writes what a change stream says of the change, if anybody asks.
func (a *application) log(path string, out outcome) {
	if a.updated == nil || a.inside {
		return
	}
	if out.appended == 0 {
		a.tellSet(path, out.value)
		return
	}
	elements := bsonkit.Values(out.value)
	for i := len(elements) - out.appended; i < len(elements) && a.told <= maxTold; i++ {
		a.tellSet(fieldpath.Join(path, strconv.Itoa(i)), elements[i])
	}
}

// tellSet tells of a path that it was set.
func (a *application) tellSet(path string, v bson.RawValue) {
	if a.tells(len(path)) {
		a.updated.Append(path, v)
	}
}

// touch finds conflicts that show only when $[] and $[name] have been resolved.
func (a *application) touch(path string) error {
	if !a.several {
		return nil
	}
	if a.walked += len(path); a.walked > maxWalked {
		return mongoerr.New(mongoerr.ExceededMemoryLimit, "The paths of an update are longer than %d bytes together", maxWalked)
	}
	clash := func(at string) error {
		return mongoerr.New(mongoerr.ConflictingUpdateOperators, "Update created a conflict at '%s'", at)
	}
	if _, known := a.touched[path]; known {
		return clash(path)
	}
	if a.touched == nil {
		a.touched = map[string]bool{}
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if a.touched[path[:i]] {
			return clash(path[:i])
		}
		a.touched[path[:i]] = false
	}
	a.touched[path] = true
	return nil
}

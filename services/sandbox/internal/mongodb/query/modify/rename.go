package modify

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// rename moves a value. Without one it does nothing.
func (a *application) rename(c *pathChange) error {
	parent, i, err := a.renameTarget(c.from, "source")
	if err != nil || i < 0 {
		return err
	}
	if _, _, err := a.renameTarget(c.parts, "destination"); err != nil {
		return err
	}
	v := parent.At(i).Value()
	if err := a.walk(a.root, c.parts, "", setTo{v}); err != nil {
		return err
	}
	return a.walk(a.root, c.from, "", unset{})
}

// renameTarget finds the field at a path, -1 where there is none, and refuses
// arrays on the way.
func (a *application) renameTarget(parts []string, role string) (*bsonkit.Node, int, error) {
	node := a.root
	for n, part := range parts {
		if node.Type() == bson.TypeArray {
			return nil, -1, mongoerr.New(mongoerr.BadValue,
				"The %s field cannot be an array element, '%s' in doc with %s has an array field called '%s'",
				role, strings.Join(parts, "."), describeID(a.root), parts[n-1])
		}
		i := node.Find(part)
		if n == len(parts)-1 {
			return node, i, nil
		}
		if i < 0 {
			return nil, -1, nil
		}
		if !node.At(i).IsContainer() {
			return nil, -1, mongoerr.New(mongoerr.PathNotViable, "cannot use the part (%s of %s) to traverse the element ({%s: %s})",
				parts[n+1], strings.Join(parts, "."), part, bsonkit.Describe(node.At(i).Value()))
		}
		node = node.At(i)
	}
	return nil, -1, nil
}

// describeID names a document for an error text.
func describeID(doc *bsonkit.Node) string {
	i := doc.Find("_id")
	if i < 0 {
		return "no _id"
	}
	return "_id: " + bsonkit.Describe(doc.At(i).Value())
}

package bsonkit_test

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

func TestTree_NodeEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(root *bsonkit.Node)
		want string
	}{
		{"nothing", func(*bsonkit.Node) {}, `{"a":1,"b":{"c":[1,2]}}`},
		{"a field is set in its place", func(n *bsonkit.Node) { n.At(n.Find("a")).Set(bsonkit.String("x")) }, `{"a":"x","b":{"c":[1,2]}}`},
		{"a field is added behind", func(n *bsonkit.Node) { n.Append("z", bsonkit.Null()) }, `{"a":1,"b":{"c":[1,2]},"z":null}`},
		{"a field is removed", func(n *bsonkit.Node) { n.Remove(n.Find("a")) }, `{"b":{"c":[1,2]}}`},
		{"an inner array grows", func(n *bsonkit.Node) { n.At(1).At(0).Append("ignored", bsonkit.Int32(3)) }, `{"a":1,"b":{"c":[1,2,3]}}`},
		{"an inner array shrinks", func(n *bsonkit.Node) { n.At(1).At(0).Remove(0) }, `{"a":1,"b":{"c":[2]}}`},
		{"what was opened is replaced", func(n *bsonkit.Node) {
			n.At(1).Append("d", bsonkit.Int32(1))
			n.At(1).Set(bsonkit.Int32(7))
		}, `{"a":1,"b":7}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc := document(t, `{"a":1,"b":{"c":[1,2]}}`)
			before := bytes.Clone(doc)
			root := bsonkit.NewNode(bsonkit.Document(doc))
			c.edit(root)
			if got, want := bson.Raw(root.Bytes()), document(t, c.want); !bytes.Equal(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
			if !bytes.Equal(doc, before) {
				t.Error("the edit changed the original")
			}
		})
	}
}

func TestTree_NodeFindsByNameOrIndex(t *testing.T) {
	t.Parallel()
	root := bsonkit.NewNode(bsonkit.Document(document(t, `{"0":"x","a":[5,6],"s":1}`)))
	for _, c := range []struct {
		node *bsonkit.Node
		part string
		want int
	}{
		{root, "0", 0},
		{root, "a", 1},
		{root, "1", -1},
		{root.At(1), "1", 1},
		{root.At(1), "2", -1},
		{root.At(1), "01", -1},
		{root.At(1), "a", -1},
		{root.At(2), "0", -1},
	} {
		if got := c.node.Find(c.part); got != c.want {
			t.Errorf("%q in %v: got %d, want %d", c.part, c.node.Type(), got, c.want)
		}
	}
}

func TestTree_NodeTakenApartIsTheSameAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := bsonkit.NewBuilder(nil)
		b.Append("v", anyValue().Draw(t, "value"))
		doc := bson.Raw(b.Finish())
		root := bsonkit.NewNode(bsonkit.Document(doc))
		open(root)
		if got := root.Bytes(); !bytes.Equal(got, doc) {
			t.Fatalf("got %x, want %x", got, doc)
		}
	})
}

func open(n *bsonkit.Node) {
	for i := range n.Len() {
		open(n.At(i))
	}
}

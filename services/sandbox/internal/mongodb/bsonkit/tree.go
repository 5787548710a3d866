package bsonkit

import (
	"encoding/binary"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Node is a value being edited. A document or array is taken apart only where
// somebody steps into it; everything else stays the bytes it was.
//
// A *Node taken from a parent is good until a child is added to or removed
// from that parent. A Node is for one goroutine.
type Node struct {
	key   []byte
	value bson.RawValue
	// open says that kids hold the content and value.Value is out of date.
	open bool
	kids []Node
}

// NewNode makes a node of a value, nobody's child.
func NewNode(v bson.RawValue) *Node { return &Node{value: v} }

// Type is the type of the value.
func (n *Node) Type() bson.Type { return n.value.Type }

// Set gives the node another value. It keeps its name and place.
func (n *Node) Set(v bson.RawValue) {
	n.value, n.open, n.kids = v, false, nil
}

// Value is the node's value in its present state.
func (n *Node) Value() bson.RawValue {
	if !n.open {
		return n.value
	}
	return bson.RawValue{Type: n.value.Type, Value: n.appendContent(nil)}
}

// Bytes is the present state of a document or array.
func (n *Node) Bytes() []byte {
	if !n.open {
		return n.value.Value
	}
	return n.appendContent(make([]byte, 0, len(n.value.Value)+64))
}

// Len is the number of children.
func (n *Node) Len() int {
	n.unfold()
	return len(n.kids)
}

// At is the i-th child.
func (n *Node) At(i int) *Node {
	n.unfold()
	return &n.kids[i]
}

// Find gives the index of the child that a path component names: a document's
// field by name, an array's element by index. It is -1 where there is none.
func (n *Node) Find(part string) int {
	n.unfold()
	if n.value.Type == bson.TypeArray {
		if i, ok := arrayIndex(part); ok && i < len(n.kids) {
			return i
		}
		return -1
	}
	for i := range n.kids {
		if string(n.kids[i].key) == part {
			return i
		}
	}
	return -1
}

// Append adds a child at the end. In an array the key does not matter.
func (n *Node) Append(key string, v bson.RawValue) *Node {
	n.unfold()
	n.kids = append(n.kids, Node{key: []byte(key), value: v})
	return &n.kids[len(n.kids)-1]
}

// Remove takes the i-th child away.
func (n *Node) Remove(i int) {
	n.unfold()
	n.kids = append(n.kids[:i], n.kids[i+1:]...)
}

// IsContainer reports whether the node can have children.
func (n *Node) IsContainer() bool {
	return n.value.Type == bson.TypeEmbeddedDocument || n.value.Type == bson.TypeArray
}

// unfold takes the content apart. What is no document or array has none.
func (n *Node) unfold() {
	if n.open || !n.IsContainer() {
		return
	}
	n.open = true
	count := 0
	for it := Iterate(n.value.Value); it.Next(); {
		count++
	}
	n.kids = make([]Node, 0, count+1)
	for it := Iterate(n.value.Value); it.Next(); {
		n.kids = append(n.kids, Node{key: it.key, value: it.value})
	}
}

func (n *Node) appendContent(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i := range n.kids {
		if len(dst)-start > MaxBuilt {
			break
		}
		kid := &n.kids[i]
		dst = append(dst, byte(kid.value.Type))
		if n.value.Type == bson.TypeArray {
			dst = strconv.AppendInt(dst, int64(i), 10)
		} else {
			dst = append(dst, kid.key...)
		}
		dst = append(dst, 0)
		if kid.open {
			dst = kid.appendContent(dst)
		} else {
			dst = append(dst, kid.value.Value...)
		}
	}
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

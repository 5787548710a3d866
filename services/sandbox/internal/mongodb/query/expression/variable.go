package expression

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// What $redact's expressions evaluate to.
const (
	Descend = "descend"
	Prune   = "prune"
	Keep    = "keep"
)

// variable is "$$name.path", without the dollars.
func (c *compiler) variable(text string) (operand, error) {
	name, path, dotted := strings.Cut(text, ".")
	if err := checkRead(name); err != nil {
		return operand{}, err
	}
	base, err := c.lookup(name)
	if err != nil || !dotted {
		return base, err
	}
	parts, err := splitPath(path)
	if err != nil {
		return operand{}, err
	}
	return c.folded([]operand{base}, func(s *scope) (bson.RawValue, error) {
		v, err := base.in(s)
		return followValue(s, v, parts), err
	}), nil
}

func (c *compiler) lookup(name string) (operand, error) {
	for _, b := range slices.Backward(c.bound) {
		if b.name == name {
			slot := b.slot
			return operand{eval: func(s *scope) (bson.RawValue, error) { return s.slots[slot], nil }}, nil
		}
	}
	for _, variables := range c.env.Let {
		if v, ok := bsonkit.Get(variables, name); ok {
			if v.Type == bson.TypeUndefined {
				v = bson.RawValue{}
			}
			return constant(v), nil
		}
	}
	return c.system(name)
}

func (c *compiler) system(name string) (operand, error) {
	switch name {
	case "ROOT":
		c.reads = true
		return operand{eval: func(s *scope) (bson.RawValue, error) { return bsonkit.Document(s.root), nil }}, nil
	case "CURRENT":
		c.reads = true
		return operand{eval: func(s *scope) (bson.RawValue, error) { return bsonkit.Document(s.current), nil }}, nil
	case "REMOVE":
		return constant(bson.RawValue{}), nil
	case "NOW":
		return constant(bsonkit.Date(c.env.Now)), nil
	case "CLUSTER_TIME":
		return constant(bsonkit.Timestamp(c.env.ClusterTime)), nil
	case "DESCEND", "PRUNE", "KEEP":
		if c.redact {
			return constant(bsonkit.String(strings.ToLower(name))), nil
		}
	}
	return operand{}, mongoerr.New(17276, "Use of undefined variable: %s", name)
}

// bind brings a variable into scope until the returned function is called.
func (c *compiler) bind(name string) (slot int, unbind func()) {
	slot = c.slots
	c.slots++
	c.bound = append(c.bound, binding{name, slot})
	return slot, func() { c.bound = c.bound[:len(c.bound)-1] }
}

// checkRead refuses what is the name of no variable at all, whoever defines it.
func checkRead(name string) error {
	if name == "" {
		return mongoerr.New(16869, "empty variable names are not allowed")
	}
	for i := range len(name) {
		ch := name[i]
		start := ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= 0x80
		rest := ch >= '0' && ch <= '9' || ch == '_'
		switch {
		case i == 0 && !start:
			return mongoerr.New(16870, "'%s' starts with an invalid character for a variable name", name)
		case !start && !rest:
			return mongoerr.New(16871, "'%s' contains an invalid character for a variable name: '%c'", name, ch)
		}
	}
	return nil
}

// CheckVariable allows users' names: a lower case letter or something
// beyond ASCII, then also capitals, digits and underscores.
func CheckVariable(name string) error {
	if name == "" {
		return mongoerr.New(16866, "empty variable names are not allowed")
	}
	for i := range len(name) {
		ch := name[i]
		start := ch >= 'a' && ch <= 'z' || ch >= 0x80
		rest := ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || ch == '_'
		switch {
		case i == 0 && !start && name != "CURRENT":
			return mongoerr.New(16867, "'%s' starts with an invalid character for a user variable name", name)
		case !start && !rest:
			return mongoerr.New(16868, "'%s' contains an invalid character for a variable name: '%c'", name, ch)
		}
	}
	return nil
}

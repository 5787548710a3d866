package mapping

import (
	"fmt"
	"strings"
)

// masked is what stands for a masked value as a JSON text, maskedText the text itself.
const (
	masked     = `"` + maskedText + `"`
	maskedText = "***"
)

// Hidden says which fields of source documents do not leave the source as they
// are. A nil Hidden hides none.
type Hidden struct{ rules *rule }

// NewHidden returns which fields are left out and which are masked, by their
// paths in the source document. A path goes through arrays into each of their
// documents. It returns an error for a path that is none, and for one that
// another makes pointless.
func NewHidden(drop, mask []string) (*Hidden, error) {
	h := &Hidden{rules: &rule{}}
	for _, path := range drop {
		if err := h.rules.add(path, dropped); err != nil {
			return nil, err
		}
	}
	for _, path := range mask {
		if err := h.rules.add(path, replaced); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *Hidden) root() *rule {
	if h == nil || len(h.rules.fields) == 0 {
		return nil
	}
	return h.rules
}

type verdict int

const (
	shown verdict = iota
	dropped
	replaced
)

// rule is what becomes of one value. A nil rule shows it all.
type rule struct {
	verdict verdict
	fields  map[string]*rule
}

func (r *rule) add(path string, v verdict) error {
	for name := range strings.SplitSeq(path, ".") {
		if name == "" {
			return fmt.Errorf("%q is not a path of field names with dots between them", path)
		}
		if r.verdict != shown {
			return fmt.Errorf("%q lies within a path that is hidden already", path)
		}
		next := r.fields[name]
		if next == nil {
			next = &rule{}
			if r.fields == nil {
				r.fields = map[string]*rule{}
			}
			r.fields[name] = next
		}
		r = next
	}
	if r.verdict != shown || r.fields != nil {
		return fmt.Errorf("%q is hidden twice, as a whole or in part", path)
	}
	r.verdict = v
	return nil
}

func (r *rule) drops() bool { return r != nil && r.verdict == dropped }

func (r *rule) masks() bool { return r != nil && r.verdict == replaced }

// field is the rule of a document's field.
func (r *rule) field(name []byte) *rule {
	if r == nil {
		return nil
	}
	return r.fields[string(name)]
}

// under is the rule of the value at a path; what is hidden stays hidden below.
func (r *rule) under(path []string) *rule {
	for _, name := range path {
		if r == nil || r.verdict != shown {
			return r
		}
		r = r.fields[name]
	}
	return r
}

// underDotted is under for a path as the server writes it in the description of
// an update, where the numbers of array elements are names, too.
func (r *rule) underDotted(path string) *rule {
	for name := range strings.SplitSeq(path, ".") {
		if r == nil || r.verdict != shown {
			return r
		}
		next, named := r.fields[name]
		if !named && numeral(name) {
			continue
		}
		r = next
	}
	return r
}

func numeral(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" }

// Package collation says how text compares in a language: which texts are the
// same, and which comes first
// (https://www.mongodb.com/docs/v4.4/reference/collation/).
//
// A value is compared by its folded form, in which every text is replaced by a
// key: texts that are the same have the same key, and keys sort as the texts
// do. The rules of the languages are those of the Unicode CLDR as
// golang.org/x/text has them.
package collation

import (
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"golang.org/x/text/collate"
	"golang.org/x/text/language"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Collation is how text compares. A nil Collation compares bytes, as the simple
// collation does. It may be used by several goroutines.
type Collation struct {
	spec bson.Raw

	mu       sync.Mutex // guards what follows
	collator *collate.Collator
	buffer   collate.Buffer
}

// settings are the fields of a specification with their defaults, in the order
// in which the server lists them.
type settings struct {
	Locale          string `bson:"locale"`
	CaseLevel       bool   `bson:"caseLevel"`
	CaseFirst       string `bson:"caseFirst"`
	Strength        int32  `bson:"strength"`
	NumericOrdering bool   `bson:"numericOrdering"`
	Alternate       string `bson:"alternate"`
	MaxVariable     string `bson:"maxVariable"`
	Normalization   bool   `bson:"normalization"`
	Backwards       bool   `bson:"backwards"`
	Version         string `bson:"version"`
}

// icuVersion is that of the library in the server whose version this is.
const icuVersion = "57.1"

// Parse reads a specification. An empty one is nil; {locale: "simple"} is not,
// so that it can take the place of another collation.
func Parse(spec bson.Raw) (*Collation, error) {
	s := settings{CaseFirst: "off", Strength: 3, Alternate: "non-ignorable", MaxVariable: "punct", Version: icuVersion}
	if it := bsonkit.Iterate(spec); !it.Next() {
		return nil, nil
	}
	locale, named := bsonkit.Get(spec, "locale")
	switch text, isText := locale.StringValueOK(); {
	case !named:
		return nil, mongoerr.New(mongoerr.NoSuchKey, "Missing expected field \"locale\"")
	case isText && text == "":
		return nil, mongoerr.New(mongoerr.BadValue, "Field 'locale' cannot be the empty string in: %s", spec)
	}
	for it := bsonkit.Iterate(spec); it.Next(); {
		if !known(string(it.Key())) {
			return nil, mongoerr.New(mongoerr.FailedToParse, "Collation has unknown field %s", it.Key())
		}
	}
	if err := bson.Unmarshal(spec, &s); err != nil {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "Collation %s: %s", spec, err)
	}
	switch {
	case s.Locale == "simple":
		return &Collation{}, nil
	case s.Strength < 1 || s.Strength > 5:
		return nil, mongoerr.New(mongoerr.FailedToParse, "Field 'strength' must be an integer 1 through 5. Got: %d", s.Strength)
	case s.Version != icuVersion:
		return nil, mongoerr.New(mongoerr.IncompatibleCollationVersion, "Requested collation version %s but the only available collator version was %s",
			s.Version, icuVersion)
	case s.Strength > 3 || s.CaseLevel || s.CaseFirst != "off" || s.Alternate != "non-ignorable" || s.Backwards:
		return nil, mongoerr.New(mongoerr.NotImplemented,
			"collation %s is not supported: of the options there are strength up to 3 and numericOrdering", spec)
	}
	tag, err := language.Parse(s.Locale)
	if err != nil || prefixed(s.Locale) {
		return nil, mongoerr.New(mongoerr.BadValue, "Field 'locale' is invalid in: %s", spec)
	}
	listed, err := bson.Marshal(s)
	if err != nil {
		return nil, err
	}
	return &Collation{spec: listed, collator: collate.New(tag, s.options()...)}, nil
}

// prefixed tells names that are no locales but private, or of an old kind.
func prefixed(locale string) bool {
	return len(locale) > 1 && strings.ContainsRune("xXiI", rune(locale[0])) && strings.ContainsRune("-_", rune(locale[1]))
}

func known(field string) bool {
	return slices.Contains([]string{
		"locale", "caseLevel", "caseFirst", "strength", "numericOrdering", "alternate", "maxVariable",
		"normalization", "backwards", "version",
	}, field)
}

func (s settings) options() []collate.Option {
	var options []collate.Option
	if s.Strength < 3 {
		options = append(options, collate.IgnoreCase)
	}
	if s.Strength < 2 {
		options = append(options, collate.IgnoreDiacritics)
	}
	if s.NumericOrdering {
		options = append(options, collate.Numeric)
	}
	return options
}

// IsSimple tells a collation that compares bytes.
func (c *Collation) IsSimple() bool { return c == nil || c.collator == nil }

// Spec is the specification with all its fields, nil for a simple collation.
func (c *Collation) Spec() bson.Raw {
	if c == nil {
		return nil
	}
	return c.spec
}

// Folds reports whether folding can change a value: it is text, or may hold
// some.
func (c *Collation) Folds(v bson.RawValue) bool {
	if c.IsSimple() {
		return false
	}
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeEmbeddedDocument, bson.TypeArray:
		return true
	}
	return false
}

// Fold replaces each text in a value by its key.
func (c *Collation) Fold(v bson.RawValue) bson.RawValue {
	if !c.Folds(v) {
		return v
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		at, dst := bsoncore.AppendDocumentStart(nil)
		for it := bsonkit.Iterate(v.Value); it.Next(); {
			folded := c.Fold(it.Value())
			dst = bsoncore.AppendHeader(dst, bsoncore.Type(folded.Type), string(it.Key()))
			dst = append(dst, folded.Value...)
		}
		dst, _ = bsoncore.AppendDocumentEnd(dst, at) // at is where it begins
		return bson.RawValue{Type: v.Type, Value: dst}
	default:
		text, _ := v.StringValueOK()
		if v.Type == bson.TypeSymbol {
			text, _ = v.SymbolOK()
		}
		return bson.RawValue{Type: bson.TypeString, Value: bsoncore.AppendString(nil, c.key(text))}
	}
}

// Compare orders two values of any type.
func (c *Collation) Compare(a, b bson.RawValue) int { return bsonkit.Compare(c.Fold(a), c.Fold(b)) }

// Key is the same for values that compare as equal, of whatever types, and for no
// others.
func (c *Collation) Key(v bson.RawValue) string { return string(bsonkit.AppendKey(nil, c.Fold(v))) }

func (c *Collation) key(text string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buffer.Reset()
	return string(c.collator.KeyFromString(&c.buffer, text))
}

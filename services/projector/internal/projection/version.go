package projection

import (
	"fmt"
	"strconv"
	"strings"
)

// maxVersion bounds the number of a version.
const maxVersion = 999_999

// Version is one version of a projection. Each has documents of its own, and
// readers use a view of one version's documents.
type Version struct {
	// Projection is the name that all versions share, View that of the view.
	Projection string
	View       string
	// Number is 1 or more.
	Number int
}

// Versioned is a projection that may have versions; its method says false where it has
// none.
type Versioned interface {
	Version() (Version, bool)
}

// Renumbered is a projection that may be any version of itself.
type Renumbered interface {
	Renumbered(number int) Projection
}

// VersionOf returns the version that a projection is; false where it has none.
func VersionOf(p Projection) (Version, bool) {
	if v, ok := p.(Versioned); ok {
		return v.Version()
	}
	return Version{}, false
}

// View is what readers read: the documents of a collection without the deleted ones, of
// which only the position is left.
type View struct {
	Name string
	On   string
}

// Versioned tells whether the view stands on one of several versions.
func (v View) Versioned() bool { return strings.HasPrefix(v.On, v.Name+"_v") }

// currentSuffix makes the name of the view on a collection that has no versions.
const currentSuffix = "_current"

// Views are what readers of a projection read.
func Views(p Projection) []View {
	if v, is := VersionOf(p); is {
		return []View{{v.View, v.Collection()}}
	}
	var views []View
	for _, collection := range p.Collections() {
		views = append(views, View{collection + currentSuffix, collection})
	}
	return views
}

// Collection is where the version's documents are.
func (v *Version) Collection() string { return ofVersion(v.View, v.Number) }

// Account is the version's name in the ledger of positions.
func (v *Version) Account() string { return ofVersion(v.Projection, v.Number) }

// Other is another version of the same projection.
func (v *Version) Other(number int) *Version {
	other := *v
	other.Number = number
	return &other
}

// In is the number of the version whose documents are in a collection; false
// where it holds none.
func (v *Version) In(collection string) (int, bool) {
	return versionIn(collection, v.View)
}

// InAccount is the number of the version whose account this is; false where it is of none.
func (v *Version) InAccount(account string) (int, bool) { return versionIn(account, v.Projection) }

func versionIn(text, name string) (int, bool) {
	digits, found := strings.CutPrefix(text, name+"_v")
	n, err := strconv.Atoi(digits)
	return n, found && err == nil && n >= 1 && ofVersion(name, n) == text
}

func ofVersion(name string, version int) string {
	if version == 0 {
		return name
	}
	return fmt.Sprintf("%s_v%d", name, version)
}

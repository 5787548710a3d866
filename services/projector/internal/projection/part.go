package projection

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Part describes one projection of a deployment to others.
type Part struct {
	Name        string   `bson:"name"`
	Collections []string `bson:"collections"`
	// Types are the event types that it follows; nil follows every type, or is
	// not known to follow fewer.
	Types []string `bson:"types"`
	// Content is a hash of what it says, of which two with the same name differ.
	Content string `bson:"content"`
	// Keyed is that of Keyed, and Key the expression, as far as it is known; Noted tells
	// whether positions are noted under the name. They are not told.
	Keyed bool   `bson:"-" json:"-"`
	Key   string `bson:"-" json:"-"`
	Noted bool   `bson:"-" json:"-"`
}

// described is a projection that says more of itself than others do.
type described interface {
	// Types are the event types that it follows, sorted; nil for all.
	Types() []string
	// keyText is the key, as far as it is known; "" where there is none.
	keyText() string
	// says is all that tells the projection from another of its name.
	says() string
}

// Parts describe the projections, sorted by name.
func (ps Projections) Parts() []Part {
	parts := make([]Part, 0, len(ps))
	for _, p := range ps {
		part := Part{Name: p.Name(), Collections: p.Collections(), Content: Content(p), Keyed: Keyed(p)}
		_, versioned := VersionOf(p)
		part.Noted = part.Keyed || versioned
		if known, ok := p.(described); ok {
			part.Types, part.Key = known.Types(), known.keyText()
		}
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Name, b.Name) })
	return parts
}

// Content is a hash of what a projection says. It does not depend on which version of
// itself it is.
func Content(p Projection) string {
	content := fmt.Sprintf("%T", p)
	if known, ok := p.(described); ok {
		content = known.says()
	}
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:8])
}

// Followers are the names of the parts that follow events of a type. It is not
// nil, since nil says that nobody knows.
func Followers(parts []Part, eventType string) []string {
	followers := []string{}
	for i := range parts {
		if parts[i].Types == nil || slices.Contains(parts[i].Types, eventType) {
			followers = append(followers, parts[i].Name)
		}
	}
	return followers
}

// Followers are the names of the projections that follow events of a type.
func (ps Projections) Followers(eventType string) []string { return Followers(ps.Parts(), eventType) }

// Differences says how one deployment's projections differ from another's, in
// words; nothing where they are the same.
func Differences(here, there []Part) []string {
	var differences []string
	for i := range here {
		a := &here[i]
		at := slices.IndexFunc(there, func(b Part) bool { return b.Name == a.Name })
		switch {
		case at < 0:
			differences = append(differences, fmt.Sprintf("projection %q is only here", a.Name))
		case !slices.Equal(a.Collections, there[at].Collections):
			differences = append(differences, fmt.Sprintf("projection %q writes %s here and %s there", a.Name, strings.Join(a.Collections, ", "), strings.Join(there[at].Collections, ", ")))
		case a.Content != there[at].Content:
			differences = append(differences, fmt.Sprintf("projection %q says something else here", a.Name))
		}
	}
	for i := range there {
		if !slices.ContainsFunc(here, func(a Part) bool { return a.Name == there[i].Name }) {
			differences = append(differences, fmt.Sprintf("projection %q is only there", there[i].Name))
		}
	}
	return differences
}

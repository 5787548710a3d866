package readmodel

import (
	"fmt"
	"slices"

	"changerelay/services/projector/internal/projection"
)

// accountKey is the key of a projection's positions in collection_owners, beside
// collections and feeds.
func accountKey(name string) string { return "$account:" + name }

// accounts are the positions that the store's projections note, to be claimed. Two
// projections of one name would take each other's events for their own: with a key for
// repeats, without one for events that the version has dealt with.
func (s *Store) accounts() []ownership {
	var all []ownership
	for i := range s.parts {
		if part := &s.parts[i]; part.Noted {
			all = append(all, ownership{Key: accountKey(part.Name), Projection: part.Name, Documents: slices.Sorted(slices.Values(part.Collections))})
		}
	}
	return all
}

// documents are the collections of a projection of the store's.
func (s *Store) documents(name string) []string {
	accounts := s.accounts()
	if i := slices.IndexFunc(accounts, func(o ownership) bool { return o.Projection == name }); i >= 0 {
		return accounts[i].Documents
	}
	return nil
}

// strangeAccount says why positions that are claimed are not those of the store's
// projection, "" where they are.
func (s *Store) strangeAccount(o *ownership) string {
	here := s.documents(o.Projection)
	switch {
	case !slices.Equal(here, o.Documents):
		return fmt.Sprintf("the positions of projection %q are those of documents in %q of the group %q, and here it writes to %q, which would be taken to have every event that those have: "+
			"give the projection another name or version, or its former collection; where the documents themselves were renamed, remove %q from %q",
			o.Projection, o.Documents, o.Group, here, o.Key, projection.Owners)
	case o.Group != s.group:
		return fmt.Sprintf("the positions of projection %q are of the group %q, claimed by %s, and not of %q", o.Projection, o.Group, o.By, s.group)
	}
	return ""
}

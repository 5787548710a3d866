package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Privilege is what connectionStatus shows of a user. A resource that is neither
// a collection nor everything has no names.
type Privilege struct {
	Resource struct {
		DB          *string `bson:"db"`
		Collection  *string `bson:"collection"`
		Cluster     bool    `bson:"cluster"`
		AnyResource bool    `bson:"anyResource"`
	} `bson:"resource"`
	Actions []string `bson:"actions"`
}

// Need is what docs/security.md lists for one database. No collections are the
// database as a whole, which a privilege on each of them does not give.
type Need struct {
	Database    string
	Collections []string
	Actions     []string
	// Optional are actions that help, and may be left out.
	Optional []string
}

// Role is what is known of the user that the publisher is.
type Role struct {
	User       string
	Privileges []Privilege
	Needs      []Need
}

// JudgeRole compares what the user may do with what the publisher needs.
func JudgeRole(r Role) []Finding {
	f := &findings{subject: fmt.Sprintf("user %q", r.User)}
	lacking, extra := r.lacking(), r.extra()
	f.add(len(lacking) > 0, Fault, "lacks "+strings.Join(lacking, ", "), "grant what docs/security.md lists")
	f.add(len(extra) > 0, Warning, "may do more than the publisher needs: "+strings.Join(extra, ", "),
		"run the publisher as a user that has the roles in docs/security.md and no other")
	return f.all
}

// lacking are the actions that no privilege gives, as "action on collection".
func (r Role) lacking() []string {
	var lacking []string
	for _, need := range r.Needs {
		for _, collection := range need.each() {
			for _, action := range need.Actions {
				given := func(p Privilege) bool {
					return p.covers(need.Database, collection) && slices.Contains(p.Actions, action)
				}
				if !slices.ContainsFunc(r.Privileges, given) {
					lacking = append(lacking, action+" on "+orAny(need.Database)+"."+orAny(collection))
				}
			}
		}
	}
	return lacking
}

// each are the collections, an empty name for all.
func (n Need) each() []string {
	if len(n.Collections) == 0 {
		return []string{""}
	}
	return n.Collections
}

// covers says whether the resource holds a collection; all of a database where
// its name is empty.
func (p Privilege) covers(database, collection string) bool {
	r := &p.Resource
	return r.AnyResource || r.DB != nil && r.Collection != nil &&
		(*r.DB == "" || *r.DB == database) && (*r.Collection == "" || *r.Collection == collection)
}

// looking are actions that change nothing and show no more than what is there.
var looking = []string{
	"changeStream", "collStats", "connPoolStats", "dbHash", "dbStats", "find", "indexStats", "killCursors", "listCollections",
	"listDatabases", "listIndexes", "planCacheRead", "listSessions", "serverStatus", "replSetGetStatus", "replSetGetConfig",
}

// extra are the actions that change something and are given on more than needs
// them, as "actions on resource".
func (r Role) extra() []string {
	var extra []string
	for _, p := range r.Privileges {
		needless := slices.DeleteFunc(slices.Clone(p.Actions), func(action string) bool {
			return slices.Contains(looking, action) || r.needs(p, action)
		})
		if len(needless) > 0 {
			slices.Sort(needless)
			extra = append(extra, fmt.Sprintf("%s on %s", strings.Join(needless, "/"), p.name()))
		}
	}
	slices.Sort(extra)
	return slices.Compact(extra)
}

// needs says whether an action is needed on all that the privilege covers.
func (r Role) needs(p Privilege, action string) bool {
	return slices.ContainsFunc(r.Needs, func(n Need) bool {
		return p.Resource.DB != nil && *p.Resource.DB == n.Database && (slices.Contains(n.Actions, action) || slices.Contains(n.Optional, action)) &&
			(len(n.Collections) == 0 || slices.Contains(n.Collections, *p.Resource.Collection))
	})
}

func (p Privilege) name() string {
	r := &p.Resource
	switch {
	case r.AnyResource:
		return "everything"
	case r.Cluster:
		return "the cluster"
	case r.DB == nil || r.Collection == nil:
		return "another resource"
	}
	return orAny(*r.DB) + "." + orAny(*r.Collection)
}

// orAny is a name, where empty stands for all of them.
func orAny(name string) string { return cmp.Or(name, "*") }
